"""The teachers' speech on disk: one FLAC file an utterance, and a line for each in `SPEAKER_SEED.jsonl`."""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import soundfile

from studio.audio.files import read
from studio.engine.harmonic_signal import SAMPLE_RATE
from studio.training.teachers import Teacher
from studio.training.texts import sentences, texts

SHORTEST, LONGEST = 0.45, 11.0
"""Seconds; one word is long enough to learn from."""


@dataclass(frozen=True)
class Line:
    """One utterance of the corpus."""

    file: str
    speaker: str
    text: str
    duration: float

    def samples(self, folder: Path):
        """Mono float32 at 24 kHz."""
        return read(folder / self.file, name=self.file).samples[0]


def record(teacher: Teacher, folder: Path, *, name: str, minutes: float, seed: int) -> None:
    """Has `teacher` read texts for `minutes` of wall time; speakers by their shares, at 0.9 to 1.1 of their rate."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(seed)  # noqa: S311
    end = time.monotonic() + minutes * 60
    with (folder / f"{name}_{seed}.jsonl").open("w", encoding="utf-8") as index:
        for number, text in enumerate(texts(seed, sentences())):
            if time.monotonic() > end:
                break
            (speaker,) = source.choices(teacher.speakers, teacher.shares)
            samples = teacher.say(text, speaker, rate=source.uniform(0.9, 1.1))
            line = Line(f"{name}_{seed}_{number:05d}.flac", speaker, text, len(samples) / SAMPLE_RATE)
            soundfile.write(folder / line.file, samples, SAMPLE_RATE, subtype="PCM_16")
            index.write(json.dumps(asdict(line)) + "\n")
            index.flush()


def lines(folder: Path) -> Iterator[Line]:
    """The utterances of usable length, in a fixed order."""
    for path in sorted(folder.glob("*.jsonl")):
        for row in path.read_text(encoding="utf-8").splitlines():
            line = Line(**json.loads(row))
            if SHORTEST <= line.duration <= LONGEST:
                yield line
