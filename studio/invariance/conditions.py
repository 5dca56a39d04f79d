"""Which dtype and how many threads remove the effect, and what encoding alone costs."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from studio.engine.probe import CodecProbe, ProbeSetting, one_row
from studio.invariance.clips import LabClip, together
from studio.invariance.encoding import encode_alone
from studio.invariance.experiment import Found, Steps, unsteady
from studio.invariance.lab import Lab
from studio.invariance.shapes import compared, tally
from studio.invariance.tally import Encode, Tally, share


def settings_table(lab: Lab, steps: Steps) -> Found:
    """The headline rate under each dtype and thread count. It sets them, so it belongs in a process of its own."""
    conditions = [ProbeSetting(dtype=dtype, num_threads=count) for dtype in lab.dtypes for count in lab.size.threads]
    found = [_under(lab.with_probe(setting), steps) for setting in conditions]
    rows = [row for row, _ in found]
    figures: dict[str, Any] = {"rows": rows}
    noisy = next((counts for _, counts in found if counts.unsteady), None)
    if noisy is not None:
        return unsteady(noisy, figures)
    clean = [row for row in rows if not row["differ"] + row["boundary_differ"]]
    said = "; ".join(
        f"{_name(row)}: {row['differ']:,} of {row['codes']:,}, at a boundary {row['boundary_differ']:,} of "
        f"{row['boundary_codes']:,}"
        for row in rows
    )
    removes = f"Nothing differs in {', '.join(map(_name, clean))}. " if clean else "None of them removes it. "
    return Found(
        figures=figures,
        verdict="holds" if len(clean) == len(rows) else "differs",
        sentence=f"{removes if len(clean) < len(rows) else ''}{said}.",
        setting={"dtypes": list(lab.dtypes), "thread_counts": list(lab.size.threads)},
    )


def _under(lab: Lab, steps: Steps) -> tuple[dict[str, Any], Tally]:
    found = compared(lab, steps)
    row: dict[str, Any] = {"dtype": lab.probe.setting.dtype, "threads": lab.probe.setting.num_threads}
    row |= tally(found, "ordinary").figures()
    row |= {f"boundary_{name}": value for name, value in tally(found, "boundary").figures().items()}
    return row, tally(found)


def _name(row: dict[str, Any]) -> str:
    return str(ProbeSetting(dtype=row["dtype"], num_threads=row["threads"]))


def cost(lab: Lab, steps: Steps) -> Found:
    """Seconds for the same clips one after another, in parallel lanes and as one batch; lanes must give equal codes."""
    clips = lab.cuts(max(frames for frames in lab.size.lengths if lab.cuts(frames)))
    lanes = [lab.probes(lab.probe.setting) for _ in range(2)]
    many = lab.probes(ProbeSetting(dtype=lab.probe.setting.dtype, num_threads=max(lab.size.threads)))
    batch = together([clip.samples for clip in clips])
    ways: list[tuple[str, str, Callable[[], object]]] = [
        ("solo", f"one after another, {lab.probe.setting}", lambda: _in_lanes([lab.probe], clips, _plain)),
        ("lanes", f"{len(lanes)} at once, each alone, {lab.probe.setting}", lambda: _in_lanes(lanes, clips, _plain)),
        ("batch", f"one batch of {len(clips)}, {many.setting}", lambda: many.encode(batch)),
    ]
    bars = [_timed(*way, len(clips)) for way in steps(ways, "solo, in lanes, as a batch")]
    counts = Tally()
    for clip, codes in zip(clips, _in_lanes(lanes, clips, encode_alone), strict=True):
        counts.compare(clip.name, "in a lane", lambda clip=clip: lab.solo(clip), _first(codes, lanes[0], clip))
    figures = {
        "bars": bars,
        "audio_seconds": sum(clip.samples.shape[1] for clip in clips) / lab.probe.codec.sample_rate,
        "lanes_differ": counts.differ,
        "codes": counts.codes,
    }
    if counts.unsteady:
        return unsteady(counts, figures)
    return Found(figures=figures, verdict="broken" if counts.differ else "holds", sentence=_cost_told(figures, counts))


def _cost_told(figures: dict[str, Any], counts: Tally) -> str:
    solo, lanes, batch = (bar["seconds"] for bar in figures["bars"])
    change = f"{share(abs(batch / solo - 1))} {'less' if batch < solo else 'more'} than alone"
    word = f"{counts.counted} differ in the lanes" if counts.differ else "the lanes give equal codes"
    return (
        f"{figures['bars'][0]['clips']} clips ({figures['audio_seconds']:.1f} s) take {solo:.2f} s alone, {lanes:.2f} "
        f"s in lanes and {batch:.2f} s in one batch ({change}); {word}."
    )


def _timed(name: str, detail: str, encode: Callable[[], object], clips: int) -> dict[str, Any]:
    """The quicker of two runs after one that is not counted: what happens once only is not what the way costs."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        encode()
        seconds.append(time.perf_counter() - started)
    best = min(seconds[1:])
    return {"name": name, "detail": detail, "clips": clips, "seconds": best, "seconds_a_clip": best / clips}


def _in_lanes(
    lanes: list[CodecProbe], clips: list[LabClip], encode: Callable[[CodecProbe, np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """Every lane takes its share, all at once."""

    def share_of(lane: int) -> list[np.ndarray]:
        return [encode(lanes[lane], clip.samples) for clip in clips[lane :: len(lanes)]]

    with ThreadPoolExecutor(len(lanes)) as pool:
        shares = list(pool.map(share_of, range(len(lanes))))
    return [shares[place % len(lanes)][place // len(lanes)] for place in range(len(clips))]


def _plain(probe: CodecProbe, samples: np.ndarray) -> np.ndarray:
    """Nothing but the encode itself."""
    return probe.encode(one_row(samples))[0]


def _first(codes: np.ndarray, lane: CodecProbe, clip: LabClip) -> Encode:
    """What was found already, then encodes anew."""
    known = [codes]
    return lambda: known.pop() if known else encode_alone(lane, clip.samples)
