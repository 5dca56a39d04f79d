"""Test material of the reference cache: speech-like clips made on the spot, and an engine that counts its encodes.

The engine does real arithmetic on the whole clip, writes each encode into a file (so that several processes can be
counted) and can be told to be slow, to wait or to fail.
"""

import io
import os
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import soundfile

from studio.audio.waveform import Waveform
from studio.engine.interface import CodecIdentity, Encoded, Environment
from studio.engine.sampling import SamplingOptions
from studio.text.script import Utterance

HOP = 1920
CODEC = CodecIdentity(
    codec_id="counting",
    digest="a" * 64,
    sample_rate=24_000,
    hop_length=HOP,
    num_codebooks=4,
    codebook_size=1024,
    compute_dtype="float32",
    attention_backend="none",
    recipe="mono-mean,floor/1",
)
ENVIRONMENT = Environment(device="cpu", torch_version="0.0", cuda_version=None, num_threads=1)


@cache
def talk(duration: float = 2.0, *, pitch: float = 90.0, seed: int = 0, sample_rate: int = 24_000) -> Waveform:
    """Syllables of a buzz through moving formants, on the 24-bit grid; the voice detector takes them for speech."""
    time_axis = np.arange(round(duration * sample_rate)) / sample_rate
    syllable = (time_axis * 4).astype(int)
    draws = np.random.default_rng(seed)
    first, second = draws.uniform(300, 800, 400)[syllable], draws.uniform(900, 2300, 400)[syllable]
    frequency = pitch * (1 + 0.1 * np.sin(2 * np.pi * 1.3 * time_axis))
    phase = 2 * np.pi * np.cumsum(frequency) / sample_rate
    sound = np.zeros_like(time_axis)
    for harmonic in range(1, 30):
        height = harmonic * frequency
        low, middle = 1 / (1 + ((height - first) / 80) ** 2), 0.5 / (1 + ((height - second) / 120) ** 2)
        high = 0.2 / (1 + ((height - 2900) / 150) ** 2)
        sound += (low + middle + high) * np.sin(harmonic * phase)
    sound *= np.clip(1.5 * np.sin(np.pi * (time_axis * 4 % 1)), 0, 1)
    steps = np.rint(sound / np.abs(sound).max() * 0.5 * 2**23)
    return Waveform((steps / 2**23).astype(np.float32)[None], sample_rate)


def encoded_file(clip: Waveform, file_format: str = "WAV", subtype: str = "PCM_24") -> bytes:
    """The clip as the bytes of a sound file; exactly, where the clip lies on the format's grid."""
    steps = (
        clip.samples.T
        if subtype == "FLOAT"
        else np.rint(clip.samples.T.astype(np.float64) * 2**31).clip(-(2**31), 2**31 - 1).astype(np.int32)
    )
    buffer = io.BytesIO()
    soundfile.write(buffer, steps, clip.sample_rate, format=file_format, subtype=subtype)
    return buffer.getvalue()


class CountingEngine:
    """Implements `Engine` with a toy codec."""

    name = "counting"
    revision = "1"
    device = "cpu"
    sample_rate = 24_000
    channels = 1
    speech_threads = 1
    uses_transcript = False

    def __init__(self, log: Path, *, codec: CodecIdentity = CODEC, delay: float = 0.0) -> None:
        self.codec = codec
        self.before_encode: Callable[[], None] = lambda: time.sleep(delay)
        self._log = log

    @property
    def encodes(self) -> int:
        """Finished encodes of all engines with this log."""
        return self._log.stat().st_size if self._log.exists() else 0

    @property
    def environment(self) -> Environment:
        return ENVIRONMENT

    def check_script(self, text: str) -> None: ...

    def prepare(self, clip: Waveform) -> Waveform:
        mono = clip.mono()
        return Waveform(mono.samples[:, : mono.num_samples // HOP * HOP], clip.sample_rate)

    def close(self) -> int:
        return 0

    def encode(self, prepared: Waveform) -> Encoded:
        started = time.perf_counter()
        self.before_encode()
        codes = self.codes(prepared)
        file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b".")
        os.close(file)
        return Encoded(codes=codes, environment=ENVIRONMENT, duration=time.perf_counter() - started)

    def codes(self, prepared: Waveform) -> np.ndarray:
        """A code for each quarter of each frame, from its loudness and its place in the whole clip's."""
        size = self.codec.num_codebooks
        quarters = prepared.samples[0, : prepared.num_samples // HOP * HOP].reshape(-1, size, HOP // size)
        loudness = np.abs(quarters.astype(np.float64)).mean(axis=-1).T
        return (loudness / max(loudness.max(), 1e-9) * (self.codec.codebook_size - 1)).astype(np.int16)

    def speak(
        self, utterance: Utterance, codes: np.ndarray, options: SamplingOptions, *, index: int
    ) -> Generator[np.ndarray, None, None]:
        """As many frames of the first reference code as the text has letters, softer by utterance, seed and all."""
        level = int(codes[0, 0]) * (options.seed + 1) // (index + 1) % 100
        yield np.full((1, len(utterance.text) * HOP), level, dtype=np.int16)


def other_codec(**changes: str | int) -> CodecIdentity:
    return replace(CODEC, **changes)  # pyright: ignore[reportArgumentType]
