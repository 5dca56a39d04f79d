"""The same questions to the other stages: what is drawn, takes beside others, and the stream against the whole."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.generation import GenerationLane
from studio.engine.interface import Engine
from studio.engine.random_codec import RandomCodec
from studio.engine.sampling import CounterDraws, SamplingOptions
from studio.invariance.batched_fill import digest
from studio.invariance.experiment import Found, Steps, missing
from studio.invariance.lab import Lab
from studio.text.script import Utterance

TEXTS = ("Yes.", "The ferry leaves at noon.", "Nobody believed that it would ever stand straight, and yet it does.")
CHUNKS = (1, 3, 8)
_FRAMES, _POSITIONS = 200, 16


class Draws(Protocol):
    def frame(self, frame: int, count: int) -> np.ndarray: ...


def sampling(lab: Lab, steps: Steps) -> Found:
    """What is drawn for each place of several takes, in order, and in random order with the takes mixed."""
    return compare_draws(CounterDraws, lab.seed, steps)


def compare_draws(draws: Callable[[int, int], Draws], seed: int, steps: Steps) -> Found:
    """`draws` takes a seed and the number of an utterance."""
    takes = [(seed + take, utterance) for take in range(4) for utterance in range(2)]
    expected = {take: [draws(*take).frame(frame, _POSITIONS) for frame in range(_FRAMES)] for take in takes}
    rng, places, differ = np.random.default_rng(seed), 0, 0
    for _ in steps(range(3), "the same places in other orders"):
        mixed = {take: draws(*take) for take in takes}
        for place in rng.permutation(len(takes) * _FRAMES):
            take, frame = takes[place % len(takes)], int(place // len(takes))
            count = int(rng.integers(1, _POSITIONS + 1))
            differ += int((mixed[take].frame(frame, count) != expected[take][frame][:count]).sum())
            places += count
    what = "differ" if differ else "are equal"
    return Found(
        figures={"places": places, "differ": differ, "orders": 3, "takes": len(takes)},
        verdict="broken" if differ else "holds",
        sentence=f"{differ or places:,} of {places:,} draws {what} when {len(takes)} takes draw in mixed order.",
    )


def slots(lab: Lab, steps: Steps) -> Found:
    """Takes alone, and beside others that began before them and end before or after them."""
    engine = lab.parts.engine
    if engine is None:
        return missing("no engine was handed in")
    if isinstance(engine, RandomCodec):
        return missing("a codec with random weights does not speak")
    source = lab.sources[0]
    codes = engine.encode(engine.prepare(Waveform(source.samples, engine.codec.sample_rate))).codes
    alone = [_spoken(engine, codes, [text], lab.seed)[0] for text in steps(TEXTS, "takes alone")]
    rows: list[dict[str, Any]] = []
    for number in steps(range(len(TEXTS)), "the same takes beside others"):
        turned = [*TEXTS[number:], *TEXTS[:number]]
        for text, pcm in zip(turned, _spoken(engine, codes, turned, lab.seed), strict=True):
            rows.append(_compared(text, turned.index(text), alone[TEXTS.index(text)], pcm))
    differ = sum(bool(row["differ"]) for row in rows)
    word = (
        f"{differ} of {len(rows)} takes have other samples"
        if differ
        else f"{len(rows)} takes are equal to the last sample"
    )
    return Found(
        figures={"takes": rows},
        verdict="broken" if differ else "holds",
        sentence=f"{word} beside {len(TEXTS) - 1} others, in another place and with neighbours of other lengths.",
    )


def _spoken(engine: Engine, codes: np.ndarray, texts: list[str], seed: int) -> list[np.ndarray]:
    """PCM `(channels, samples)` of takes that are spoken at once, each with a seed of its own text."""
    lane = GenerationLane(capacity=10_000)
    streams = [
        lane.open(engine.speak(Utterance(text), codes, SamplingOptions(seed=seed + TEXTS.index(text)), index=0))
        for text in texts
    ]
    takes = [np.concatenate(list(stream), axis=1) for stream in streams]
    lane.shut()
    return takes


def _compared(text: str, place: int, alone: np.ndarray, beside: np.ndarray) -> dict[str, Any]:
    equal_size = alone.shape == beside.shape
    return {
        "take": text,
        "place": place,
        "neighbours": len(TEXTS) - 1,
        "samples": int(alone.size),
        "differ": int((alone != beside).sum()) if equal_size else int(max(alone.size, beside.size)),
        "alone": digest(alone)[:16],
        "beside": digest(beside)[:16],
    }


def chunks(lab: Lab, steps: Steps) -> Found:
    """A stream in chunks of several sizes, against each other and against the whole decode."""
    rows, tolerance = [], lab.probe.whole_tolerance
    for clip in steps(lab.cuts(max(lab.size.lengths), 4), "decoding in chunks and whole"):
        codes = lab.solo(clip)
        streams = {chunk: lab.probe.decode_streamed(codes, chunk) for chunk in CHUNKS}
        whole, first = lab.probe.decode(codes), streams[CHUNKS[0]]
        rows.append(
            {
                "clip": clip.name,
                "chunkings": [
                    {"frames_a_chunk": chunk, "samples": int(sound.size), "differ": _apart(first, sound)}
                    for chunk, sound in streams.items()
                ],
                "whole_max_abs": float(np.abs(whole - first).max()) if whole.shape == first.shape else None,
            }
        )
    differ = sum(each["differ"] for row in rows for each in row["chunkings"])
    lengths_fit = all(row["whole_max_abs"] is not None for row in rows)
    worst = max((row["whole_max_abs"] or 0.0 for row in rows), default=0.0)
    said = f"{differ:,} samples differ between chunkings" if differ else "Every chunking gives equal samples"
    return Found(
        figures={"clips": rows, "tolerance": tolerance},
        verdict="broken" if differ or worst > tolerance or not lengths_fit else "holds",
        sentence=f"{said}; the whole decode is within {worst:.1e} of the stream ({tolerance:.0e} is allowed).",
    )


def _apart(one: np.ndarray, other: np.ndarray) -> int:
    return int((one != other).sum()) if one.shape == other.shape else int(max(one.size, other.size))
