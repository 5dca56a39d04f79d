"""A look inside a network: what every module gave for a clip alone, against what it gave for the clip in a batch."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from studio.engine.probe import ModuleDifference
from studio.engine.probe_thread import ProbeThread


@dataclass(frozen=True)
class _Call:
    """One call of a module: its arguments and its output, as they were."""

    arguments: tuple[Any, ...]
    output: Tensor


class NetworkTrace:
    """Implements `Trace`: two runs of one network, the second compared with the first module by module."""

    def __init__(
        self,
        network: nn.Module,
        solo: Callable[[], object],
        batch: Callable[[], object],
        row: int,
        thread: ProbeThread,
    ) -> None:
        """`solo` runs the network on one row and `batch` on several; every output has its rows first. Both runs'
        activations are held until they are compared. A module that is not given the whole batch is left out."""
        self._modules = dict(network.named_modules())
        self._row, self._thread = row, thread
        calls = thread.run(lambda: (_recorded(network, solo), _recorded(network, batch)))
        rows = max(len(call.output) for call in calls[1].values())
        whole = [name for name, call in calls[1].items() if len(call.output) == rows and name in calls[0]]
        self.modules = tuple(self._difference(name, *(each[name] for each in calls)) for name in whole)
        self.origin = next((each for each in self.modules if each.differing and not each.input_differs), None)
        self._saved = tuple(each[self.origin.module].arguments for each in calls) if self.origin else ()

    def replay(self) -> ModuleDifference:
        assert self.origin is not None, "nothing differed, so nothing was saved"
        name, module = self.origin.module, self._modules[self.origin.module]

        def again() -> list[_Call]:
            with self._thread.networks():
                return [_Call(arguments, module(*arguments)) for arguments in self._saved]

        return self._difference(name, *self._thread.run(again))

    def _difference(self, name: str, solo: _Call, batch: _Call) -> ModuleDifference:
        mine, theirs = solo.output[0], _cut(batch.output, self._row, solo.output)
        apart = (mine.double() - theirs.double()).abs()
        return ModuleDifference(
            module=name,
            kind=type(self._modules[name]).__name__,
            elements=mine.numel(),
            differing=int((mine != theirs).sum()),
            max_abs=float(apart.max()),
            mean_abs=float(apart.mean()),
            input_differs=not torch.equal(solo.arguments[0][0], _cut(batch.arguments[0], self._row, solo.arguments[0])),
            digest_solo=_digest(mine),
            digest_batch=_digest(theirs),
            digests_rows=tuple(_digest(_cut(batch.output, row, solo.output)) for row in range(len(batch.output))),
        )


def _recorded(network: nn.Module, run: Callable[[], object]) -> dict[str, _Call]:
    """Every call in the order in which they ended. A module that is called again keeps its first call."""
    calls: dict[str, _Call] = {}
    with _hooked(network, calls):
        run()
    return calls


@contextmanager
def _hooked(network: nn.Module, calls: dict[str, _Call]) -> Iterator[None]:
    def note(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, arguments: tuple[Any, ...], output: object) -> None:
            if isinstance(output, Tensor) and arguments and isinstance(arguments[0], Tensor):
                calls.setdefault(name, _Call(arguments, output))

        return hook

    handles = [module.register_forward_hook(note(name)) for name, module in network.named_modules() if name]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _cut(batch: Tensor, row: int, solo: Tensor) -> Tensor:
    """The part of a row of `batch` that stands where the one row of `solo` does."""
    return batch[row][tuple(slice(size) for size in solo.shape[1:])]


def _digest(values: Tensor) -> str:
    content = values.detach().float().cpu().contiguous().numpy().tobytes()
    return hashlib.sha256(repr(tuple(values.shape)).encode() + content).hexdigest()[:16]
