"""English text to the phoneme letters that Kokoro reads, by espeak-ng (GPL: for making data only)."""

# The extra need not be installed where types are checked:
# pyright: reportMissingImports=false

from functools import cache

import espeakng_loader
from phonemizer.backend import EspeakBackend
from phonemizer.backend.espeak.wrapper import EspeakWrapper

_REPLACED = {
    "ʔˌn\u0329": "tᵊn",
    "a^ɪ": "I",
    "a^ʊ": "W",
    "d^ʒ": "ʤ",
    "e^ɪ": "A",
    "t^ʃ": "ʧ",
    "ɔ^ɪ": "Y",
    "ə^l": "ᵊl",
    "o^ʊ": "O",
    "ɜːɹ": "ɜɹ",
    "ɪ^ə": "iə",
    "ɜː": "ɜɹ",
    "ɚ": "əɹ",
    "ʲ": "",
    "r": "ɹ",
    "x": "k",
    "ç": "k",
    "ɐ": "ə",
    "ɬ": "l",
    "\u0303": "",
    "ː": "",
    "e": "A",
    "ʔ": "t",
    "^": "",
}
"""In this order, longer ones first: espeak's American English to Kokoro's letters."""


@cache
def _backend() -> EspeakBackend:
    EspeakWrapper.set_library(espeakng_loader.get_library_path())
    EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
    return EspeakBackend("en-us", preserve_punctuation=True, with_stress=True, tie="^")


def kokoro_phonemes(text: str) -> str:
    """One letter a phoneme, punctuation kept."""
    (spoken,) = _backend().phonemize([text], strip=True)
    for heard, letter in _REPLACED.items():
        spoken = spoken.replace(heard, letter)
    return spoken
