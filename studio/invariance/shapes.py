"""Do a clip's codes depend on the shape of the batch: its rows, and the length of the longest one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from studio.engine.probe import PaddedBatch, one_row
from studio.invariance.batched_fill import digest
from studio.invariance.clips import LabClip, together
from studio.invariance.experiment import Found, Steps, judged, unsteady
from studio.invariance.lab import Compared, Lab
from studio.invariance.tally import Tally, share

PUBLISHED_RATE = {
    "what": "MOSS v2 codec in bfloat16 on an H100: a clip alone against an equal-length pair",
    "rate": 0.058,
}


def solo_batch(lab: Lab, steps: Steps) -> Found:
    """Every clip alone against every clip in batches of equal lengths."""
    found = compared(lab, steps)
    tallies = {group: tally(found, group) for group in ("ordinary", "boundary")}
    everything, ordinary, boundary = tally(found), tallies["ordinary"], tallies["boundary"]
    figures = {
        "ordinary": ordinary.per_frame(),
        "boundary": boundary.per_frame(),
        "by_batch": [
            {"rows": rows, "group": group} | tally(found, group, rows).figures()
            for group in tallies
            for rows in lab.size.batches
        ],
        "by_clip": _by_clip(everything, lab.clips, found),
        "by_codebook": everything.per_codebook(),
        "heat_maps": [_heat_map(clip, [each for each in found if each.clip is clip]) for clip in lab.clips],
        "published": PUBLISHED_RATE,
    }
    if everything.unsteady:
        return unsteady(everything, figures)
    return Found(
        figures=figures,
        verdict="differs" if everything.differ else "holds",
        sentence=f"{ordinary.counted} ({share(ordinary.rate)}) differ between a clip alone and the same clip in a "
        f"batch, on {ordinary.differing_frames:,} of {ordinary.frames:,} frames, {lab.here}; of clips made to lie at a "
        f"codeword boundary {boundary.counted} ({share(boundary.rate)}).",
        setting={"batches": list(lab.size.batches), "lengths": list(lab.size.lengths)},
    )


def compared(lab: Lab, steps: Steps) -> list[Compared]:
    """Every clip of the bench alone and in batches of each size, with neighbours of its length; run once a bench."""
    if not lab.compared:
        for clips in steps(_of_one_length(lab.clips), "alone, and in batches of equal lengths"):
            alone = [lab.solo(clip) for clip in clips]
            for rows in lab.size.batches:
                lab.compared.extend(_in_batches(lab, clips, alone, rows))
    return lab.compared


def tally(found: Sequence[Compared], group: str = "", rows: int = 0) -> Tally:
    """The counts of all, or of one group, or of one number of rows."""
    counts = Tally()
    for each in found:
        if group in ("", each.clip.group) and rows in (0, each.rows):
            counts.add(each.clip.name, f"in a batch of {each.rows}", each.solo, each.batch)
            counts.unsteady += not each.steady
    return counts


def _in_batches(lab: Lab, clips: Sequence[LabClip], alone: list[np.ndarray], rows: int) -> Iterator[Compared]:
    """Clips of one length in batches of `rows`, each with those that follow it; the list goes round."""
    for start in range(0, len(clips), rows):
        places = [(start + place) % len(clips) for place in range(rows)]
        batch = together([clips[place].samples for place in places])
        codes = lab.encode(batch)
        differ = any(not np.array_equal(alone[place], row) for place, row in zip(places, codes, strict=True))
        steady = not differ or _same_again(
            lab, batch, codes, [clips[place] for place in places], [alone[place] for place in places]
        )
        for row, place in enumerate(places):
            yield Compared(clips[place], rows, alone[place], codes[row], batch, row, steady)


def _same_again(
    lab: Lab, batch: PaddedBatch, codes: list[np.ndarray], group: Sequence[LabClip], alone: list[np.ndarray]
) -> bool:
    again = [*lab.encode(batch), *(lab.solo(clip) for clip in group)]
    return all(np.array_equal(one, other) for one, other in zip([*codes, *alone], again, strict=True))


def row_count(lab: Lab, steps: Steps) -> Found:
    """A clip alone, beside one of its length and beside a longer one: each of the three against each other."""
    counts, pairs = Tally(), []
    for clip in steps(lab.some, "alone, with an equal one and with a longer one"):
        longer = np.concatenate([clip.samples, clip.samples[:, ::-1]], axis=1)
        shapes = {
            "alone": one_row(clip.samples),
            "with an equal one": together([clip.samples, clip.samples]),
            "with a longer one": together([clip.samples, longer]),
        }
        for one, other in (
            ("alone", "with an equal one"),
            ("alone", "with a longer one"),
            ("with an equal one", "with a longer one"),
        ):
            apart = counts.compare(
                clip.name,
                f"{one} / {other}",
                lambda shape=shapes[one]: lab.encode(shape)[0],
                lambda shape=shapes[other]: lab.encode(shape)[0],
            )
            pairs.append(
                {"clip": clip.name, "one": one, "other": other, "codes": apart.size, "differ": int(apart.sum())}
            )
    figures = counts.figures() | {"pairs": pairs}
    return judged(counts, lab, otherwise="differs", question="differ between batches of other shapes", figures=figures)


def lengths(lab: Lab, steps: Steps) -> Found:
    """A clip beside ones that are longer and longer."""
    counts, points = Tally(), []
    for gap in steps(lab.size.gaps, "beside longer and longer clips"):
        point = Tally()
        for clip in lab.some:
            batch = _with_gap(clip, gap * lab.hop)
            for each in (point, counts):
                each.compare(
                    clip.name,
                    f"beside one {gap} frames longer",
                    lambda clip=clip: lab.solo(clip),
                    lambda batch=batch: lab.encode(batch)[0],
                )
        points.append({"gap_frames": gap} | point.figures())
    trend = trend_of([point["gap_frames"] for point in points], [point["rate"] for point in points], lab.seed)
    figures = counts.figures() | {"points": points, "trend": trend}
    found = judged(
        counts,
        lab,
        otherwise="differs",
        question=f"differ beside clips up to {max(lab.size.gaps)} frames longer",
        figures=figures,
    )
    if found.verdict != "differs":
        return found
    word = "no trend" if trend["p"] > 0.05 else "a trend"
    said = f"{found.sentence[:-1]}; the gap shows {word} (rho {trend['rho']:.2f}, p {trend['p']:.3f})."
    return Found(figures=figures, verdict=found.verdict, sentence=said)


def trend_of(gaps: Sequence[float], rates: Sequence[float], seed: int, shuffles: int = 2000) -> dict[str, float]:
    """Rank correlation of the two, and the share of random orders in which it is as large."""
    places, ranks = _ranks(gaps), _ranks(rates)
    if len(set(rates)) < 2:
        return {"rho": 0.0, "p": 1.0}
    rho = float(np.corrcoef(places, ranks)[0, 1])
    rng = np.random.default_rng(seed)
    chance = [abs(np.corrcoef(places, rng.permutation(ranks))[0, 1]) >= abs(rho) - 1e-12 for _ in range(shuffles)]
    return {"rho": rho, "p": float(np.mean(chance))}


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Equal values share their mean rank."""
    each = np.asarray(values)
    return np.array([(each < value).sum() + ((each == value).sum() - 1) / 2 for value in each])


def _with_gap(clip: LabClip, gap: int) -> PaddedBatch:
    longer = np.pad(clip.samples, ((0, 0), (0, gap)), mode="wrap")
    return together([clip.samples, longer])


def _of_one_length(clips: Sequence[LabClip]) -> list[list[LabClip]]:
    shapes: dict[tuple[str, int], list[LabClip]] = {}
    for clip in clips:
        shapes.setdefault((clip.group, clip.samples.shape[1]), []).append(clip)
    return list(shapes.values())


def _heat_map(clip: LabClip, found: Sequence[Compared]) -> dict[str, Any]:
    """How often each code differed, codebook by codebook."""
    counts = np.sum([each.apart for each in found], axis=0).tolist()
    return {"clip": clip.name, "group": clip.group, "comparisons": len(found), "counts": counts}


def _by_clip(counts: Tally, clips: Sequence[LabClip], found: Sequence[Compared]) -> list[dict[str, Any]]:
    """`values`: how many different codes the clip was given, alone and in all batches."""
    rows = []
    for clip in clips:
        mine = [each for each in counts.comparisons if each["clip"] == clip.name]
        codes, differ = sum(each["codes"] for each in mine), sum(each["differ"] for each in mine)
        worst = max((each["differ"] / each["codes"] for each in mine), default=0.0)
        values = {digest(codes) for each in found if each.clip is clip for codes in (each.solo, each.batch)}
        rows.append(
            {
                "clip": clip.name,
                "group": clip.group,
                "codes": codes,
                "differ": differ,
                "rate": differ / max(codes, 1),
                "worst": worst,
                "values": len(values),
            }
        )
    return rows
