"""Held-out sentences spoken by the studio's own engine in its first built-in voices, with the teachers' figures beside.

Words by tiny.en, quality by DNSMOS, similarity by Resemblyzer: to the clip that was cloned, and to the other voices'
clips as the floor.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from studio.audio.files import read
from studio.engine.checkpoints import load
from studio.engine.embedded import EmbeddedEngine
from studio.engine.sampling import SamplingOptions
from studio.text.script import Utterance
from studio.training.held_out import PLAIN, SPECIAL, words
from studio.training.measures import Heard, Judges, word_errors
from studio.training.teachers import BUILT_IN, teacher_of


@dataclass(frozen=True)
class Figures:
    """Means over takes; `own` and `others` are similarities, `nearest` the share of takes nearer to their own clip than
    to any other."""

    takes: int
    word_error_rate: float
    quality: float
    own: float
    others: float
    nearest: float


@dataclass(frozen=True)
class Report:
    """All that `evaluate` measured: by speaker of the words ("model" or "teacher") and by voice."""

    model: Figures
    teacher: Figures
    model_by_voice: dict[str, Figures]
    teacher_by_voice: dict[str, Figures]
    special: dict[str, dict[str, str]]
    """What was heard of the longest sentence, one word, a digit string and a question, by voice."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class _Voice:
    name: str
    teacher_speaker: str
    codes: np.ndarray
    clip: Heard


@dataclass(frozen=True)
class _Take:
    voice: str
    errors: int
    words: int
    heard: Heard


def evaluate(model: Path, voices: Path, *, num_voices: int = 4, sentences: int = 30, seed: int = 1) -> Report:
    """Speaks with the model folder `model` in the first voices of the folder `voices`."""
    engine, judges = EmbeddedEngine(load(model)), Judges()
    known = _voices(engine, judges, voices, num_voices)
    clips = {voice.name: voice.clip.voice for voice in known}
    plain = PLAIN[:sentences]
    spoken = [_judge(judges, voice, text, _speak(engine, voice, text, seed)) for voice in known for text in plain]
    special = {
        kind: {voice.name: judges.judge(_speak(engine, voice, text, seed)).text for voice in known}
        for kind, text in SPECIAL.items()
    }
    taught = _teachers_takes(judges, known, plain)
    return Report(
        model=_figures(spoken, clips),
        teacher=_figures(taught, clips),
        model_by_voice=_by_voice(spoken, clips),
        teacher_by_voice=_by_voice(taught, clips),
        special=special,
    )


def describe(report: Report) -> str:
    """The report as a table to read."""
    lines = [f"{'':24}{'WER':>8}{'DNSMOS':>8}{'own':>8}{'others':>8}{'nearest':>8}"]
    lines += [_line("model", report.model), _line("teacher", report.teacher)]
    for name, figures in report.model_by_voice.items():
        lines += [_line(name, figures), _line(f"{name}, teacher", report.teacher_by_voice[name])]
    for kind, heard in report.special.items():
        lines += [f"{kind}, {name}: {text}" for name, text in heard.items()]
    return "\n".join(lines)


def _voices(engine: EmbeddedEngine, judges: Judges, folder: Path, count: int) -> list[_Voice]:
    speakers = {each.voice: each.speaker for each in BUILT_IN}
    entries = json.loads((folder / "voices.json").read_text(encoding="utf-8"))[:count]
    voices = []
    for entry in entries:
        prepared = engine.prepare(read(folder / entry["file"], name=entry["file"]))
        codes = engine.encode(prepared).codes
        voices.append(_Voice(entry["id"], speakers[entry["id"]], codes, judges.judge(prepared.samples[0])))
    return voices


def _speak(engine: EmbeddedEngine, voice: _Voice, text: str, seed: int) -> np.ndarray:
    chunks = engine.speak(Utterance(text), voice.codes, SamplingOptions(seed=seed), index=0)
    return np.concatenate(list(chunks), axis=1)[0].astype(np.float32) / 32768


def _teachers_takes(judges: Judges, voices: Sequence[_Voice], texts: Sequence[str]) -> list[_Take]:
    """The same texts read by the teacher speakers that the voices' clips are of."""
    return [
        _judge(judges, voice, text, teacher_of(voice.teacher_speaker).say(text, voice.teacher_speaker))
        for voice in voices
        for text in texts
    ]


def _judge(judges: Judges, voice: _Voice, text: str, samples: np.ndarray) -> _Take:
    heard = judges.judge(samples)
    return _Take(voice.name, word_errors(words(text), words(heard.text)), len(words(text)), heard)


def _by_voice(takes: Sequence[_Take], clips: dict[str, np.ndarray]) -> dict[str, Figures]:
    return {name: _figures([take for take in takes if take.voice == name], clips) for name in clips}


def _figures(takes: Sequence[_Take], clips: dict[str, np.ndarray]) -> Figures:
    own = [float(take.heard.voice @ clips[take.voice]) for take in takes]
    others = [[float(take.heard.voice @ clip) for name, clip in clips.items() if name != take.voice] for take in takes]
    return Figures(
        takes=len(takes),
        word_error_rate=sum(take.errors for take in takes) / sum(take.words for take in takes),
        quality=float(np.mean([take.heard.quality for take in takes])),
        own=float(np.mean(own)),
        others=float(np.mean(others)),
        nearest=float(np.mean([mine > max(rest) for mine, rest in zip(own, others, strict=True)])),
    )


def _line(name: str, figures: Figures) -> str:
    values = (figures.word_error_rate, figures.quality, figures.own, figures.others, figures.nearest)
    return f"{name:24}" + "".join(f"{value:8.3f}" for value in values)
