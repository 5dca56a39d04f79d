"""Takes as wav, flac, mp3 and ogg: the same length, level and sound."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from counting_engine import encoded_file, talk

from studio.audio.files import TakeWriter
from studio.audio.take_formats import FORMATS, convert
from studio.errors import SettingError, StorageError


@pytest.fixture
def take(tmp_path: Path) -> Path:
    path = tmp_path / "take.wav"
    with TakeWriter(path, sample_rate=24_000, channels=1) as writer:
        writer.write(np.rint(talk(3.0).samples * 32767).astype(np.int16))
    return path


def sound(path: Path) -> np.ndarray:
    samples, sample_rate = soundfile.read(path, dtype="float64", always_2d=True)
    assert sample_rate == 24_000
    return samples[:, 0]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_without_loss_every_sample_is_the_same(take: Path, tmp_path: Path, suffix: str) -> None:
    convert(take, tmp_path / f"out{suffix}")
    assert np.array_equal(sound(tmp_path / f"out{suffix}"), sound(take))


@pytest.mark.parametrize(("suffix", "kind"), [(".mp3", "MP3"), (".ogg", "OGG"), (".MP3", "MP3")])
def test_with_loss_length_level_and_sound_stay(take: Path, tmp_path: Path, suffix: str, kind: str) -> None:
    target = tmp_path / f"out{suffix}"
    convert(take, target)
    original, coded = sound(take), sound(target)
    assert soundfile.info(target).format == kind
    assert len(coded) == len(original)
    assert 20 * np.log10(np.std(coded) / np.std(original)) == pytest.approx(0.0, abs=0.1)
    assert 10 * np.log10(np.mean(original**2) / np.mean((original - coded) ** 2)) > 20
    assert target.stat().st_size < take.stat().st_size


def test_two_channels_stay_two(tmp_path: Path) -> None:
    take = tmp_path / "take.wav"
    pcm = np.rint(talk(1.0).samples * 32767).astype(np.int16)
    with TakeWriter(take, sample_rate=48_000, channels=2) as writer:
        writer.write(np.concatenate([pcm, pcm // 2]))
    for suffix in FORMATS:
        convert(take, tmp_path / f"out{suffix}")
        assert soundfile.info(tmp_path / f"out{suffix}").channels == 2


def test_what_cannot_be_written_is_a_sentence(take: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="choose one of"):
        convert(take, tmp_path / "out.aac")
    with pytest.raises(StorageError, match="could not be written"):
        convert(take, tmp_path / "nowhere" / "out.mp3")
    with pytest.raises(StorageError, match="could not be written"):
        convert(tmp_path / "gone.wav", tmp_path / "out.mp3")
    odd = tmp_path / "odd.wav"
    odd.write_bytes(encoded_file(talk(1.0, sample_rate=96_000)))
    with pytest.raises(SettingError, match="no 96,000 Hz"):
        convert(odd, tmp_path / "out.mp3")
