"""What codes must be like before they are stored: a degenerate encode is an error, never an entry."""

import numpy as np

from studio.engine.interface import CodecIdentity
from studio.errors import DegenerateCodes


def check_codes(codes: np.ndarray, num_samples: int, codec: CodecIdentity) -> None:
    """DegenerateCodes where codes cannot be those of a clip of `num_samples` prepared samples with sound in it."""
    num_frames = num_samples // codec.hop_length  # what is shorter than a frame at the end has none
    if codes.shape != (codec.num_codebooks, num_frames) or num_frames == 0:
        raise DegenerateCodes(f"their shape is {codes.shape}, not {(codec.num_codebooks, num_frames)}")
    if codes.min() < 0 or codes.max() >= codec.codebook_size:
        raise DegenerateCodes(f"values from {codes.min()} to {codes.max()} in codebooks of {codec.codebook_size}")
    if num_frames > 1 and (codes == codes[:, :1]).all():
        raise DegenerateCodes("every frame is the same")
