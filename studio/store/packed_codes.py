"""How codes lie on disk: int16, little-endian, row by row, beside their shape and one digest over both."""

import hashlib
import struct

import numpy as np


def pack(codes: np.ndarray) -> bytes:
    """The bytes of codes `(num_codebooks, num_frames)`; ValueError for other shapes and for values beyond int16."""
    if codes.ndim != 2:
        raise ValueError(f"codes have two axes, not {codes.ndim}")
    packed = codes.astype("<i2")
    if not np.array_equal(packed, codes):
        raise ValueError("codes hold values that are not int16")
    return packed.tobytes()


def unpack(packed: bytes, num_codebooks: int, num_frames: int) -> np.ndarray:
    """Codes `(num_codebooks, num_frames)`, read-only for good; ValueError where the bytes do not fill the shape."""
    if len(packed) != 2 * num_codebooks * num_frames:
        raise ValueError(f"{len(packed)} bytes are not {num_codebooks} x {num_frames} codes")
    return np.frombuffer(packed, dtype="<i2").reshape(num_codebooks, num_frames)


def digest(packed: bytes, num_codebooks: int, num_frames: int) -> str:
    """SHA-256 over shape and bytes, so that equal bytes in another shape are other codes."""
    return hashlib.sha256(struct.pack("<QQ", num_codebooks, num_frames) + packed).hexdigest()
