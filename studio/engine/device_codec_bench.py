"""What a GPU makes of the MOSS codecs, with random weights: times of the decoder's chunks, and the share of codes that
change when a clip is encoded in a batch, by arithmetic."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from studio.engine.codec import CodecEncoder
from studio.engine.frame_graph import Recorder, plain, recorded
from studio.engine.random_models import random_decoder, random_encoder
from studio.engine.recorded_decoder import CHUNK_SIZES, RecordedDecoder
from studio.engine.released_sizes import ModelSize

Figures = dict[str, Any]
_RECORDERS: dict[str, Recorder] = {"recorded": recorded, "plain": plain}
_CLIP_SECONDS = (6.0, 3.0, 4.5, 6.0)


@dataclass(frozen=True)
class Arithmetic:
    """What an encoder computes in."""

    dtype: torch.dtype
    tf32: bool = False


ARITHMETIC = {
    "float32": Arithmetic(torch.float32),
    "tf32": Arithmetic(torch.float32, tf32=True),
    "bfloat16": Arithmetic(torch.bfloat16),
    "float16": Arithmetic(torch.float16),
}


def decoder_figures(size: ModelSize, device: str, runs: int) -> Figures:
    """Milliseconds a chunk, recorded and not, in two dtypes; and how far the recorded sound is from the plain one."""
    figures: Figures = {}
    for dtype in (torch.float32, torch.bfloat16):
        decoder = random_decoder(size, device=device, dtype=dtype)
        sounds = {}
        for name, record in _RECORDERS.items():
            stream = RecordedDecoder(decoder, record=record)
            sounds[name] = stream.step(_codes(size, device, 15))
            times = {str(chunk): _chunk_times(stream, size, device, chunk, runs) for chunk in CHUNK_SIZES}
            figures[f"{name}_{_name(dtype)}_ms"] = times
        difference = float((sounds["recorded"] - sounds["plain"]).abs().max())
        figures[f"recorded_to_plain_{_name(dtype)}"] = difference
        figures[f"loudest_{_name(dtype)}"] = float(sounds["plain"].abs().max())
    return figures


def encoder_figures(size: ModelSize, device: str) -> Figures:
    """For each arithmetic: shares of a clip's codes that differ from its solo encode in a padded batch, in a batch of
    clips of its own length, and, encoded alone, from float32; and milliseconds of a solo encode of 6 s."""
    figures: Figures = {}
    clips = [_clip(size, device, seconds, seed) for seed, seconds in enumerate(_CLIP_SECONDS)]
    alike = [_clip(size, device, _CLIP_SECONDS[0], 10 + seed) for seed in range(4)]
    exact: list[Tensor] = []
    for name, arithmetic in ARITHMETIC.items():
        encoder = random_encoder(size, device=device, dtype=arithmetic.dtype)
        with _tf32(allowed=arithmetic.tf32):
            figures[name], solo = _encodes(encoder, _cast(clips, arithmetic), _cast(alike, arithmetic))
        exact = exact or solo
        figures[name]["solo_to_float32"] = _changed(exact, solo)
    return figures


def _encodes(encoder: CodecEncoder, clips: list[Tensor], alike: list[Tensor]) -> tuple[Figures, list[Tensor]]:
    solo = [encoder.encode(clip) for clip in clips]
    started = time.perf_counter()
    again = encoder.encode(clips[0]).cpu()
    elapsed = time.perf_counter() - started
    figures = {
        "solo_ms": 1000 * elapsed,
        "solo_again": _changed(solo[:1], [again]),
        "padded_batch": _changed(solo, encoder.encode_padded(clips)),
        "equal_lengths": _changed([encoder.encode(clip) for clip in alike], encoder.encode_padded(alike)),
    }
    return figures, [codes.cpu() for codes in solo]


def _changed(one: list[Tensor], other: list[Tensor]) -> float:
    """The share of codes that differ."""
    differ = [(left.cpu() != right.cpu()).float().flatten() for left, right in zip(one, other, strict=True)]
    return float(torch.cat(differ).mean())


def _chunk_times(stream: RecordedDecoder, size: ModelSize, device: str, chunk: int, runs: int) -> Figures:
    codes, times = _codes(size, device, chunk), []
    for _ in range(runs):
        started = time.perf_counter()
        stream.step(codes).cpu()
        times.append(1000 * (time.perf_counter() - started))
    return {"median": sorted(times)[len(times) // 2], "min": min(times)}


def _codes(size: ModelSize, device: str, frames: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = size.speech.num_codebooks, frames
    return torch.randint(size.speech.codebook_size, shape, generator=generator).to(device)


def _clip(size: ModelSize, device: str, seconds: float, seed: int) -> Tensor:
    """Noise under a slow swell, `(channels, samples)`."""
    generator = torch.Generator().manual_seed(seed)
    samples = round(seconds * size.codec.sample_rate)
    noise = torch.randn(size.codec.channels, samples, generator=generator)
    swell = torch.sin(torch.linspace(0.0, 40.0, samples)).abs()
    return (0.1 * noise * swell).to(device)


def _cast(clips: list[Tensor], arithmetic: Arithmetic) -> list[Tensor]:
    return [clip.to(arithmetic.dtype) for clip in clips]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    """Whether products of float32 on a GPU may round their factors."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32 = before
