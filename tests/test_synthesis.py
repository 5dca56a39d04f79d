import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from toy_voice import toy_voice

from studio.engine.embedded import EmbeddedEngine
from studio.engine.sampling import SamplingOptions
from studio.errors import (
    BadPauseTag,
    ClipError,
    NameTaken,
    NothingToSpeak,
    OtherEngine,
    StorageError,
    UnspeakableScript,
)
from studio.reference import ReferenceDesk
from studio.settings import Settings, assets_dir
from studio.store.code_cache import CodeCache
from studio.store.takes import TakeLibrary
from studio.store.voices import VoiceDetails, VoiceLibrary
from studio.synthesis import Speech, Synthesizer

CLIP = (assets_dir() / "voices" / "clara.flac").read_bytes()
OTHER = (assets_dir() / "voices" / "robin.flac").read_bytes()
SCRIPT = "The quick brown fox jumps. [pause 0.5s] Over the lazy dog!"
LONG = " ".join(["The quick brown fox jumps over the lazy dog."] * 12)


@pytest.fixture(scope="module")
def engine() -> EmbeddedEngine:
    return EmbeddedEngine(toy_voice())


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def synthesizer(engine, settings) -> Synthesizer:
    return assemble(engine, settings)


def assemble(engine: EmbeddedEngine, settings: Settings) -> Synthesizer:
    desk = ReferenceDesk(engine, CodeCache(settings.database), settings.locks_dir)
    voices = VoiceLibrary(settings.database, settings.clips_dir, codec=desk.codec)
    return Synthesizer(engine, desk, voices, TakeLibrary(settings.database, settings.takes_dir))


def speak(synthesizer: Synthesizer, script: str = SCRIPT, seed: int = 1, clip: bytes = CLIP) -> Speech:
    return synthesizer.speak(script, voice=None, clip=clip, options=SamplingOptions(seed=seed))


def joined(speech: Speech) -> np.ndarray:
    return np.concatenate(list(speech), axis=1)


def saved(synthesizer: Synthesizer, speech: Speech) -> np.ndarray:
    samples, sample_rate = soundfile.read(synthesizer.takes.path(speech.take_id), dtype="int16", always_2d=True)
    assert sample_rate == speech.sample_rate
    return samples.T


def test_the_saved_take_is_the_concatenation_of_the_streamed_chunks(synthesizer):
    speech = speak(synthesizer)
    assert np.array_equal(joined(speech), saved(synthesizer, speech))


def test_a_take_says_how_it_was_made(synthesizer, engine):
    speech = speak(synthesizer, seed=77)
    sound = joined(speech)
    take = synthesizer.takes.get(speech.take_id)
    assert (take.script, take.seed, take.engine, take.revision) == (SCRIPT, 77, "embedded", engine.revision)
    assert (take.cache, take.partial, take.error) == ("fill", False, None)
    assert take.duration == sound.shape[1] / 24_000
    assert take.first_audio_ms is not None
    assert take.first_audio_ms > 0
    assert take.realtime_speed is not None
    assert take.realtime_speed > 0
    assert np.array_equal(take.codes, speech.reference.codes)
    assert speech.take is not None
    assert speech.take.pcm_digest == take.pcm_digest


def test_a_second_take_after_the_same_clip_comes_from_the_cache_and_sounds_the_same(synthesizer):
    first, second = speak(synthesizer), None
    sound = joined(first)
    second = speak(synthesizer)
    assert np.array_equal(joined(second), sound)
    assert [first.reference.outcome, second.reference.outcome] == ["fill", "hit"]


def test_another_seed_and_another_clip_sound_different(synthesizer):
    sound = joined(speak(synthesizer))
    assert not np.array_equal(sound, joined(speak(synthesizer, seed=2)))
    assert not np.array_equal(sound, joined(speak(synthesizer, clip=OTHER)))


def test_a_pause_tag_is_that_much_silence_to_the_sample(synthesizer, engine):
    parts = [
        joined(speak(synthesizer, script))
        for script in ("The fox. [pause 2s] The dog.", "The fox. [pause 3s] The dog.")
    ]
    assert parts[1].shape[1] - parts[0].shape[1] == engine.sample_rate
    quiet = np.flatnonzero(parts[1][0] != 0)
    assert int(np.diff(quiet).max()) >= 3 * engine.sample_rate


def test_a_pause_before_the_first_word_and_after_the_last_is_kept(synthesizer, engine):
    plain = joined(speak(synthesizer, "The fox."))
    padded = joined(speak(synthesizer, "[pause 1s] The fox. [pause 500ms]"))
    assert np.array_equal(padded[:, engine.sample_rate : -engine.sample_rate // 2], plain)
    assert not padded[:, : engine.sample_rate].any()
    assert not padded[:, -engine.sample_rate // 2 :].any()


def test_takes_made_at_the_same_time_equal_those_made_alone_and_never_mix(synthesizer):
    scripts = {1: SCRIPT, 2: LONG, 3: "Yes, you may!"}
    alone = {seed: joined(speak(synthesizer, script, seed)) for seed, script in scripts.items()}
    speeches = {seed: speak(synthesizer, script, seed) for seed, script in scripts.items()}
    beside: dict[int, np.ndarray] = {}

    def consume(seed: int) -> None:
        beside[seed] = joined(speeches[seed])

    threads = [threading.Thread(target=consume, args=(seed,)) for seed in speeches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, sound in alone.items():
        assert np.array_equal(beside[seed], sound)
        assert np.array_equal(saved(synthesizer, speeches[seed]), sound)
        assert synthesizer.takes.get(speeches[seed].take_id).script == scripts[seed]


def test_a_stopped_take_is_kept_as_far_as_it_was_heard_and_marked_partial(synthesizer):
    whole = joined(speak(synthesizer, LONG))
    speech = speak(synthesizer, LONG)
    heard = np.concatenate([next(speech), next(speech)], axis=1)
    speech.close()
    assert speech.stopped.wait(5)
    assert list(speech) == []
    assert np.array_equal(saved(synthesizer, speech), heard)
    assert np.array_equal(heard, whole[:, : heard.shape[1]])
    assert synthesizer.takes.get(speech.take_id).partial


def test_stopping_before_any_sound_leaves_neither_row_nor_file(synthesizer, settings):
    speech = speak(synthesizer, LONG)
    speech.close()
    assert speech.take is None
    assert synthesizer.takes.list() == []
    assert list(settings.takes_dir.iterdir()) == []


def test_closing_twice_or_after_the_end_changes_nothing(synthesizer):
    speech = speak(synthesizer)
    joined(speech)
    take = speech.take
    speech.close()
    speech.close()
    assert speech.take is take
    assert not synthesizer.takes.get(speech.take_id).partial


def test_a_break_in_the_model_keeps_what_was_heard_with_a_sentence_and_surfaces(synthesizer, engine, monkeypatch):
    plain = engine.speak

    def breaking(utterance, codes, options, *, index):
        if index == 1:
            raise RuntimeError("out of luck")
        yield from plain(utterance, codes, options, index=index)

    monkeypatch.setattr(engine, "speak", breaking)
    speech, heard = speak(synthesizer), []
    with pytest.raises(RuntimeError, match="out of luck"):
        heard.extend(speech)
    take = synthesizer.takes.get(speech.take_id)
    assert take.partial
    assert take.error is not None
    assert "mistake" in take.error
    assert np.array_equal(saved(synthesizer, speech), np.concatenate(heard, axis=1))


def test_a_full_disk_ends_the_take_with_its_sentence(synthesizer, monkeypatch):
    speech = speak(synthesizer, LONG)
    next(speech)

    def full(_chunk: np.ndarray) -> None:
        raise StorageError("data", "No space left on device")

    monkeypatch.setattr(speech._writer, "write", full)
    with pytest.raises(StorageError, match="No space"):
        list(speech)
    assert speech.stopped.wait(5)
    take = synthesizer.takes.get(speech.take_id)
    assert take.partial
    assert take.error is not None
    assert "No space" in take.error


@pytest.mark.parametrize(
    ("script", "error"),
    [("", NothingToSpeak), (" \n\t", NothingToSpeak), ("Hi [pause soon]", BadPauseTag), ("你好", UnspeakableScript)],
)
def test_a_bad_script_is_refused_with_nothing_written(synthesizer, settings, script, error):
    with pytest.raises(error):
        speak(synthesizer, script)
    assert synthesizer.takes.list() == []
    assert not settings.takes_dir.exists()


def test_a_bad_clip_is_refused_with_nothing_written(synthesizer, settings):
    with pytest.raises(ClipError):
        speak(synthesizer, clip=b"This is a text, not a sound.")
    with pytest.raises(ClipError):
        synthesizer.add_voice(b"This is a text, not a sound.", VoiceDetails(name="Nobody"))
    assert synthesizer.takes.list() == []
    assert synthesizer.voices.list() == []
    assert not settings.takes_dir.exists()


def test_a_saved_voice_speaks_from_the_cache_after_a_restart_without_its_clip(synthesizer, engine, settings):
    voice = synthesizer.add_voice(CLIP, VoiceDetails(name="Clara's twin", transcript="Hello")).voice
    (settings.clips_dir / voice.id).write_bytes(b"gone")
    again = assemble(engine, settings)
    speech = again.speak("Yes.", voice=again.voices.get("clara's TWIN"), clip=None, options=SamplingOptions(seed=1))
    joined(speech)
    assert speech.reference.outcome == "hit"
    assert again.takes.get(speech.take_id).voice_id == voice.id
    assert again.voices.get(voice.id).times_used == 1


def test_a_taken_name_is_refused_before_the_clip_is_encoded(synthesizer):
    synthesizer.add_voice(CLIP, VoiceDetails(name="Clara"))
    with pytest.raises(NameTaken):
        synthesizer.add_voice(OTHER, VoiceDetails(name="clara"))
    assert len(synthesizer.voices.list()) == 1


def test_takes_play_on_after_their_voice_was_removed(synthesizer):
    voice = synthesizer.add_voice(CLIP, VoiceDetails(name="Clara")).voice
    speech = synthesizer.speak("Yes.", voice=voice, clip=None, options=SamplingOptions(seed=1))
    sound = joined(speech)
    synthesizer.voices.remove(voice.id)
    assert np.array_equal(saved(synthesizer, speech), sound)
    assert synthesizer.takes.get(speech.take_id).voice_name == "Clara"


def test_the_built_in_voices_are_filled_once_and_stay(synthesizer, engine, settings):
    synthesizer.fill_builtins()
    voices = synthesizer.voices.list()
    assert len(voices) >= 4
    assert all(voice.builtin and voice.filled and voice.transcript for voice in voices)
    again = assemble(engine, settings)
    again.fill_builtins()
    assert again.voices.list() == voices


def test_a_take_again_has_the_same_samples_though_its_voice_and_codes_are_gone(synthesizer, engine, settings):
    voice = synthesizer.add_voice(CLIP, VoiceDetails(name="Clara")).voice
    options = SamplingOptions(seed=5, speed=1.25, temperature=0.7, top_k=9)
    speech = synthesizer.speak(SCRIPT, voice=voice, clip=None, options=options)
    sound = joined(speech)
    synthesizer.voices.remove(voice.id)
    later = assemble(engine, settings)
    again = later.again(later.takes.get(speech.take_id))
    assert np.array_equal(joined(again), sound)
    first, second = (later.takes.get(each.take_id) for each in (speech, again))
    assert first.id != second.id
    assert (second.pcm_digest, second.options, second.seed) == (first.pcm_digest, first.options, 5)
    assert (second.voice_name, second.cache, second.codes_digest) == ("Clara", "kept", first.codes_digest)
    assert later.desk.cache.counters()["fills"] == 1


def test_a_take_of_another_engine_or_revision_is_not_made_again(synthesizer):
    speech = speak(synthesizer)
    joined(speech)
    take = synthesizer.takes.get(speech.take_id)
    for other in (replace(take, engine="moss"), replace(take, revision="older")):
        with pytest.raises(OtherEngine, match="'embedded', revision toy is loaded"):
            synthesizer.again(other)
    assert synthesizer.takes.count() == 1
