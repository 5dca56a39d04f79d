"""What an ordinary batched fill does to a clip's codes, on the voice model itself: the reason for solo fills."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from counting_engine import talk

from studio.engine.checkpoints import load
from studio.engine.embedded import EmbeddedEngine
from studio.invariance.batched_fill import batched_fill, boundary_clip
from studio.settings import assets_dir

FRAME = 1920


@pytest.fixture(scope="module")
def engine() -> EmbeddedEngine:
    return EmbeddedEngine(load(assets_dir() / "model"))


@pytest.fixture(scope="module")
def clips(engine: EmbeddedEngine) -> list[np.ndarray]:
    return [engine.prepare(talk(4.0, seed=seed)).samples for seed in range(10)]


def test_a_batch_of_one_is_the_canonical_value(engine: EmbeddedEngine) -> None:
    prepared = engine.prepare(talk(1.0))
    assert np.array_equal(engine.encode_together([prepared.samples], 1)[0], engine.encode(prepared).codes)


def test_padding_does_not_leak_whatever_it_does_to_last_bits(engine: EmbeddedEngine, clips: list[np.ndarray]) -> None:
    """Most codes stay: a neighbour and padding may only decide what a last bit decides."""
    ragged = [clip[:, : (2 + index) * FRAME] for index, clip in enumerate(clips[:6])]
    found = batched_fill(engine.encode_together, ragged, num_threads=1, rounds=1, batch_sizes=(2, 3))
    assert [clip.num_frames for clip in found.clips] == [2, 3, 4, 5, 6, 7]
    assert found.worst_rate < 0.5


def test_a_batch_decides_codes_where_a_last_bit_does(engine: EmbeddedEngine, clips: list[np.ndarray]) -> None:
    """Clips of one frame at a boundary between two codes have more than one digest. Which ones is the machine's."""
    first = [clip[:, 4 * FRAME : 5 * FRAME] for clip in clips]
    near = [boundary_clip(engine.encode_together, one, other, num_threads=1) for one, other in pairwise(first[:7])]
    found = batched_fill(engine.encode_together, near, num_threads=1, rounds=2)
    assert found.variant_clips > 0
    assert found.most_digests > 1


def test_an_encoder_that_does_not_look_at_its_neighbours_has_one_digest_a_clip() -> None:
    def plain(batch: Sequence[np.ndarray], _: int) -> list[np.ndarray]:
        return [(clip.reshape(2, -1) * 1000).astype(np.int16) for clip in batch]

    clips = [np.full((1, 8), 0.1 * number, np.float32) for number in range(5)]
    found = batched_fill(plain, clips, num_threads=1)
    assert (found.variant_clips, found.most_digests, found.worst_rate) == (0, 1, 0.0)
    assert all(clip.invariant and clip.batches == 15 for clip in found.clips)


def test_an_encoder_whose_codes_depend_on_the_batch_is_told() -> None:
    def crowded(batch: Sequence[np.ndarray], _: int) -> list[np.ndarray]:
        return [np.full((2, 3), len(batch), np.int16) for _ in batch]

    found = batched_fill(crowded, [np.zeros((1, 8), np.float32)] * 4, num_threads=1, batch_sizes=(1, 2, 4))
    assert (found.variant_clips, found.most_digests, found.worst_rate) == (4, 3, 1.0)


def test_clips_with_the_same_codes_have_no_boundary_between_them() -> None:
    with pytest.raises(ValueError, match="same codes"):
        boundary_clip(
            lambda batch, _: [np.zeros((1, 1), np.int16) for _ in batch],
            np.zeros((1, 4), np.float32),
            np.ones((1, 4), np.float32),
            num_threads=1,
        )
