"""Finding voices: by words in any of their texts, in the order somebody asks for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from studio.errors import SettingError
from studio.store.voice_names import fold
from studio.store.voice_records import Voice

_ORDERS: Mapping[str, Callable[[Voice], Any]] = {
    "name": lambda voice: fold(voice.name),
    "created": lambda voice: -voice.created,
    "last_used": lambda voice: (voice.last_used is None, -(voice.last_used or 0.0)),
    "times_used": lambda voice: -voice.times_used,
}
ORDERS = tuple(_ORDERS)
"""Names run from A to Z, times from the latest, uses from the most."""


def matching(voices: Sequence[Voice], words: str, transcripts: Mapping[str, str]) -> list[Voice]:
    """Those whose name, tags, notes, description or transcripts contain every word, in any case.

    `transcripts` are those of all clips, by voice id. No words match every voice.
    """
    wanted = fold(words).split()

    def found_in(voice: Voice) -> bool:
        texts = (voice.name, *voice.tags, voice.notes, voice.description, transcripts.get(voice.id, ""))
        text = fold("\n".join(texts))
        return all(word in text for word in wanted)

    return [voice for voice in voices if found_in(voice)]


def in_order(voices: Sequence[Voice], order: str) -> list[Voice]:
    """The voices by one of ORDERS; those that are equal in it stay in the order they came in."""
    if order not in _ORDERS:
        raise SettingError("The order", order, f"choose one of {', '.join(ORDERS)}.")
    return sorted(voices, key=_ORDERS[order])
