import pytest
import torch

from studio.engine.transformer import KeyValues, WindowedStack, rotate, rotation


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("window", [3, 7, 50])
def test_a_stack_streamed_row_by_row_equals_the_whole_sequence(rows, window):
    torch.manual_seed(0)
    stack = WindowedStack(32, 2, window, 2)
    hidden = torch.randn(1, 40, 32)
    with torch.inference_mode():
        whole = stack(hidden)
        state = stack.start(rows, torch.device("cpu"))
        streamed = torch.cat([stack.step(part, state) for part in hidden.split(rows, dim=1)], dim=1)
    torch.testing.assert_close(streamed, whole, atol=1e-5, rtol=1e-5)


def test_a_row_never_sees_what_comes_after_it_nor_what_lies_before_its_window():
    torch.manual_seed(0)
    stack = WindowedStack(32, 1, 5, 2)
    hidden = torch.randn(1, 20, 32)
    changed = hidden.clone()
    changed[:, 11:] += 1
    changed[:, :6] += 1
    with torch.inference_mode():
        torch.testing.assert_close(stack(changed)[:, 10], stack(hidden)[:, 10])


def test_turning_by_positions_makes_scores_depend_on_distance_only():
    states = torch.randn(1, 1, 1, 16)
    near = rotate(states, rotation(torch.tensor([3]), 16)) * rotate(states, rotation(torch.tensor([5]), 16))
    far = rotate(states, rotation(torch.tensor([103]), 16)) * rotate(states, rotation(torch.tensor([105]), 16))
    torch.testing.assert_close(near.sum(), far.sum(), atol=1e-4, rtol=1e-4)


def test_keep_last_keeps_the_newest_entries_even_where_old_and_new_places_overlap():
    cache = KeyValues(1, 1, 1, 10, torch.device("cpu"))
    cache.append(torch.arange(10.0).view(1, 1, 10, 1), torch.arange(10.0).view(1, 1, 10, 1))
    cache.keep_last(8)
    keys, values = cache.append(torch.full((1, 1, 1, 1), 10.0), torch.full((1, 1, 1, 1), 10.0))
    assert keys.flatten().tolist() == values.flatten().tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_full_buffer_is_an_error_of_ours_and_never_overwrites():
    cache = KeyValues(1, 1, 1, 1, torch.device("cpu"))
    cache.append(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))
    with pytest.raises(AssertionError, match="full"):
        cache.append(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))
