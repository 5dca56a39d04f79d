from itertools import pairwise

import pytest
import torch
from torch.nn import functional

from studio.engine.codec_attention import SelfAttention, attention_blocks, codec_rotation
from studio.engine.codec_config import PatchConfig, UnpatchConfig
from studio.engine.codec_layers import Patch, Unpatch


@pytest.mark.parametrize("window", [1, 5, 64, 90])
@pytest.mark.parametrize("steps", [1, 63, 64, 65, 250])
@torch.inference_mode()
def test_attention_in_blocks_is_attention_under_the_whole_mask(steps, window):
    torch.manual_seed(3)
    attention, hidden = SelfAttention(32, 2), torch.randn(2, steps, 32)
    turn = codec_rotation(torch.arange(steps), 16, 10_000.0)
    queries, keys, values = attention.project(hidden, turn)
    distance = torch.arange(steps)[:, None] - torch.arange(steps)
    mixed = functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=(distance >= 0) & (distance < window)
    )
    made = attention(hidden, turn, attention_blocks(steps, window, torch.device("cpu")))
    torch.testing.assert_close(made, attention.merge(mixed), rtol=0.0, atol=1e-6)


def test_masks_of_a_long_clip_stay_in_the_order_of_the_window():
    blocks = attention_blocks(40_000, 400, torch.device("cpu"))
    masks = {block.mask.data_ptr(): block.mask.numel() for block in blocks}
    assert sum(masks.values()) <= 3 * 2 * 400 * 400
    assert blocks[-1].queries.stop == 40_000
    assert all(before.queries.stop == after.queries.start for before, after in pairwise(blocks))


def test_positions_turn_pairs_of_neighbouring_features_by_the_released_frequencies():
    torch.manual_seed(4)
    attention, position = SelfAttention(8, 1), 37
    hidden = torch.randn(1, 1, 8)
    still, _, _ = attention.project(hidden, codec_rotation(torch.tensor([0]), 8, 100.0))
    turned, _, _ = attention.project(hidden, codec_rotation(torch.tensor([position]), 8, 100.0))
    frequencies = 100.0 ** (-torch.arange(4.0) / 4)
    expected = torch.view_as_complex(still.view(4, 2)) * torch.polar(torch.ones(4), position * frequencies)
    torch.testing.assert_close(torch.view_as_complex(turned.view(4, 2)), expected, rtol=0.0, atol=1e-5)


def test_a_patch_puts_the_steps_of_each_feature_side_by_side_and_unpatch_undoes_it():
    hidden = torch.arange(12.0).view(1, 6, 2)
    patched = Patch(3)(hidden)
    assert patched[0, 0].tolist() == [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    assert torch.equal(Unpatch(3)(patched), hidden)
    assert PatchConfig(patch=3).output_width(2) == 6
    assert UnpatchConfig(patch=3).output_width(6) == 2
