"""Which shapes show the effect: rows, lengths, padding, threads and dtypes; the smallest one that does is kept."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from studio.engine.probe import ProbeSetting, one_row
from studio.invariance.case import FailingCase, batch_of, run_case
from studio.invariance.clips import LabClip
from studio.invariance.experiment import Found, Steps
from studio.invariance.lab import Lab
from studio.invariance.tally import Tally

Shape = tuple[int, int]
"""Rows, and how many times the clip's length each row has."""


def search(lab: Lab, steps: Steps) -> Found:
    """Every shape under every setting; all that was tried is in the figures, whether it differs or not."""
    settings = [ProbeSetting(dtype=dtype, num_threads=count) for dtype in lab.dtypes for count in lab.size.threads]
    places = [(setting, frames) for setting in settings for frames in lab.size.search_lengths]
    covered, smallest, benches = [], None, {}
    for setting, frames in steps(places, "rows, lengths, threads and dtypes"):
        bench = benches.setdefault(setting, lab.with_probe(setting))
        for row, case in _looked(bench, frames):
            covered.append(row)
            if case is not None and (smallest is None or case.size < smallest.size):
                smallest = case
    return _told(lab, covered, smallest)


def _looked(lab: Lab, frames: int) -> Iterator[tuple[dict[str, Any], FailingCase | None]]:
    """One row for each shape and kind of clip, with the first case that it gave."""
    ordinary = lab.cuts(frames, lab.size.search_clips)
    for clips in (ordinary, lab.boundaries(frames, lab.size.search_clips)):
        for shape in _shapes(lab) if clips else ():
            yield _shape(lab, clips, frames, shape)


def _shapes(lab: Lab) -> list[Shape]:
    """One row in its own padding too: that alone is another shape."""
    return [(1, 2), *((rows, stretch) for rows in lab.size.batches for stretch in (1, 2))]


def _shape(lab: Lab, clips: list[LabClip], frames: int, shape: Shape) -> tuple[dict[str, Any], FailingCase | None]:
    rows, stretch = shape
    longest, counts, case = stretch * frames * lab.hop, Tally(), None
    for clip in clips:
        solo, batch = run_case(lab.probe, clip.samples, rows, longest)
        if counts.add(clip.name, "", solo, batch).any():
            again = run_case(lab.probe, clip.samples, rows, longest)
            steady = np.array_equal(solo, again[0]) and np.array_equal(batch, again[1])
            counts.unsteady += not steady
            case = case or (_case(lab, clip, shape, solo, batch) if steady else None)
    return {
        "dtype": lab.probe.setting.dtype,
        "threads": lab.probe.setting.num_threads,
        "rows": rows,
        "frames": frames,
        "row_frames": stretch * frames,
        "material": clips[0].group,
        "comparisons": len(clips),
        "codes": counts.codes,
        "differ": counts.differ,
        "unsteady": counts.unsteady,
        "latents_differ": _latents_apart(lab, clips[0], rows, longest),
    }, case


def _case(lab: Lab, clip: LabClip, shape: Shape, solo: np.ndarray, batch: np.ndarray) -> FailingCase:
    rows, stretch = shape
    return FailingCase(
        engine=lab.parts.engine.name if lab.parts.engine else "",
        codec_digest=lab.probe.codec.digest,
        device=lab.probe.device,
        setting=lab.probe.setting,
        clip=clip.name,
        samples=clip.samples,
        rows=rows,
        longest=stretch * clip.samples.shape[1],
        solo=solo,
        batch=batch,
    )


def _latents_apart(lab: Lab, clip: LabClip, rows: int, longest: int) -> float:
    """The share of the numbers before the quantiser that differ: where it is 0, no clip of this shape can show it."""
    alone = lab.probe.latents(one_row(clip.samples))[0]
    beside = lab.probe.latents(batch_of(clip.samples, rows, longest))[0][: len(alone)]
    return float((alone != beside).mean())


def _told(lab: Lab, covered: list[dict[str, Any]], smallest: FailingCase | None) -> Found:
    comparisons = sum(row["comparisons"] for row in covered)
    bits = [row for row in covered if row["latents_differ"]]
    figures: dict[str, Any] = {
        "covered": covered,
        "comparisons": comparisons,
        "shapes": len(covered),
        "shapes_with_other_bits": len(bits),
        "found": smallest is not None,
        "smallest": None,
        "file": None,
    }
    noisy = sum(row["unsteady"] for row in covered)
    if noisy:
        sentence = f"{noisy:,} of {comparisons:,} comparisons differ when the very same is run again: this is noise."
        return Found(figures=figures, verdict="not checkable", sentence=sentence)
    searched = f"{comparisons:,} comparisons in {len(covered):,} shapes"
    before = f"the numbers before the quantiser differ in {len(bits):,} of them"
    if smallest is None:
        sentence = f"No code differs in {searched}; {before}. All that was tried is listed."
        return Found(figures=figures, verdict="differs" if bits else "holds", sentence=sentence)
    figures |= {"smallest": _described(smallest, lab.hop)}
    if lab.parts.smallest is not None:
        smallest.save(lab.parts.smallest)
        figures["file"] = str(lab.parts.smallest)
    shapes = sum(bool(row["differ"]) for row in covered)
    said = f"{searched}: {before}, codes in {shapes:,}. The smallest case is {_small_told(smallest, lab.hop)}."
    return Found(figures=figures, verdict="differs", sentence=said)


def _small_told(case: FailingCase, hop_length: int) -> str:
    frames = case.samples.shape[1] // hop_length
    return (
        f"a clip of {frames} frame{'s' if frames > 1 else ''} in {case.rows} row{'s' if case.rows > 1 else ''} of "
        f"{case.longest // hop_length}, in {case.setting}: {case.differ} of {case.solo.size} codes"
    )


def _described(case: FailingCase, hop_length: int) -> dict[str, Any]:
    return {
        "dtype": case.setting.dtype,
        "threads": case.setting.num_threads,
        "rows": case.rows,
        "frames": case.samples.shape[1] // hop_length,
        "row_frames": case.longest // hop_length,
        "clip": case.clip,
        "codes": int(case.solo.size),
        "differ": case.differ,
    }
