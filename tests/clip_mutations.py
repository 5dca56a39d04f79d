"""Files for the reference desk that nobody would send on purpose: valid ones of every kind, then mutated by a seed.

A mutation changes bits, inserts, repeats, moves or removes bytes, writes absurd numbers over sizes, cuts the file off,
puts a file into another's header, or makes a header from nothing. The same seed makes the same file on every machine.
"""

import io
import struct
from collections.abc import Callable
from functools import cache

import av
import numpy as np
import soundfile
from counting_engine import talk

FORMATS = (
    ("wav", "PCM_U8"),
    ("wav", "PCM_16"),
    ("wav", "PCM_24"),
    ("wav", "FLOAT"),
    ("wav", "DOUBLE"),
    ("wav", "ULAW"),
    ("wav", "IMA_ADPCM"),
    ("wav", "MS_ADPCM"),
    ("rf64", "PCM_16"),
    ("aiff", "PCM_16"),
    ("au", "PCM_16"),
    ("caf", "PCM_16"),
    ("w64", "PCM_16"),
    ("flac", "PCM_16"),
    ("flac", "PCM_24"),
    ("ogg", "VORBIS"),
    ("ogg", "OPUS"),
    ("mp3", "MPEG_LAYER_III"),
)
CONTAINERS = (
    ("mp4", "aac"),
    ("mov", "alac"),
    ("webm", "libopus"),
    ("matroska", "pcm_s16le"),
    ("adts", "aac"),
    ("mpegts", "aac"),
    ("avi", "libmp3lame"),
    ("flv", "aac"),
    ("aiff", "pcm_s16be"),
    ("caf", "pcm_s16le"),
    ("tta", "tta"),
    ("wv", "wavpack"),
    ("ac3", "ac3"),
    ("amr", "libopencore_amrnb"),
)
RATES = (8_000, 16_000, 24_000, 44_100, 48_000)
ABSURD = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**31 + 5, 600, 192_000)


@cache
def valid_files() -> tuple[bytes, ...]:
    """1.2 s that pass for speech in every format that can be written here."""
    files = [_by_soundfile(kind, subtype, channels) for kind, subtype in FORMATS for channels in (1, 2)]
    return tuple(files + [_by_ffmpeg(kind, codec) for kind, codec in CONTAINERS])


def _by_soundfile(kind: str, subtype: str, channels: int) -> bytes:
    rate = 24_000 if kind != "mp3" else 44_100
    samples = np.repeat(talk(1.2, sample_rate=rate).samples, channels, axis=0).T
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind.upper(), subtype=subtype)
    return buffer.getvalue()


def _by_ffmpeg(kind: str, codec: str) -> bytes:
    buffer, rate = io.BytesIO(), 8_000 if codec == "libopencore_amrnb" else 48_000
    with av.open(buffer, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        steps = np.rint(talk(1.2, sample_rate=rate).samples * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(steps, format="s16", layout="mono")
        frame.sample_rate = rate
        for piece in (frame, None):
            container.mux(stream.encode(piece))
    return buffer.getvalue()


def generated(seed: int) -> bytes:
    """The input of this number."""
    draws = np.random.default_rng([20261130, seed])
    kind = draws.random()
    if kind < 0.04:
        return draws.bytes(int(draws.integers(0, 5_000)))
    if kind < 0.12:
        return _invented_header(draws)
    files = valid_files()
    content = files[draws.integers(len(files))]
    if kind < 0.18:
        other = files[draws.integers(len(files))]
        at, other_at = int(draws.integers(len(content))), int(draws.integers(len(other)))
        content = content[:at] + other[other_at:]
    if kind < 0.21:
        return content  # as it is, so that the way through is known to be open
    for _ in range(int(draws.choice((1, 1, 2, 4, 16, 64)))):
        content = MUTATIONS[draws.integers(len(MUTATIONS))](content, draws)
    return content


def _place(content: bytes, draws: np.random.Generator) -> int:
    """Somewhere, two times of three in the first 300 bytes, where sizes and counts are."""
    reach = min(len(content), 300) if draws.random() < 2 / 3 else len(content)
    return int(draws.integers(reach + 1))


def _flip(content: bytes, draws: np.random.Generator) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    changed[min(_place(content, draws), len(content) - 1)] ^= 1 << int(draws.integers(8))
    return bytes(changed)


def _overwrite(content: bytes, draws: np.random.Generator) -> bytes:
    at = _place(content, draws)
    new = draws.bytes(int(draws.integers(1, 40)))
    return content[:at] + new + content[at + len(new) :]


def _absurd_number(content: bytes, draws: np.random.Generator) -> bytes:
    at = _place(content, draws)
    number = int(draws.choice(ABSURD))
    form = draws.choice(("<I", ">I", "<H", ">H", "<Q", ">Q"))
    new = struct.pack(form, number & (2 ** (8 * struct.calcsize(form)) - 1))
    return content[:at] + new + content[at + len(new) :]


def _cut(content: bytes, draws: np.random.Generator) -> bytes:
    return content[: _place(content, draws)]


def _remove(content: bytes, draws: np.random.Generator) -> bytes:
    at = _place(content, draws)
    return content[:at] + content[at + int(draws.integers(1, 200)) :]


def _insert(content: bytes, draws: np.random.Generator) -> bytes:
    at = _place(content, draws)
    return content[:at] + draws.bytes(int(draws.integers(1, 200))) + content[at:]


def _repeat(content: bytes, draws: np.random.Generator) -> bytes:
    at = _place(content, draws)
    piece = content[at : at + int(draws.integers(1, 400))]
    return content[:at] + piece * int(draws.integers(2, 30)) + content[at:]


def _put_inside(content: bytes, draws: np.random.Generator) -> bytes:
    """The whole file, or another, as the inside of a chunk, a box or a tag."""
    files = valid_files()
    inner = files[draws.integers(len(files))] if draws.random() < 0.5 else content
    length = len(inner)
    wrapped = (
        b"RIFF" + struct.pack("<I", length + 4) + b"WAVE" + inner,
        struct.pack(">I", length + 8) + b"moov" + inner,
        b"ID3\x04\x00\x00" + struct.pack(">I", length & 0x7F7F7F7F) + inner + content,
        b"\x1a\x45\xdf\xa3" + struct.pack(">Q", length | 1 << 56) + inner,
        b"OggS\x00\x02" + bytes(20) + b"\x01" + bytes([length % 256]) + inner,
        inner + content,
    )
    return wrapped[draws.integers(len(wrapped))][:400_000]


def _invented_header(draws: np.random.Generator) -> bytes:
    """A header of a WAV, an AIFF or a FLAC with numbers from ABSURD in every field, and some bytes after it."""
    absurd = [int(each) for each in draws.choice(ABSURD, 8)]
    rate = int(draws.choice(RATES)) if draws.random() < 0.5 else absurd[0]
    channels, depth = absurd[1] & 0xFFFF, int(draws.choice((0, 1, 8, 12, 16, 24, 32, 64, 65535)))
    code = int(draws.choice((1, 2, 3, 6, 7, 17, 49, 80, 85, 255, 0x161, 0xFFFE)))
    riff = struct.pack("<4sI4s4sI", b"RIFF", absurd[2], b"WAVE", b"fmt ", int(draws.choice((16, 18, 40, absurd[3]))))
    form = struct.pack("<HHIIHH", code, channels, rate, absurd[4], absurd[5] & 0xFFFF, depth)
    wav = riff + form + struct.pack("<4sI", b"data", absurd[6])
    stream = (rate & 0xFFFFF) << 44 | (channels & 7) << 41 | (depth & 31) << 36 | (absurd[7] * absurd[6] & 2**36 - 1)
    flac = b"fLaC\x80\x00\x00\x22" + struct.pack(">HH6xQ16x", 4096, 4096, stream)
    aiff = struct.pack(">4sI4s4sIHIH", b"FORM", absurd[2], b"AIFF", b"COMM", 18, channels, absurd[3], depth)
    head = (wav, flac, aiff + struct.pack(">HQ", 0x400E, (rate & 0xFFFF) << 48))[draws.integers(3)]
    return head + draws.bytes(int(draws.integers(0, 3_000)))


MUTATIONS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _flip,
    _overwrite,
    _absurd_number,
    _absurd_number,
    _cut,
    _remove,
    _insert,
    _repeat,
    _put_inside,
)
