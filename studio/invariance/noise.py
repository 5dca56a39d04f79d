"""Is a run repeatable: the same clip, the same batch, and whatever was encoded before."""

import numpy as np

from studio.engine.probe import PaddedBatch, one_row
from studio.invariance.clips import LabClip, together
from studio.invariance.experiment import Found, Steps, judged
from studio.invariance.lab import Lab
from studio.invariance.tally import Tally


def repeat_solo(lab: Lab, steps: Steps) -> Found:
    """Every clip alone, again and again."""
    tally = Tally()
    for clip in steps(lab.clips, "clips alone, again and again"):
        first = lab.solo(clip)
        for number in range(2, lab.size.repeats + 1):
            tally.add(clip.name, f"encode {number}", first, lab.solo(clip))
    return judged(
        tally, lab, otherwise="broken", question="differ between repeated solo encodes", figures=tally.detailed()
    )


def repeat_batch(lab: Lab, steps: Steps) -> Found:
    """One batch of each length, again and again, row by row."""
    tally = Tally()
    for clips in steps(_of_each_length(lab), "batches, again and again"):
        batch = together([clip.samples for clip in clips])
        first = lab.encode(batch)
        for number in range(2, lab.size.repeats + 1):
            for clip, one, other in zip(clips, first, lab.encode(batch), strict=True):
                tally.add(clip.name, f"run {number}", one, other)
    return judged(
        tally,
        lab,
        otherwise="broken",
        question="differ between repeated runs of one batch",
        figures=tally.detailed(),
    )


def history(lab: Lab, steps: Steps) -> Found:
    """Every clip alone, after nothing, after another clip and after a batch."""
    tally = Tally()
    for clips in steps(_of_each_length(lab), "clips after other ones"):
        clip, others = clips[0], [one_row(clips[-1].samples), together([clip.samples for clip in clips])]
        for before, what in zip(others, ("after another clip", "after a batch"), strict=True):
            tally.compare(
                clip.name,
                what,
                lambda clip=clip: lab.solo(clip),
                lambda clip=clip, before=before: _after(lab, clip, before),
            )
    return judged(
        tally,
        lab,
        otherwise="broken",
        question="change with what was encoded before",
        figures=tally.detailed(),
    )


def _after(lab: Lab, clip: LabClip, before: PaddedBatch) -> np.ndarray:
    lab.probe.encode(before)
    return lab.probe.encode(one_row(clip.samples))[0]


def _of_each_length(lab: Lab) -> list[list[LabClip]]:
    found = [lab.cuts(frames) for frames in lab.size.lengths]
    return [clips for clips in found if clips]
