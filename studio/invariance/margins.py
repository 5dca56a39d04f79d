"""Why these codes and no others: how near to a boundary between two codewords the ones that flip were."""

from typing import Any

import numpy as np

from studio.engine.probe import one_row
from studio.invariance.clips import LabClip
from studio.invariance.experiment import Found, Steps, unsteady
from studio.invariance.lab import Lab
from studio.invariance.shapes import compared, tally
from studio.invariance.tally import share

SMALL = 0.1
"""A code that flips by rounding has one of the smallest tenth of margins; wider ones are no matter of last bits."""


def margins(lab: Lab, steps: Steps) -> Found:
    """Margins of all codes, and of those that differ in any batch: the first of a frame, and those that follow it."""
    found = compared(lab, steps)
    counts = tally(found)
    if counts.unsteady:
        return unsteady(counts, counts.figures())
    flipped = {clip.name: [each.apart for each in found if each.clip is clip] for clip in lab.clips}
    usual, all_margins, flips = [], [], []
    for clip in steps(lab.clips, "distances to the codewords"):
        distances = lab.probe.distances(one_row(clip.samples))[0]
        each = np.maximum(distances[..., 1] - distances[..., 0], 0.0)
        all_margins.append((each, np.any(flipped[clip.name], axis=0)))
        flips += _flips(clip, each, flipped[clip.name])
        if clip.group == "ordinary":
            usual.append(each.ravel())
    return _told(lab, np.sort(np.concatenate(usual)), all_margins, flips)


def _told(
    lab: Lab, usual: np.ndarray, all_margins: list[tuple[np.ndarray, np.ndarray]], flips: list[dict[str, Any]]
) -> Found:
    """`usual` are the sorted margins of ordinary clips: what a flipped one's place is told against."""
    for flip in flips:
        flip["percentile"] = max(1, int(np.searchsorted(usual, flip["margin"], side="right"))) / len(usual)
    roots = [flip for flip in flips if not flip["follows"]]
    places = np.array([flip["percentile"] for flip in roots])
    figures: dict[str, Any] = {
        "bins": _bins(all_margins),
        "flips": flips,
        "codes": sum(each.size for each, _ in all_margins),
        "flipped": len(flips),
        "roots": len(roots),
        "follow": len(flips) - len(roots),
        "median_margin": float(np.median(usual)),
        "root_median_percentile": float(np.median(places)) if roots else None,
        "root_largest_percentile": float(places.max()) if roots else None,
    }
    if not roots:
        sentence = f"No code flips, so no margin is to blame; the median margin is {np.median(usual):.2g}, {lab.here}."
        return Found(figures=figures, verdict="holds", sentence=sentence)
    small = bool(np.median(places) <= SMALL)
    word = "lie at the small end" if small else "do not lie at the small end, so this is more than rounding"
    return Found(
        figures=figures,
        verdict="differs" if small else "broken",
        sentence=f"The {len(roots)} codes that flip first in their frame {word}: half of them have margins among the "
        f"smallest {share(float(np.median(places)))} of those of ordinary clips, all of them among the smallest "
        f"{share(float(places.max()))}; {figures['follow']} more follow in later codebooks, {lab.here}.",
    )


def _flips(clip: LabClip, each: np.ndarray, apart: list[np.ndarray]) -> list[dict[str, Any]]:
    """Codes that differ in any comparison. One follows where an earlier codebook of its frame differs each time."""
    found = []
    ever = np.any(apart, axis=0)
    leads = np.any([one & (np.cumsum(one, axis=0) == 1) for one in apart], axis=0)
    for codebook, frame in np.argwhere(ever):
        found.append(
            {
                "clip": clip.name,
                "group": clip.group,
                "frame": int(frame),
                "codebook": int(codebook),
                "margin": float(each[codebook, frame]),
                "follows": not bool(leads[codebook, frame]),
            }
        )
    return found


def _bins(all_margins: list[tuple[np.ndarray, np.ndarray]]) -> list[dict[str, Any]]:
    """Two bins a decade; the first takes what is smaller."""
    values = np.concatenate([each.ravel() for each, _ in all_margins])
    ever = np.concatenate([flipped.ravel() for _, flipped in all_margins])
    places = np.floor(2 * np.log10(np.maximum(values, 1e-8))).astype(int)
    return [
        {
            "low": float(10 ** (place / 2)),
            "high": float(10 ** ((place + 1) / 2)),
            "codes": int((places == place).sum()),
            "flipped": int(ever[places == place].sum()),
        }
        for place in range(places.min(), places.max() + 1)
    ]
