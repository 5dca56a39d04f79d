"""Decode what soundfile does not know (m4a, webm, ...) with PyAV, whose wheels carry their own FFmpeg."""

import errno
import io
from collections.abc import Iterator
from typing import BinaryIO

import av
import av.error
import av.logging
import numpy as np
from av.container import InputContainer

from studio.audio.sound_format import DecodedClip, SoundFormat
from studio.audio.waveform import LARGEST_CLIP, Waveform
from studio.errors import ClipTooLarge, EmptyClip, ReferenceTooLong, UnreadableClip

# Only real containers: FFmpeg also reads play lists, which make it open other files and addresses.
CONTAINERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,eac3,flac,flv,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpeg,mpegts,ogg,"
    "tak,tta,voc,w64,wav,wv,xwma"
)


def decode(file: BinaryIO, *, name: str, max_duration: float) -> DecodedClip:
    """The first sound track of `file` at its own rate; else UnreadableClip, EmptyClip, ReferenceTooLong or
    ClipTooLarge."""
    av.logging.set_level(None)
    options = {"format_whitelist": CONTAINERS}
    try:
        container = av.open(_Steady(file), mode="r", options=options, metadata_errors="ignore")
    except (av.error.FFmpegError, ValueError) as error:
        raise UnreadableClip(name, "it is no sound file of a known kind") from error
    with container:
        if not container.streams.audio:
            raise UnreadableClip(name, "there is no sound track in it")
        stream = container.streams.audio[0]
        if stream.codec_context is None:
            raise UnreadableClip(name, "its sound is packed in a way that is not known here")
        if container.duration is not None and container.duration / av.time_base > max_duration:
            raise ReferenceTooLong(container.duration / av.time_base, max_duration)
        waveform = _join(_chunks(container, stream, name), stream.rate, name=name, max_duration=max_duration)
        return DecodedClip(waveform, _sound_format(container, stream, waveform))


class _Steady:
    """A file for FFmpeg in which a seek to nowhere is a failure for it to handle, not an exception through it."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.tell = file.read, file.tell
        self._file = file

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """The new place, or a negative error number; a damaged header asks for places before 0 and beyond any file."""
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError, OverflowError):
            return -errno.EINVAL


def _sound_format(container: InputContainer, stream: av.AudioStream, waveform: Waveform) -> SoundFormat:
    codec = stream.codec_context
    return SoundFormat(
        container=container.format.name,
        codec=codec.name,
        sample_rate=waveform.sample_rate,
        channels=waveform.channels,
        bit_depth=8 * codec.format.bytes if codec.name.startswith("pcm_") and codec.format else None,
    )


def _chunks(container: InputContainer, stream: av.AudioStream, name: str) -> Iterator[np.ndarray]:
    """Decoded pieces, float32 `(channels, samples)`, all of one rate and layout."""
    converter = av.AudioResampler(format="fltp", layout=stream.layout, rate=stream.rate)
    try:
        for frame in container.decode(stream):
            for piece in converter.resample(frame):
                yield piece.to_ndarray()
        for piece in converter.resample(None):
            yield piece.to_ndarray()
    except av.error.FFmpegError as error:
        raise UnreadableClip(name, "its sound is damaged") from error


def _join(chunks: Iterator[np.ndarray], rate: int, *, name: str, max_duration: float) -> Waveform:
    """One waveform of all chunks; a recorder's file need not say its length, so it is counted while decoding."""
    kept: list[np.ndarray] = []
    count = 0
    for chunk in chunks:
        kept.append(chunk)
        count += chunk.shape[1]
        if count > max_duration * rate:
            raise ReferenceTooLong(count / rate, max_duration)
        if count * len(chunk) > LARGEST_CLIP:
            raise ClipTooLarge(len(chunk), rate, LARGEST_CLIP)
    if count == 0:
        raise EmptyClip(name)
    return Waveform(np.concatenate(kept, axis=1), rate)
