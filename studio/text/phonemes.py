"""English text as the phonemes the embedded voice was trained on, by gruut: offline, always the same for one text."""

import logging
import sqlite3
import threading
from functools import cache
from pathlib import Path

import gruut_lang_en
from gruut.phonemize import SqlitePhonemizer
from gruut.text_processor import TextProcessor
from gruut.utils import remove_non_word_chars

from studio.errors import NothingToSpeak, UnspeakableScript
from studio.text.english import SYMBOLS, plain_letters, spoken

LANGUAGE = "en-us"
WORD_BREAK = " "
BREAKS = frozenset({WORD_BREAK, "|", "‖"})
LONGEST_SAMPLE = 30


def phonemes(text: str) -> tuple[str, ...]:
    """The phonemes of a text, WORD_BREAK after each word, "|" and "‖" at gruut's pauses; safe from any thread."""
    return _reader().read(text)


def check_speakable(text: str) -> None:
    """Raise UnspeakableScript for letters that are not Latin or have no sound, NothingToSpeak without a word."""
    foreign = _foreign_sample(text)
    if foreign:
        raise UnspeakableScript(foreign, "English")
    if not any(char.isalnum() for char in text):
        raise NothingToSpeak
    # Every plain letter and digit has a sound; reading a long script here would keep its first sound back.
    if not any(char.isascii() and char.isalnum() for char in text) and BREAKS.issuperset(phonemes(text)):
        raise UnspeakableScript(text.strip()[:LONGEST_SAMPLE], "English")


def warm_up() -> None:
    """Load everything that the first sentence would wait for."""
    phonemes(
        "The 2 words, antidisestablish and xylographed, were read on 12/05/2021 (2021-12-05) at 5:30 p.m. for $3.50."
    )


class _Reader:
    """One gruut processor for all threads, taken in turns: gruut's own, one a thread, cost 200 ms and memory each.

    Its lexicon file has no index, so that every new word takes 7 ms; it is copied into memory with one.
    """

    def __init__(self, lexicon: Path) -> None:
        self._lock = threading.Lock()
        self._lexicon = sqlite3.connect("file::memory:", uri=True, check_same_thread=False)
        self._lexicon.execute("ATTACH ? AS file", (f"{lexicon.as_uri()}?mode=ro",))
        self._lexicon.execute(
            "CREATE TABLE word_phonemes AS SELECT word, pron_order, phonemes, role FROM file.word_phonemes ORDER BY id"
        )
        self._lexicon.execute("CREATE INDEX by_word ON word_phonemes (word, pron_order)")
        self._lexicon.commit()
        self._lexicon.execute("DETACH file")
        self._words = SqlitePhonemizer(
            self._lexicon,
            word_transform_funcs=[str.lower, remove_non_word_chars, lambda word: remove_non_word_chars(word.lower())],
        )
        self._processor = TextProcessor(default_lang=LANGUAGE, lookup_phonemes=self._words)

    def read(self, text: str) -> tuple[str, ...]:
        with self._lock:
            # What was looked up before changes how gruut cuts a word; a text must not depend on the texts before it.
            self._words.lexicon.clear()
            graph, root = self._processor(spoken(text, self._knows), lang=LANGUAGE)
            symbols: list[str] = []
            for sentence in self._processor.sentences(graph, root):
                for word in sentence:
                    symbols.extend(word.phonemes or ())
                    if symbols and symbols[-1] != WORD_BREAK:
                        symbols.append(WORD_BREAK)
            return tuple(symbols)

    def _knows(self, word: str) -> bool:
        return (
            self._lexicon.execute("SELECT 1 FROM word_phonemes WHERE word = ? LIMIT 1", (word,)).fetchone() is not None
        )


_loading = threading.Lock()


def _reader() -> _Reader:
    with _loading:
        return _load()


@cache
def _load() -> _Reader:
    # gruut logs a traceback for each number it cannot read and goes on; nobody could act on it.
    logging.getLogger("gruut").setLevel(logging.CRITICAL)
    return _Reader(Path(gruut_lang_en.get_lang_dir()) / "lexicon.db")


def _foreign_sample(text: str) -> str:
    """The first stretch of letters that English does not know, with the spaces between; empty where there is none."""
    foreign = {char for char in set(text) if char.isalpha() and not _is_english(char)}
    start = next((index for index, char in enumerate(text) if char in foreign), None)
    if start is None:
        return ""
    end = start
    while end < min(len(text), start + LONGEST_SAMPLE) and (text[end] in foreign or not text[end].isalnum()):
        end += 1
    return text[start:end].strip()


def _is_english(letter: str) -> bool:
    """Whether the letter is Latin, accents aside, or a symbol that is spoken, such as that of "micro"."""
    return plain_letters(letter).isascii() or letter in SYMBOLS
