"""Endless texts for the teachers to read: sentences of Debian's `fortunes`, and made ones for what these lack.

The same seed gives the same texts. Held-out sentences never come out.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from studio.training.held_out import is_held_out

FORTUNES = Path("/usr/share/games/fortunes")
_LEFT_OUT = ("art", "cookie", "ethnic", "men-women", "drugs", "perl")
"""Parts of file names: verse and drawings, programs, and what could offend."""
_NAMES = (
    "Anna Peter Maria James Helen Oliver Sophie Daniel Laura Thomas Emily Henry Clara Martin Alice George Nora Victor "
    "Irene Samuel Rosa Leo Julia Frank Diana Hugo Paula Simon Eva Max"
).split()
_PLACES = (
    "London Paris Chicago Berlin Madrid Dublin Vienna Boston Sydney Tokyo Lisbon Geneva Toronto Athens Oslo Rome"
).split()
_ADJECTIVES = (
    "quiet old small bright cold warm narrow empty green heavy broken gentle clever curious tired hungry famous simple "
    "strange lovely"
).split()
_NOUNS = (
    "garden kitchen letter river bridge window teacher doctor train ship market forest mountain picture song story "
    "bottle jacket camera engine village island dinner morning question answer cousin farmer artist captain dog cat "
    "horse bird tree house boat car road field school office door table chair lamp book"
).split()
_PAST_VERBS = (
    "found painted opened followed carried remembered borrowed repaired noticed watched described ignored cleaned "
    "bought sold lost liked moved dropped visited"
).split()
_VERBS = "find paint open carry repair buy sell lose visit leave".split()
_CIRCUMSTANCES = (
    "by the lake",
    "near the station",
    "in the afternoon",
    "before breakfast",
    "after the storm",
    "on the second floor",
    "at the end of the street",
    "under the old roof",
    "without saying a word",
    "for the first time",
    "all through the night",
    "just behind the church",
    "in the middle of winter",
    "early on Monday",
    "late on Friday",
)
_SHORT = (
    "Good morning.|Thank you.|Yes.|No.|Maybe.|Of course.|Never mind.|Hello there.|Come in.|Wait a moment.|Why not?|"
    "What time is it?|How are you?|Really?|Stop!|I see.|Not today.|Goodbye.|Well done.|See you soon.|Excuse me.|"
    "I am sorry.|Sounds good.|Who is there?"
).split("|")
_DIGITS = "zero one two three four five six seven eight nine".split()


def sentences(folder: Path = FORTUNES) -> list[str]:
    """The plain sentences of 25 to 160 characters in `fortunes`, sorted; empty where they are not installed."""
    found: set[str] = set()
    for path in folder.glob("*"):
        if path.suffix in {".dat", ".u8"} or any(part in path.name for part in _LEFT_OUT):
            continue
        for saying in path.read_text(encoding="utf-8", errors="ignore").split("\n%\n"):
            without_author = re.split(r"\s--\s", re.sub(r"\s+", " ", saying))[0]
            pieces = (piece.strip(" \"'") for piece in re.split(r"(?<=[.!?])\s+", without_author))
            found.update(piece for piece in pieces if _is_plain(piece))
    return sorted(found)


def texts(seed: int, found: Sequence[str]) -> Iterator[str]:
    """Without end: about half of them out of `found`, the others made."""
    made = _Maker(random.Random(seed), found)  # noqa: S311
    while True:
        text = made.next()
        if not is_held_out(text):
            yield text


def _is_plain(text: str) -> bool:
    return 25 <= len(text) <= 160 and not text.isupper() and re.fullmatch(r"[A-Za-z ,.'!?;:-]+", text) is not None


class _Maker:
    def __init__(self, source: random.Random, found: Sequence[str]) -> None:
        self._random, self._found = source, found
        self._kinds = {
            self._sentence: 0.52 if found else 0.0,
            self._event: 0.10,
            self._state: 0.06,
            self._question: 0.05,
            self._number: 0.05,
            self._digit_string: 0.04,
            self._two_events: 0.04,
            self._short: 0.05,
            self._fragment: 0.05 if found else 0.0,
            self._long: 0.06,
        }

    def next(self) -> str:
        (make,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
        return make()

    def _one(self, words: Sequence[str]) -> str:
        return self._random.choice(words)

    def _thing(self) -> str:
        return f"{self._one(_ADJECTIVES)} {self._one(_NOUNS)}"

    def _sentence(self) -> str:
        return self._one(self._found)

    def _event(self) -> str:
        return f"{self._one(_NAMES)} {self._one(_PAST_VERBS)} the {self._thing()} {self._one(_CIRCUMSTANCES)}."

    def _state(self) -> str:
        verb = self._one(("were", "stood", "remained", "looked"))
        subject = f"The {self._one(_NOUNS)} and the {self._one(_NOUNS)}"
        return f"{subject} {verb} {self._one(_ADJECTIVES)} {self._one(_CIRCUMSTANCES)}."

    def _question(self) -> str:
        start = self._one(("Did", "Why did", "When did", "How did"))
        return f"{start} {self._one(_NAMES)} {self._one(_VERBS)} the {self._one(_NOUNS)}?"

    def _number(self) -> str:
        return f"There are {self._random.randint(2, 9999)} {self._one(_NOUNS)}s in {self._one(_PLACES)}."

    def _digit_string(self) -> str:
        return " ".join(self._one(_DIGITS) for _ in range(self._random.randint(3, 9))).capitalize() + "."

    def _two_events(self) -> str:
        friend = f"My friend {self._one(_NAMES)} from {self._one(_PLACES)}"
        second = f"{self._one(_NAMES)} {self._one(_PAST_VERBS)} a {self._one(_NOUNS)}"
        return f"{friend} {self._one(_PAST_VERBS)} a {self._thing()}, and {second}."

    def _short(self) -> str:
        return self._one(_SHORT)

    def _fragment(self) -> str:
        """One to three words out of a sentence."""
        known = [word for word in re.findall(r"[A-Za-z']+", self._sentence()) if len(word) > 2] or ["Yes"]
        count = self._random.randint(1, 3)
        start = self._random.randint(0, max(0, len(known) - count))
        return " ".join(known[start : start + count]).capitalize() + self._one("..?!")

    def _long(self) -> str:
        first = f"I think that the {self._thing()} {self._one(_PAST_VERBS)} the {self._one(_NOUNS)}"
        second = f"because {self._one(_NAMES)} {self._one(_PAST_VERBS)} the {self._thing()}"
        third = f"and nobody {self._one(_PAST_VERBS)} the {self._one(_NOUNS)} {self._one(_CIRCUMSTANCES)}"
        return f"{first} {self._one(_CIRCUMSTANCES)}, {second} {third}."
