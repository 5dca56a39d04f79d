"""How the lab encodes: every call after the same one."""

import numpy as np

from studio.engine.probe import CodecProbe, PaddedBatch, cut_rows, one_row


def encode_rows(probe: CodecProbe, batch: PaddedBatch) -> list[np.ndarray]:
    """The codes `(num_codebooks, num_frames)` of each row's clip.

    One frame of silence is encoded before, so that no call follows another one than any other does: what an earlier
    call does to a later one is the question of one experiment only.
    """
    hop = probe.codec.hop_length
    probe.encode(one_row(np.zeros((batch.samples.shape[1], hop), dtype=np.float32)))
    return cut_rows(probe.encode(batch), batch.lengths, hop)


def encode_alone(probe: CodecProbe, samples: np.ndarray) -> np.ndarray:
    """The codes of a clip `(channels, samples)` in a batch of its own."""
    return encode_rows(probe, one_row(samples))[0]
