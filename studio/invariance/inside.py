"""Where inside the encoder a batch begins to differ, and whether that one module alone shows it."""

from dataclasses import asdict
from typing import Any

import numpy as np

from studio.engine.probe import ModuleDifference, Trace, one_row
from studio.invariance.experiment import Found, Steps, unsteady
from studio.invariance.lab import Compared, Lab
from studio.invariance.shapes import compared, tally


def trace(lab: Lab, steps: Steps) -> Found:
    """The first shape whose codes differ, else the first whose modules do, else what was looked at."""
    counts = tally(compared(lab, steps))
    if counts.unsteady:
        return unsteady(counts, counts.figures())
    pair = _find(lab, steps)
    seen = None if pair is None else _look(lab, pair)
    if pair is None or seen is None or not any(module.differing for module in seen.modules):
        return _nothing(lab)
    modules = [_plain(module) for module in seen.modules]
    first = next(module for module in seen.modules if module.differing)
    origin, codes_differ = seen.origin, int(pair.apart.sum())
    figures = _where(pair, lab) | {
        "modules": modules,
        "first": first.module,
        "first_kind": first.kind,
        "origin": origin.module if origin else None,
        "codes_differ": codes_differ,
    }
    if origin is None:
        return Found(
            figures=figures,
            verdict="not checkable",
            sentence=f"{first.module} differs first, and no module was given equal numbers and gave others.",
        )
    return Found(
        figures=figures,
        verdict="differs",
        sentence=f"The first module that is given equal numbers and gives others is {origin.module} ({origin.kind}): "
        f"{_elements(origin)}, at most {origin.max_abs:.1e}, {lab.here}, in a batch of {pair.rows}; "
        f"{codes_differ} codes of this clip differ.",
    )


def replay(lab: Lab, steps: Steps) -> Found:
    """The saved inputs of that module, through it alone."""
    counts = tally(compared(lab, steps))
    if counts.unsteady:
        return unsteady(counts, counts.figures())
    pair = _find(lab, steps)
    seen = None if pair is None else _look(lab, pair)
    if pair is None or seen is None or seen.origin is None:
        return _nothing(lab)
    origin, again = seen.origin, seen.replay()
    same = (again.digest_solo, again.digest_batch) == (origin.digest_solo, origin.digest_batch)
    figures = _where(pair, lab) | _plain(again) | {"as_in_trace": same}
    if not again.differing:
        sentence = f"{origin.module} alone gives equal numbers: what differed came from outside it."
        return Found(figures=figures, verdict="not checkable", sentence=sentence)
    word = "the same" if same else "other"
    return Found(
        figures=figures,
        verdict="differs",
        sentence=f"{origin.module} ({origin.kind}) alone, given the saved rows, shows {word} differences "
        f"({_elements(again)}): it is this one module on another number of rows, not the network around it.",
    )


def _find(lab: Lab, steps: Steps) -> Compared | None:
    """The comparison in which most codes differ, else the first shape in which the numbers before the quantiser do."""
    worst = max(lab.compared, key=lambda each: int(each.apart.sum()), default=None)
    if worst is None or worst.apart.any():
        return worst
    shapes = {(each.rows, each.clip.samples.shape[1]): each for each in reversed(lab.compared)}
    for each in steps(list(shapes.values()), "looking for a shape whose numbers differ"):
        if not np.array_equal(*_latents(lab, each)):
            return each
    return None


def _latents(lab: Lab, pair: Compared) -> tuple[np.ndarray, np.ndarray]:
    alone = lab.probe.latents(one_row(pair.clip.samples))[0]
    return alone, lab.probe.latents(pair.beside)[pair.row]


def _look(lab: Lab, pair: Compared) -> Trace:
    return lab.probe.trace(one_row(pair.clip.samples), pair.beside, pair.row)


def _where(pair: Compared, lab: Lab) -> dict[str, object]:
    return {"clip": pair.clip.name, "row": pair.row, "rows": pair.rows, "frames": pair.clip.frames(lab.hop)}


def _plain(module: ModuleDifference) -> dict[str, Any]:
    return asdict(module) | {"digests_rows": list(module.digests_rows)}


def _elements(module: ModuleDifference) -> str:
    return f"{module.differing:,} of {module.elements:,} elements"


def _nothing(lab: Lab) -> Found:
    looked = [{"clip": clip.name, "frames": clip.frames(lab.hop), "rows": list(lab.size.batches)} for clip in lab.clips]
    return Found(
        figures={"looked_at": looked},
        verdict="holds",
        sentence=f"Nothing to trace: in none of {len(looked) * len(lab.size.batches)} shapes did codes or the numbers "
        f"before the quantiser differ, {lab.here}.",
    )
