"""Memory that runs out while a model is at work becomes a sentence, and what was let go becomes free for others."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from studio.engine.model_errors import OutOfMemory

_OF_THE_CPU = "DefaultCPUAllocator"
"""In the text of the RuntimeError that torch raises where the processor's memory does not suffice."""


@contextmanager
def memory_suffices(title: str, device: str) -> Iterator[None]:
    """Raises OutOfMemory where the block does not get the memory it asks for; the next request starts afresh."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemory(title, device) from error
    except RuntimeError as error:
        if _OF_THE_CPU not in str(error):
            raise
        raise OutOfMemory(title, device) from error


def give_back(device: str) -> None:
    """Gives what nobody holds any more back to the device: torch would keep it for itself, and count it as taken."""
    gc.collect()
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
