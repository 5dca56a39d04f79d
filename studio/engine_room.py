"""Which engine speaks: the embedded one, which always stays, or one downloaded model beside it; changed only at rest.

RoomError
├── EngineInUse             something is spoken or encoded, so the engine cannot be changed now
├── EngineChanging          the engine is being changed, so nothing can be spoken or encoded now
└── EngineChanged           another engine speaks than the one that was asked for
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from studio.engine.model_catalogue import MODELS
from studio.errors import StudioError
from studio.synthesis import Synthesizer

EMBEDDED = "The embedded voice"


class RoomError(StudioError):
    """What was asked does not fit the engine that is loaded now."""


class EngineInUse(RoomError):
    def __init__(self, engine: str) -> None:
        super().__init__(
            f"{title_of(engine)} is at work: it speaks, or encodes a clip. Stop it or wait until it is done, then "
            "change the voice model."
        )


class EngineChanging(RoomError):
    def __init__(self, engine: str) -> None:
        super().__init__(f"{title_of(engine)} is being loaded. Wait until it speaks, then try again.")


class EngineChanged(RoomError):
    def __init__(self, here: str) -> None:
        super().__init__(
            f"The voice model was changed meanwhile. {title_of(here)} speaks now: press Speak again to hear it, or "
            "choose another one under Models."
        )


def title_of(engine: str) -> str:
    """What a person calls an engine, also at the beginning of a sentence."""
    return next((entry.title for entry in MODELS if entry.name == engine), EMBEDDED)


class EngineRoom:
    """Hands out the Synthesizer of the engine that is loaded now, all of them over one library."""

    def __init__(self, embedded: Synthesizer, load: Callable[[str], Synthesizer]) -> None:
        """`load` makes a Synthesizer around the engine of a name, over the same library."""
        self.embedded = embedded
        self._load = load
        self._current = embedded
        self._lock = threading.Lock()
        self._users = 0
        self._coming: str | None = None

    @property
    def current(self) -> Synthesizer:
        """For looking at: what speaks now may be another one in a moment."""
        return self._current

    @property
    def coming(self) -> str | None:
        """Name of the engine that is being changed to; None while nothing is changed."""
        return self._coming

    @contextmanager
    def held(self, expected: str | None = None) -> Iterator[Synthesizer]:
        """The Synthesizer that speaks now, which stays until the block ends. Raises EngineChanging, and EngineChanged
        where it is not the engine that somebody expects."""
        with self._lock:
            here = self._current.engine.name
            if self._coming is not None:
                raise EngineChanging(self._coming)
            if expected not in (None, here):
                raise EngineChanged(here)
            self._users += 1
            synthesizer = self._current
        try:
            yield synthesizer
        finally:
            with self._lock:
                self._users -= 1

    def check_free(self) -> None:
        """Raises EngineInUse or EngineChanging where `use` would, now."""
        with self._lock:
            self._refuse_unless_free()

    def use(self, name: str) -> int:
        """Lets the loaded model go and loads another, or none for the embedded engine's name; returns the bytes that
        were freed.

        Raises EngineInUse and EngineChanging with nothing changed, and whatever loading raises; then the embedded
        engine speaks.
        """
        with self._changing(name):
            if name == self._current.engine.name:
                return 0
            freed = self._unload()
            if name != self.embedded.engine.name:
                self._current = self._load(name)
            return freed

    def unload(self) -> int:
        """Goes back to the embedded engine and returns the bytes that were freed; 0 where nothing else was loaded."""
        return self.use(self.embedded.engine.name)

    def _unload(self) -> int:
        loaded, self._current = self._current, self.embedded
        return 0 if loaded is self.embedded else loaded.close()

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        with self._lock:
            self._refuse_unless_free()
            self._coming = name
        try:
            yield
        finally:
            self._coming = None

    def _refuse_unless_free(self) -> None:
        if self._coming is not None:
            raise EngineChanging(self._coming)
        if self._users:
            raise EngineInUse(self._current.engine.name)
