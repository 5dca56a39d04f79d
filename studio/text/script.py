"""From what was typed to utterances: pieces spoken in one go, and the exact silence around each."""

import re
from dataclasses import dataclass

from studio.errors import BadPauseTag, NothingToSpeak, ScriptTooLong
from studio.text.clean import clean, clean_characters
from studio.text.sentences import pieces, sentences

LONGEST_SCRIPT = 100_000
LONGEST_PAUSE = 30.0
SENTENCE_PAUSE = 0.35
PARAGRAPH_PAUSE = 0.7

TAG = re.compile(r"\[\s*pause(?![^\W_])[^\[\]\n]*\]?", re.IGNORECASE)
WELL_FORMED = re.compile(r"\[\s*pause\s+(\d+(?:[.,]\d+)?|[.,]\d+)\s*(ms|s|sec|seconds?)\s*\]", re.IGNORECASE)


@dataclass(frozen=True)
class Utterance:
    """Text spoken in one go, and the seconds of silence after it; only the first has silence before it (`lead`)."""

    text: str
    pause: float = 0.0
    lead: float = 0.0

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("an utterance has words")
        if self.pause < 0 or self.lead < 0:
            raise ValueError("silence is 0 s or more")


def utterances(script: str) -> tuple[Utterance, ...]:
    """The script's words, all of them and in order.

    Between sentences and paragraphs there are natural pauses; a tag such as [pause 0.5s] replaces the pause at its
    place by exactly that much, and two tags in a row add up. Raises NothingToSpeak, BadPauseTag or ScriptTooLong.
    """
    if len(script) > LONGEST_SCRIPT:
        raise ScriptTooLong(len(script), LONGEST_SCRIPT)
    result: list[Utterance] = []
    lead = 0.0
    for text, pause in _between_tags(clean_characters(script)):
        spoken = _utterances_of(clean(text))
        if spoken:
            last = spoken.pop()
            result += [*spoken, Utterance(last.text, pause)]
        elif result:
            result[-1] = Utterance(result[-1].text, result[-1].pause + pause)
        else:
            lead += pause
    if not result:
        raise NothingToSpeak
    result[0] = Utterance(result[0].text, result[0].pause, lead)
    return tuple(result)


def _between_tags(text: str) -> list[tuple[str, float]]:
    """Stretches of text, each with the seconds that the tag behind it asks for; 0 after the last."""
    stretches: list[tuple[str, float]] = []
    start = 0
    for tag in TAG.finditer(text):
        stretches.append((text[start : tag.start()], _seconds(tag.group())))
        start = tag.end()
    return [*stretches, (text[start:], 0.0)]


def _seconds(tag: str) -> float:
    match = WELL_FORMED.fullmatch(tag)
    if match is None:
        raise BadPauseTag(tag[:40], LONGEST_PAUSE)
    number = float(match[1].replace(",", "."))
    seconds = number / 1000 if match[2].lower() == "ms" else number
    if seconds > LONGEST_PAUSE:
        raise BadPauseTag(tag[:40], LONGEST_PAUSE)
    return seconds


def _utterances_of(text: str) -> list[Utterance]:
    """The utterances of plain text with the natural pause after each."""
    result: list[Utterance] = []
    for paragraph in text.split("\n\n"):
        spoken = [piece for sentence in sentences(paragraph) for piece in _with_pauses(sentence)]
        if spoken:
            result += [*spoken[:-1], Utterance(spoken[-1].text, PARAGRAPH_PAUSE)]
    return result


def _with_pauses(sentence: str) -> list[Utterance]:
    """A sentence, in pieces where it is too long for one utterance."""
    parts = pieces(sentence)
    return [Utterance(text, pause) for text, pause in parts[:-1]] + [Utterance(parts[-1][0], SENTENCE_PAUSE)]
