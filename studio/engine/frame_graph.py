"""Steps over fixed buffers: called as they are on a CPU, recorded as CUDA graphs on a GPU.

A step takes nothing, returns nothing and asks no tensor for its value: what it reads and writes are tensors that stay
where they are. A recording repeats the same kernels on the same addresses without any Python between them, so the
numbers are those of the plain call.
"""

from collections.abc import Callable

import torch

Step = Callable[[], None]
Recorder = Callable[[Step, torch.device], Step]

_WARM_UPS = 3
"""Calls before a recording: libraries choose their kernels and take their memory in the first ones."""


def recorded(step: Step, device: torch.device) -> Step:
    """`step` as it is called fastest on `device`. On a GPU it runs a few times here, so its state must be one that may
    be thrown away, or that it leaves as it was."""
    return _captured(step, device) if device.type == "cuda" else step


def plain(step: Step, device: torch.device) -> Step:  # noqa: ARG001
    """`step` as it is: for a single use, or to compare with."""
    return step


@torch.inference_mode()
def _captured(step: Step, device: torch.device) -> Step:
    with torch.cuda.device(device):
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                step()
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Only this thread is watched: another one may decode or encode meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
    return graph.replay
