"""Encoding several clips in one padded batch: a value that depends on who else is in it, made for comparing only."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.lanes import set_lane_threads


def encode_padded(
    encode: Callable[[Tensor], Tensor], clips: Sequence[np.ndarray], *, hop_length: int, num_threads: int
) -> list[np.ndarray]:
    """Codes `(num_codebooks, num_frames)` of prepared clips `(1, samples)`, padded at the end to the longest.

    `encode` takes `(batch, samples)` to `(batch, num_codebooks, num_frames)`. It runs in a thread of its own, because
    torch keeps the thread count with the thread that set it; float32 and plain attention as in the solo encode.
    """
    longest = max(clip.shape[1] for clip in clips)
    batch = np.zeros((len(clips), longest), dtype=np.float32)
    for row, clip in zip(batch, clips, strict=True):
        row[: clip.shape[1]] = clip[0]
    with ThreadPoolExecutor(1) as thread:
        codes = thread.submit(_run, encode, torch.from_numpy(batch), num_threads).result()
    return [np.ascontiguousarray(row[:, : clip.shape[1] // hop_length]) for row, clip in zip(codes, clips, strict=True)]


@torch.inference_mode()
def _run(encode: Callable[[Tensor], Tensor], batch: Tensor, num_threads: int) -> np.ndarray:
    set_lane_threads(num_threads)
    with fixed_arithmetic():
        return encode(batch).numpy().astype(np.int16)
