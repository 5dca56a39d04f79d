"""One engine beside the embedded one: loaded and let go at rest only, and never another than what is asked for."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from counting_engine import CODEC, CountingEngine
from page_studio import toy_synthesizer

from studio.engine.engine_errors import EngineClosed
from studio.engine_room import EngineChanged, EngineChanging, EngineInUse, EngineRoom
from studio.errors import StudioError
from studio.reference import ReferenceDesk
from studio.settings import Settings
from studio.store.code_cache import CodeCache
from studio.store.takes import TakeLibrary
from studio.store.voices import VoiceLibrary
from studio.synthesis import Synthesizer


class Loader:
    """Loads counting engines under whatever name is asked for, and remembers them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.loaded: list[Weighty] = []
        self.fault: StudioError | None = None
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, name: str) -> Synthesizer:
        self.begun.set()
        assert self.may_end.wait(60)
        if self.fault is not None:
            raise self.fault
        settings = self.settings
        engine = Weighty(settings.data_dir / "encodes", codec=replace(CODEC, codec_id=name))
        engine.name = name
        self.loaded.append(engine)
        desk = ReferenceDesk(engine, CodeCache(settings.database), settings.locks_dir)
        voices = VoiceLibrary(settings.database, settings.clips_dir, codec=desk.codec)
        return Synthesizer(engine, desk, voices, TakeLibrary(settings.database, settings.takes_dir))


class Weighty(CountingEngine):
    """Has a thousand bytes of weights until it is closed."""

    closed = False

    def close(self) -> int:
        freed, self.closed = (0 if self.closed else 1000), True
        return freed


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    return Loader(Settings(data_dir=tmp_path))


@pytest.fixture
def room(loader: Loader) -> EngineRoom:
    return EngineRoom(toy_synthesizer(loader.settings), loader)


def test_a_model_speaks_beside_the_embedded_voice_and_its_bytes_come_back(room, loader) -> None:
    assert room.use("moss-nano") == 0
    assert room.current.engine.name == "moss-nano"
    assert room.use("moss-nano") == 0
    assert len(loader.loaded) == 1
    assert room.unload() == 1000
    assert room.current is room.embedded
    assert loader.loaded[0].closed
    assert room.unload() == 0


def test_one_model_is_let_go_before_the_next_is_loaded(room, loader) -> None:
    room.use("moss-nano")
    assert room.use("moss-local") == 1000
    assert [engine.closed for engine in loader.loaded] == [True, False]
    assert room.current.engine.name == "moss-local"


def test_where_loading_fails_the_embedded_voice_speaks(room, loader) -> None:
    room.use("moss-nano")
    loader.fault = StudioError("It does not fit.")
    with pytest.raises(StudioError, match="does not fit"):
        room.use("moss-local")
    assert room.current is room.embedded
    assert room.coming is None
    loader.fault = None
    room.use("moss-local")
    assert room.current.engine.name == "moss-local"


def test_what_is_in_use_stays_until_it_is_done(room) -> None:
    with room.held() as synthesizer:
        for change in (lambda: room.use("moss-nano"), room.unload, room.check_free):
            with pytest.raises(EngineInUse, match="The embedded voice is at work"):
                change()
        assert room.current is synthesizer
    room.check_free()
    room.use("moss-nano")


def test_nothing_is_spoken_or_changed_while_a_model_loads(room, loader) -> None:
    loader.may_end.clear()
    loading = threading.Thread(target=room.use, args=("moss-nano",))
    loading.start()
    assert loader.begun.wait(60)
    try:
        assert room.coming == "moss-nano"
        for attempt in (lambda: room.use("moss-local"), room.unload, room.check_free, room.held().__enter__):
            with pytest.raises(EngineChanging, match="MOSS-TTS Nano is being loaded"):
                attempt()
    finally:
        loader.may_end.set()
        loading.join()
    with room.held("moss-nano") as synthesizer:
        assert synthesizer.engine.name == "moss-nano"


def test_another_engine_than_the_expected_one_never_speaks(room) -> None:
    room.use("moss-nano")
    with pytest.raises(EngineChanged, match="MOSS-TTS Nano speaks now"), room.held("embedded"):
        pass
    room.unload()
    with pytest.raises(EngineChanged, match="The embedded voice speaks now"), room.held("moss-nano"):
        pass


def test_one_library_serves_both_and_keeps_the_codes_of_each(room) -> None:
    before = {voice.id: voice.codes_digest for voice in room.current.voices.list()}
    room.use("moss-nano")
    with room.held() as synthesizer:
        voice = synthesizer.voices.get("clara")
        assert not voice.filled
        synthesizer.desk.from_voice(voice, synthesizer.voices)
        assert synthesizer.voices.get("clara").filled
        assert not synthesizer.voices.get("robin").filled
    room.unload()
    assert {voice.id: voice.codes_digest for voice in room.current.voices.list()} == before


def test_what_was_let_go_says_so_instead_of_speaking(tmp_path) -> None:
    synthesizer = toy_synthesizer(Settings(data_dir=tmp_path))
    assert synthesizer.close() > 0
    assert synthesizer.close() == 0
    voice = synthesizer.voices.get("clara")
    clip = synthesizer.desk.identify(synthesizer.voices.clip_bytes(voice), "clara", None)[1]
    with pytest.raises(EngineClosed):
        synthesizer.desk.solo.encode(clip)
