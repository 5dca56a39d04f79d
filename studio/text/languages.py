"""Languages by their ISO 639 code: their English name, and the scripts that they are written in."""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from studio.errors import ScriptError

_ALWAYS = frozenset({"LATIN", "MODIFIER", "MICRO"})
"""Latin letters stand in texts of every language (names, units, addresses), and so does the sign of a millionth."""
_SHOWN = 30


class ForeignLetters(ScriptError):
    def __init__(self, sample: str, languages: str) -> None:
        super().__init__(
            f"This voice model knows no language with the letters of {sample!r}. Write the text in one of its "
            f"languages: {languages}."
        )


@dataclass(frozen=True)
class Language:
    """`scripts`: first words of the names that Unicode gives to letters, beside the Latin ones."""

    name: str
    scripts: frozenset[str] = frozenset()


_HAN = frozenset({"CJK", "IDEOGRAPHIC", "BOPOMOFO"})
_CYRILLIC = frozenset({"CYRILLIC"})
_ARABIC = frozenset({"ARABIC"})

LANGUAGES = {
    "ar": Language("Arabic", _ARABIC),
    "cs": Language("Czech"),
    "da": Language("Danish"),
    "de": Language("German"),
    "el": Language("Greek", frozenset({"GREEK"})),
    "en": Language("English"),
    "es": Language("Spanish"),
    "fa": Language("Persian", _ARABIC),
    "fi": Language("Finnish"),
    "fr": Language("French"),
    "he": Language("Hebrew", frozenset({"HEBREW"})),
    "hi": Language("Hindi", frozenset({"DEVANAGARI"})),
    "hu": Language("Hungarian"),
    "it": Language("Italian"),
    "ja": Language("Japanese", frozenset({"HIRAGANA", "KATAKANA"}) | _HAN),
    "ko": Language("Korean", frozenset({"HANGUL"}) | _HAN),
    "mk": Language("Macedonian", _CYRILLIC),
    "ms": Language("Malay"),
    "nl": Language("Dutch"),
    "pl": Language("Polish"),
    "pt": Language("Portuguese"),
    "ro": Language("Romanian"),
    "ru": Language("Russian", _CYRILLIC),
    "sv": Language("Swedish"),
    "sw": Language("Swahili"),
    "th": Language("Thai", frozenset({"THAI"})),
    "tl": Language("Tagalog"),
    "tr": Language("Turkish"),
    "vi": Language("Vietnamese"),
    "yue": Language("Cantonese", _HAN),
    "zh": Language("Chinese", _HAN),
}


def check_letters(text: str, languages: Collection[str]) -> None:
    """ForeignLetters where a letter of `text` belongs to a script that none of the languages (codes) is written in.

    Digits, marks and symbols belong to no script, and compatibility forms count as what they stand for.
    """
    scripts = _ALWAYS.union(*(LANGUAGES[code].scripts for code in languages))
    for word in text.split():
        if not all(_scripts_of(one) & scripts for one in word if one.isalpha()):
            raise ForeignLetters(word[:_SHOWN], ", ".join(sorted(LANGUAGES[code].name for code in languages)))


def _scripts_of(letter: str) -> set[str]:
    """First words of its name and of the name of what it stands for: CYRILLIC SMALL LETTER A, but of a full-width A
    FULLWIDTH and LATIN."""
    forms = (letter, *unicodedata.normalize("NFKC", letter))
    return {unicodedata.name(form, "").replace("-", " ").split(" ")[0] for form in forms}
