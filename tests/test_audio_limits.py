"""Files that are, or claim to be, larger than anybody should read are refused at once, with the limit."""

import io
import struct
import time
import tracemalloc
from collections.abc import Generator
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from studio.audio.containers import _Steady
from studio.audio.files import HEADER_SIZE, read, read_clip, wav_header
from studio.errors import ClipError, ClipTooLarge, ReferenceTooLong, UnreadableClip

GIB = 2**30


def flac_that_claims(samples: int, *, rate: int, channels: int) -> bytes:
    """A FLAC of a few bytes whose header states so many samples."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((4096, channels)), 48_000, format="FLAC", subtype="PCM_16")
    content = bytearray(buffer.getvalue())
    packed = int.from_bytes(content[18:26], "big")
    depth = packed >> 36 & 31
    content[18:26] = (rate << 44 | (channels - 1) << 41 | depth << 36 | samples).to_bytes(8, "big")
    return bytes(content)


@pytest.fixture
def memory() -> Generator[None, None, None]:
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6, f"{peak / 1e6:.0f} MB were taken for a file that is refused"


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "begin", [b"", b"RIFF", b"ID3\x03", b"fLaC", b"\x1a\x45\xdf\xa3", b"OggS", b"\0\0\0\x18ftypM4A "]
)
def test_2_gib_of_nothing_are_refused_within_seconds(tmp_path: Path, begin: bytes) -> None:
    path = tmp_path / "huge.wav"
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(2 * GIB)
    started = time.thread_time()
    with pytest.raises(ClipError, match=r"huge\.wav"):
        read(path, name="huge.wav")
    assert time.thread_time() - started < 10


@pytest.mark.usefixtures("memory")
def test_2_gib_of_sound_are_refused_by_the_header(tmp_path: Path) -> None:
    path = tmp_path / "huge.wav"
    with path.open("wb") as file:
        file.write(wav_header(GIB // 2, sample_rate=48_000, channels=2))
        file.truncate(HEADER_SIZE + 2 * GIB)
    with pytest.raises(ReferenceTooLong, match=r"11184\.8 s long; at most 600 s"):
        read(path, name="huge.wav")


@pytest.mark.usefixtures("memory")
def test_a_header_that_claims_more_samples_than_memory_is_refused() -> None:
    content = flac_that_claims(500 * 192_000, rate=192_000, channels=8)
    with pytest.raises(ClipTooLarge, match=r"more than 64 million samples in 8 channel\(s\) at 192 kHz.*mono"):
        read(content, name="claims")
    with pytest.raises(ReferenceTooLong, match=r"at most 600 s"):
        read(flac_that_claims(2**36 - 1, rate=48_000, channels=1), name="claims")


def test_thirty_minutes_are_refused_whatever_they_are_packed_in() -> None:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=8_000, layout="mono")
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8_000 * 1800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8_000
        for piece in (frame, None):
            container.mux(stream.encode(piece))
    with pytest.raises(ReferenceTooLong, match=r"1800\.\d s long"):
        read(buffer.getvalue(), name="half an hour")


def test_a_chunk_size_beyond_the_file_is_no_reason_to_fail() -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.full((4800, 1), 0.5), 48_000, format="WAV")
    content = bytearray(buffer.getvalue())
    content[40:44] = struct.pack("<I", 0x7FFFFFFF)
    assert read(bytes(content), name="clip").num_samples == 4800


def test_a_seek_to_nowhere_is_a_number_for_ffmpeg_and_no_exception() -> None:
    file = _Steady(io.BytesIO(b"1234"))
    assert file.seek(2) == 2
    assert file.seek(-5) < 0
    assert file.seek(2**70) < 0
    assert file.seek(0, 99) < 0


FORMATS = {
    ("WAV", "PCM_24", 2): "WAV, 24-bit, 48 kHz, 2 channels",
    ("WAV", "FLOAT", 1): "WAV, 32-bit float, 48 kHz, 1 channel",
    ("WAV", "ULAW", 1): "WAV, ulaw, 48 kHz, 1 channel",
    ("FLAC", "PCM_16", 1): "FLAC, 16-bit, 48 kHz, 1 channel",
    ("OGG", "VORBIS", 2): "Ogg, vorbis, 48 kHz, 2 channels",
    ("MP3", "MPEG_LAYER_III", 1): "MP3, 48 kHz, 1 channel",
}


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: "-".join(map(str, kind)))
def test_the_format_is_said_in_words(kind: tuple[str, str, int]) -> None:
    file_format, subtype, channels = kind
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((9600, channels)), 48_000, format=file_format, subtype=subtype)
    assert read_clip(buffer.getvalue(), name="clip").sound_format.sentence == FORMATS[kind]


def test_a_format_that_cannot_be_read_is_named_with_what_can() -> None:
    with pytest.raises(UnreadableClip, match=r"Use wav, flac, mp3, ogg, m4a or webm"):
        read(b"MThd\0\0\0\6" + bytes(200), name="song.mid")
