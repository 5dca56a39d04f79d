"""Read a sound file of any kind by its content, never by its name; write WAV and FLAC."""

import io
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import soundfile

from studio.audio.containers import decode
from studio.audio.sound_format import DEPTHS, DecodedClip, SoundFormat
from studio.audio.waveform import LARGEST_CLIP, Waveform, to_pcm
from studio.errors import ClipTooLarge, EmptyClip, MissingClip, ReferenceTooLong, StorageError, UnreadableClip

LONGEST_FILE = 600.0
LOWEST_RATE, HIGHEST_RATE = 4_000, 768_000
LARGEST_RIFF = 0xFFFFFFFF
HEADER_SIZE = 80
SUBTYPES = {".wav": ("PCM_16", "PCM_24", "FLOAT"), ".flac": ("PCM_16", "PCM_24")}


def read(source: Path | bytes, *, name: str, max_duration: float = LONGEST_FILE) -> Waveform:
    """Every sample of a sound file at its true level, its own rate and all its channels.

    `name` is what messages call it. Raises MissingClip, EmptyClip, UnreadableClip, ClipTooLarge, or ReferenceTooLong
    for more than `max_duration` seconds, by the header where it tells.
    """
    return read_clip(source, name=name, max_duration=max_duration).waveform


def read_clip(source: Path | bytes, *, name: str, max_duration: float = LONGEST_FILE) -> DecodedClip:
    """What `read` gives, and the format it was in."""
    with _open(source, name) as file:
        if file.seek(0, io.SEEK_END) == 0:
            raise EmptyClip(name)
        file.seek(0)
        clip = _read_known(file, name, max_duration)
        if clip is None:
            file.seek(0)
            clip = decode(file, name=name, max_duration=max_duration)
    if not np.isfinite(clip.waveform.samples).all():
        raise UnreadableClip(name, "some of its samples are not numbers")
    _check_rate(clip.waveform.sample_rate, name)
    return clip


def write(path: Path, waveform: Waveform, subtype: str = "PCM_16") -> None:
    """Save as WAV or FLAC by the path's ending, PCM rounded and clipped; RF64 where a WAV would pass 4 GiB."""
    suffix = path.suffix.lower()
    if subtype not in SUBTYPES.get(suffix, ()):
        raise ValueError(f"{suffix or path.name!r} with {subtype} is not written here; there is {SUBTYPES}")
    samples = _to_subtype(waveform.samples, subtype).T
    wav = "RF64" if waveform.samples.size * 4 + HEADER_SIZE > LARGEST_RIFF else "WAV"
    file_format = "FLAC" if suffix == ".flac" else wav
    try:
        soundfile.write(path, samples, waveform.sample_rate, subtype=subtype, format=file_format)
    except (OSError, soundfile.LibsndfileError) as error:
        raise StorageError(str(path.parent), f"{path.name} could not be written: {error}") from error


class TakeWriter:
    """A 16-bit WAV written while it is made: whole after every chunk, so a kill loses nothing already written."""

    def __init__(self, path: Path, *, sample_rate: int, channels: int) -> None:
        self.path = path
        self.sample_rate = sample_rate
        self.channels = channels
        self.num_samples = 0
        try:
            self._file = path.open("xb")
            self._write_header()
        except OSError as error:
            raise StorageError(str(path.parent), error.strerror or str(error)) from error

    def write(self, pcm: np.ndarray) -> None:
        """Append int16 `(channels, samples)`; StorageError when the disk takes no more."""
        if pcm.dtype != np.int16 or pcm.ndim != 2 or pcm.shape[0] != self.channels:
            raise ValueError(f"a chunk must be int16 ({self.channels}, samples), not {pcm.dtype} {pcm.shape}")
        try:
            self._file.write(pcm.T.astype("<i2", order="C").tobytes())
            self._file.flush()
            self.num_samples += pcm.shape[1]
            self._write_header()
        except OSError as error:
            raise StorageError(str(self.path.parent), error.strerror or str(error)) from error

    def close(self) -> None:
        """Let go of the file; more than once is fine."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write_header(self) -> None:
        """Rewrite the header for the samples so far, which have left for the disk before it counts them."""
        self._file.seek(0)
        self._file.write(wav_header(self.num_samples, sample_rate=self.sample_rate, channels=self.channels))
        self._file.flush()
        self._file.seek(0, io.SEEK_END)


def wav_header(num_samples: int, *, sample_rate: int, channels: int) -> bytes:
    """The first HEADER_SIZE bytes of a 16-bit WAV; past 4 GiB of an RF64 (EBU Tech 3306), in as much space."""
    data_size = num_samples * channels * 2
    riff_size = data_size + HEADER_SIZE - 8
    sound = struct.pack(
        "<4sIHHIIHH", b"fmt ", 16, 1, channels, sample_rate, sample_rate * channels * 2, channels * 2, 16
    )
    if riff_size <= LARGEST_RIFF:
        begin = struct.pack("<4sI4s4sI28x", b"RIFF", riff_size, b"WAVE", b"JUNK", 28)
        return begin + sound + struct.pack("<4sI", b"data", data_size)
    sizes = struct.pack("<4sIQQQI", b"ds64", 28, riff_size, data_size, num_samples, 0)
    begin = struct.pack("<4sI4s", b"RF64", LARGEST_RIFF, b"WAVE") + sizes
    return begin + sound + struct.pack("<4sI", b"data", LARGEST_RIFF)


def _open(source: Path | bytes, name: str) -> BinaryIO:
    """The source as an open file without a name."""
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        if not source.exists():
            raise MissingClip(name)
        if not source.is_file():
            raise UnreadableClip(name, "it is a folder or a device, not a file")
        # By descriptor, because soundfile would take the end of a name for the format of a file that has one.
        return os.fdopen(os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise UnreadableClip(name, (error.strerror or str(error)).lower()) from error


def _read_known(file: BinaryIO, name: str, max_duration: float) -> DecodedClip | None:
    """The clip if libsndfile knows the format, else None."""
    try:
        sound = soundfile.SoundFile(file)
    except soundfile.LibsndfileError:
        return None
    with sound:
        _check_rate(sound.samplerate, name)
        if sound.frames > max_duration * sound.samplerate:
            raise ReferenceTooLong(sound.frames / sound.samplerate, max_duration)
        if sound.frames * sound.channels > LARGEST_CLIP:
            raise ClipTooLarge(sound.channels, sound.samplerate, LARGEST_CLIP)
        try:
            samples = sound.read(dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            raise UnreadableClip(name, "its sound is damaged") from error
        if len(samples) == 0:
            raise EmptyClip(name)
        waveform = Waveform(np.ascontiguousarray(samples.T), sound.samplerate)
        return DecodedClip(waveform, _sound_format(sound))


def _sound_format(sound: soundfile.SoundFile) -> SoundFormat:
    return SoundFormat(
        container=sound.format,
        codec=sound.subtype,
        sample_rate=sound.samplerate,
        channels=sound.channels,
        bit_depth=DEPTHS.get(sound.subtype),
    )


def _check_rate(sample_rate: int, name: str) -> None:
    if not LOWEST_RATE <= sample_rate <= HIGHEST_RATE:
        reason = f"its sample rate of {sample_rate:,} Hz is outside {LOWEST_RATE:,} to {HIGHEST_RATE:,} Hz"
        raise UnreadableClip(name, reason)


def _to_subtype(samples: np.ndarray, subtype: str) -> np.ndarray:
    """What is stored: integers, because libsndfile scales floats to 24 bits by another factor than it reads."""
    if subtype == "FLOAT":
        return samples
    if subtype == "PCM_16":
        return to_pcm(samples)
    steps = np.clip(np.rint(samples.astype(np.float64) * 2**23), -(2**23), 2**23 - 1)
    return steps.astype(np.int32) * 256
