"""What the buttons and lists of the page do. Nothing of a visitor is held here."""

import math
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from studio.audio.transcribe import Transcriber
from studio.casting import write_down
from studio.engine_room import EngineRoom
from studio.errors import ClipError, SettingError, StudioError
from studio.settings import Settings
from studio.store.take_bound import TakesBound
from studio.store.voice_records import Voice, VoiceDetails
from studio.synthesis import Synthesizer
from studio.ui.cards import take_list, voice_list
from studio.ui.findings import NOTHING_FOUND, findings_card
from studio.ui.totals import totals_section

TAKES_SHOWN = 20
USUAL_ORDER = "own first"
_NO_CLIP = "There is no clip yet. Drop a file or record one, then make the voice."
_GONE = "The voice that was selected here has been removed. Choose another one."


class Page:
    """The listeners of the page. They hold nothing of a visitor: what is chosen lives in the visitor's browser."""

    def __init__(self, room: EngineRoom, settings: Settings) -> None:
        self._room = room
        self._transcriber = Transcriber(settings.asr_dir)
        self._bound = TakesBound(settings.database, room.embedded.takes, bound=settings.takes_mb * 2**20)

    @property
    def _synthesizer(self) -> Synthesizer:
        """To look at; whoever encodes holds the room."""
        return self._room.current

    def open(self, selected: str | None) -> tuple[Any, Any, str, str | None]:
        """Voices, takes, totals and the voice that is selected: the stored one, or the first on a first visit."""
        voices = self._synthesizer.voices.list()
        known = {voice.id for voice in voices}
        if not selected:
            selected = next((voice.id for voice in voices), None)
        gone = selected is not None and selected not in known
        selected = None if gone else selected
        shown = self._voices(selected) | ({"note": _GONE} if gone else {})
        takes, room = self._takes(TAKES_SHOWN), self._bound.look()
        if room.over_bound:
            takes["warning"] = str(room)
        return shown, takes, self._totals(), selected

    def refresh(
        self, selected: str | None, search: str, order: str, sought: str, starred: bool
    ) -> tuple[Any, Any, str]:
        return self._voices(selected, search, order), self.find_takes(sought, starred), self._totals()

    def find_takes(self, sought: str, starred: bool) -> Any:
        return self._takes(TAKES_SHOWN, sought, starred)

    def find(self, selected: str | None, search: str, order: str) -> Any:
        return self._asking(lambda: self._voices(selected, search, order))

    def choose(self, event: gr.EventData) -> str:
        return self._asking(lambda: self._synthesizer.voices.get(_identifier(event)).id)

    def listen(self, clip: str | None) -> tuple[Any, Any, Any]:
        """What the reference desk finds in a clip before it is encoded, and the trim form emptied."""
        return self._asking(lambda: findings_card(clip)), None, None

    def trim(self, event: gr.EventData) -> tuple[Any, Any]:
        """The start and the end that a finding suggests."""
        data = event._data if isinstance(event._data, dict) else {}
        return _seconds(data.get("start")), _seconds(data.get("end"))

    def transcribe(self, clip: str | None, start: float | None, end: float | None) -> str:
        """What is said in the part of the clip that is to be used."""
        return self._asking(lambda: self._words(clip, _trim(start, end)))

    def _words(self, clip: str | None, trim: tuple[float, float] | None) -> str:
        if not clip:
            raise ClipError(_NO_CLIP)
        return write_down(self._transcriber, Path(clip), trim)

    def add_voice(
        self, clip: str | None, start: float | None, end: float | None, name: str, transcript: str, consent: str
    ) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any, str]:
        """Makes a voice of the dropped or recorded clip, selects it and empties the form."""
        voice = self._asking(lambda: self._add(clip, _trim(start, end), name, transcript, consent))
        kept = f"“{voice.name}” is selected. Its codes are kept and will not be encoded again."
        gr.Info(escape(kept), title="New voice")
        return self._voices(voice.id), None, NOTHING_FOUND, None, None, "", "", "", voice.id

    def _add(
        self, clip: str | None, trim: tuple[float, float] | None, name: str, transcript: str, consent: str
    ) -> Voice:
        if not clip:
            raise ClipError(_NO_CLIP)
        if not name.strip():
            raise SettingError("The name of a voice", "blank", "type how it is to be called here.")
        path = Path(clip)
        details = VoiceDetails(name=name, transcript=transcript, consent=consent, clip_name=path.name, trim=trim)
        with self._room.held() as synthesizer:
            return synthesizer.add_voice(path, details).voice

    def remove_voice(
        self, selected: str | None, search: str, order: str, event: gr.EventData
    ) -> tuple[Any, str | None]:
        removed = _identifier(event)
        self._asking(lambda: self._synthesizer.voices.remove(removed))
        kept = None if selected == removed else selected
        return self._voices(kept, search, order), kept

    def remove_take(self, sought: str, starred: bool, event: gr.EventData) -> Any:
        self._asking(lambda: self._synthesizer.takes.remove(_identifier(event)))
        return self._takes(TAKES_SHOWN, sought, starred)

    def older_takes(self, sought: str, starred: bool, event: gr.EventData) -> Any:
        shown = event._data.get("shown") if isinstance(event._data, dict) else None
        limit = (shown if isinstance(shown, int) and 0 < shown < 10_000 else 0) + TAKES_SHOWN
        return self._takes(limit, sought, starred)

    def _voices(self, selected: str | None, search: str = "", order: str = USUAL_ORDER) -> Any:
        asked = None if order == USUAL_ORDER else order
        voices = self._synthesizer.voices.list(search=search, order=asked)
        return voice_list(voices, selected=selected, sorted_by_user=asked is not None)

    def _totals(self) -> str:
        return totals_section(self._synthesizer.desk.cache.counters())

    def _takes(self, limit: int, sought: str = "", starred: bool = False) -> Any:
        takes = self._synthesizer.takes
        found = takes.list(search=sought, favourites=starred, limit=limit)
        return take_list(found, total=takes.count(search=sought, favourites=starred))

    @staticmethod
    def _asking(act: Any) -> Any:
        """A user's mistake becomes a toast with its one sentence."""
        try:
            return act()
        except StudioError as error:
            raise gr.Error(escape(str(error)), title="That did not work", print_exception=False) from error


def _identifier(event: gr.EventData) -> str:
    """The id that a list sent; it comes from a browser, so it may be anything."""
    data = event._data
    return str(data.get("id", "")) if isinstance(data, dict) else ""


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e6 else None


def _trim(start: float | None, end: float | None) -> tuple[float, float] | None:
    """What the form says; a blank start is the clip's, a blank end is the clip's."""
    return None if start is None and end is None else (start or 0.0, math.inf if end is None else end)
