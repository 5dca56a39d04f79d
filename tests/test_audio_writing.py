import errno
import io
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from studio.audio.files import HEADER_SIZE, TakeWriter, read, wav_header, write
from studio.audio.waveform import Waveform
from studio.errors import StorageError

RATE = 48_000
TIMES = np.arange(RATE) / RATE
MELODY = Waveform(0.5 * np.stack([np.sin(2 * np.pi * 220 * TIMES), np.sin(2 * np.pi * 440 * TIMES)]).astype("f4"), RATE)


@pytest.mark.parametrize(
    ("name", "subtype", "step"),
    [
        ("a.wav", "PCM_16", 2**-15),
        ("a.wav", "PCM_24", 2**-23),
        ("a.flac", "PCM_16", 2**-15),
        ("a.flac", "PCM_24", 2**-23),
    ],
)
def test_what_is_written_comes_back_to_the_step(tmp_path: Path, name: str, subtype: str, step: float) -> None:
    write(tmp_path / name, MELODY, subtype)
    first = read(tmp_path / name, name=name)
    assert np.abs(first.samples - MELODY.samples).max() <= step / 2 * 1.001
    write(tmp_path / name, first, subtype)
    assert np.array_equal(read(tmp_path / name, name=name).samples, first.samples)


def test_a_float_wav_is_written_bit_for_bit(tmp_path: Path) -> None:
    waveform = Waveform(MELODY.samples * 3, RATE)
    write(tmp_path / "a.wav", waveform, "FLOAT")
    assert np.array_equal(read(tmp_path / "a.wav", name="a").samples, waveform.samples)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_too_loud_samples_are_clipped_when_written(tmp_path: Path, subtype: str) -> None:
    write(tmp_path / "a.wav", Waveform(np.array([[2.0, -2.0, 1.0]], np.float32), 8_000), subtype)
    assert np.allclose(read(tmp_path / "a.wav", name="a").samples, [[1, -1, 1]], atol=1e-4)


def test_only_wav_and_flac_are_written(tmp_path: Path) -> None:
    for name, subtype in (("a.mp3", "PCM_16"), ("a.flac", "FLOAT"), ("a", "PCM_16")):
        with pytest.raises(ValueError, match="is not written here"):
            write(tmp_path / name, MELODY, subtype)


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a\.wav"):
        write(tmp_path / "no" / "a.wav", MELODY)
    with pytest.raises(StorageError, match="No such file"):
        TakeWriter(tmp_path / "no" / "a.wav", sample_rate=24_000, channels=1)


def noise_pcm(channels: int, count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(-32768, 32768, size=(channels, count)).astype(np.int16)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_take_holds_the_chunks_one_after_another(tmp_path: Path, channels: int) -> None:
    chunks = [noise_pcm(channels, count) for count in (1920, 1, 0, 5760)]
    with TakeWriter(tmp_path / "take.wav", sample_rate=24_000, channels=channels) as take:
        for chunk in chunks:
            take.write(chunk)
    assert take.num_samples == 7681
    samples, rate = soundfile.read(tmp_path / "take.wav", dtype="int16", always_2d=True)
    assert rate == 24_000
    assert np.array_equal(samples.T, np.concatenate(chunks, axis=1))
    assert soundfile.info(tmp_path / "take.wav").subtype == "PCM_16"


def test_a_take_is_readable_after_every_chunk_without_being_closed(tmp_path: Path) -> None:
    take = TakeWriter(tmp_path / "take.wav", sample_rate=24_000, channels=1)
    for chunks in range(1, 4):
        take.write(noise_pcm(1, 1000))
        samples, _ = soundfile.read(tmp_path / "take.wav", dtype="int16")
        assert np.array_equal(samples, np.tile(noise_pcm(1, 1000)[0], chunks))
    take.close()
    take.close()


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pathlib, numpy\n"
        "from studio.audio.files import TakeWriter\n"
        "take = TakeWriter(pathlib.Path(sys.argv[1]), sample_rate=24000, channels=1)\n"
        "for value in (1, 2, 3):\n"
        "    take.write(numpy.full((1, 1920), value, numpy.int16))\n"
        "os._exit(9) if os.name == 'nt' else os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "take.wav"
    code = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=False, cwd=Path(__file__).parents[1]
    ).returncode
    assert code == (9 if os.name == "nt" else -signal.SIGKILL)
    samples, _ = soundfile.read(path, dtype="int16")
    assert np.array_equal(samples, np.repeat([1, 2, 3], 1920))


def test_a_take_never_overwrites_another(tmp_path: Path) -> None:
    path = tmp_path / "take.wav"
    path.write_bytes(b"precious")
    with pytest.raises(StorageError, match="exists"):
        TakeWriter(path, sample_rate=24_000, channels=1)
    assert path.read_bytes() == b"precious"


def test_a_chunk_of_another_type_or_shape_is_refused(tmp_path: Path) -> None:
    with TakeWriter(tmp_path / "take.wav", sample_rate=24_000, channels=1) as take:
        for chunk in (np.zeros((1, 5), np.float32), np.zeros(5, np.int16), np.zeros((2, 5), np.int16)):
            with pytest.raises(ValueError, match="a chunk must be int16"):
                take.write(chunk)


class FullDisk(io.BytesIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = TakeWriter(tmp_path / "take.wav", sample_rate=24_000, channels=1)
    take.close()
    monkeypatch.setattr(take, "_file", FullDisk())
    with pytest.raises(StorageError, match=f"{tmp_path} cannot be used .No space left"):
        take.write(noise_pcm(1, 1000))
    assert take.num_samples == 0


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_past_4_gib_the_header_is_rf64(tmp_path: Path, over: int) -> None:
    path = tmp_path / "long.wav"
    samples = (2**32 - HEADER_SIZE + 8) // 4 + over
    header = wav_header(samples, sample_rate=48_000, channels=2)
    assert len(header) == HEADER_SIZE
    assert header[:4] == (b"RIFF" if over < 0 else b"RF64")
    with path.open("wb") as file:
        file.write(header)
        file.truncate(HEADER_SIZE + samples * 4)
    info = soundfile.info(path)
    assert (info.frames, info.samplerate, info.channels, info.subtype) == (samples, 48_000, 2, "PCM_16")
    assert math.isclose(info.duration, samples / 48_000)
