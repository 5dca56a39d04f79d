import threading

import numpy as np
import pytest
from toy_voice import toy_voice

from studio.audio.waveform import Waveform
from studio.engine.catalogue import load_engine
from studio.engine.embedded import EmbeddedEngine
from studio.engine.engine_errors import EngineClosed
from studio.engine.generation import GenerationLane
from studio.engine.harmonic_codec import FRAME
from studio.engine.sampling import SamplingOptions
from studio.errors import SettingError, SilentClip, UnknownEngine, UnspeakableScript
from studio.settings import Settings
from studio.text.script import Utterance

SENTENCE = Utterance(text="The quick brown fox jumps over the lazy dog.")
CODES = np.random.default_rng(0).integers(0, 32, (3, 20)).astype(np.int16)


@pytest.fixture(scope="module")
def engine() -> EmbeddedEngine:
    return EmbeddedEngine(toy_voice())


def clip(samples: int = 60_000, channels: int = 1, sample_rate: int = 24_000, seed: int = 0) -> Waveform:
    noise = np.random.default_rng(seed).standard_normal((channels, samples)).astype(np.float32) * 0.1
    return Waveform(noise, sample_rate)


def spoken(engine: EmbeddedEngine, seed: int = 1, speed: float = 1.0, index: int = 0) -> list[np.ndarray]:
    return list(engine.speak(SENTENCE, CODES, SamplingOptions(seed=seed, speed=speed), index=index))


def test_a_prepared_reference_is_mono_24_khz_at_a_peak_of_0_6_in_whole_frames(engine):
    prepared = engine.prepare(clip(channels=2, sample_rate=48_000, samples=100_000))
    assert prepared.samples.shape == (1, 100_000 // 2 // FRAME * FRAME)
    assert prepared.sample_rate == 24_000
    assert prepared.peak == pytest.approx(0.6, abs=0.01)


def test_a_constant_offset_is_removed(engine):
    plain = clip()
    shifted = Waveform(plain.samples + np.float32(0.2), plain.sample_rate)
    np.testing.assert_allclose(engine.prepare(shifted).samples, engine.prepare(plain).samples, atol=1e-5)


def test_a_very_quiet_clip_is_raised_by_at_most_30_db(engine):
    quiet = Waveform(clip().samples * np.float32(1e-4), 24_000)
    assert engine.prepare(quiet).peak == pytest.approx(quiet.peak * 10**1.5, rel=0.1)


def test_a_silent_clip_has_its_own_sentence(engine):
    with pytest.raises(SilentClip, match="silent"):
        engine.prepare(Waveform(np.zeros((1, 48_000), dtype=np.float32), 24_000))


def test_an_encode_gives_codes_in_range_and_says_where_it_ran(engine):
    prepared = engine.prepare(clip())
    encoded = engine.encode(prepared)
    assert encoded.codes.shape == (engine.codec.num_codebooks, prepared.num_samples // engine.codec.hop_length)
    assert encoded.codes.dtype == np.int16
    assert 0 <= encoded.codes.min() <= encoded.codes.max() < engine.codec.codebook_size
    assert encoded.environment.num_threads == 1
    assert encoded.duration > 0


def test_an_encode_gives_the_same_codes_whatever_else_is_asked_for_at_the_same_time(engine):
    alone = engine.encode(engine.prepare(clip(seed=1))).codes
    results: dict[int, np.ndarray] = {}

    def encode(seed: int) -> None:
        results[seed] = engine.encode(engine.prepare(clip(samples=40_000 + 9000 * seed, seed=seed))).codes

    callers = [threading.Thread(target=encode, args=(seed,)) for seed in range(2, 8)]
    for caller in callers:
        caller.start()
    beside = engine.encode(engine.prepare(clip(seed=1))).codes
    for caller in callers:
        caller.join()
    assert np.array_equal(alone, beside)
    assert len(results) == 6


def test_the_first_chunk_holds_200_ms_and_later_ones_grow(engine):
    chunks = [chunk.shape[1] for chunk in spoken(engine) if chunk.size]
    assert chunks[0] == 3 * FRAME - 960
    assert chunks[1:4] == [5 * FRAME, 6 * FRAME, 7 * FRAME]
    assert max(chunks) <= 9 * FRAME + 960


def test_a_step_without_sound_comes_after_each_frame_of_an_unfinished_chunk(engine):
    first = spoken(engine)[:4]
    assert [chunk.size for chunk in first[:3]] == [0, 0, 0]
    assert first[3].dtype == np.int16


def test_the_same_seed_gives_the_same_samples_and_another_utterance_or_seed_gives_others(engine):
    once = np.concatenate(spoken(engine), axis=1)
    assert np.array_equal(once, np.concatenate(spoken(engine), axis=1))
    assert not np.array_equal(once, np.concatenate(spoken(engine, seed=2), axis=1))
    assert not np.array_equal(once, np.concatenate(spoken(engine, index=1), axis=1))


def test_a_take_made_alone_equals_the_take_made_beside_others(engine):
    lane = GenerationLane()
    alone = np.concatenate(list(lane.open(engine.speak(SENTENCE, CODES, SamplingOptions(seed=1), index=0))), axis=1)
    texts = ["Yes.", SENTENCE.text, "You may jump over the lazy dog, and the quick brown fox jumps over you."]
    streams = [
        lane.open(engine.speak(Utterance(text=text), CODES, SamplingOptions(seed=seed), index=0))
        for seed, text in ((9, texts[0]), (1, texts[1]), (3, texts[2]))
    ]
    beside = [np.concatenate(list(stream), axis=1) for stream in streams][1]
    assert np.array_equal(alone, beside)


def test_twice_the_speed_takes_half_the_time(engine):
    plain, fast = (sum(chunk.shape[1] for chunk in spoken(engine, speed=speed)) for speed in (1.0, 2.0))
    assert fast == pytest.approx(plain / 2, abs=2 * FRAME)


def test_text_of_another_script_is_refused_before_anything_is_made(engine):
    with pytest.raises(UnspeakableScript, match="English"):
        engine.check_script("今日は天気がいいですね。")


def test_an_unknown_engine_is_refused_with_the_ones_there_are(tmp_path):
    with pytest.raises(UnknownEngine, match="embedded"):
        load_engine("parrot", Settings(data_dir=tmp_path))


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_the_embedded_voice_does_not_use_is_refused_and_not_replaced(tmp_path, device):
    with pytest.raises(SettingError, match="CPU"):
        load_engine("embedded", Settings(data_dir=tmp_path, device=device))


def test_a_closed_engine_says_what_it_freed_and_does_nothing_any_more():
    engine = EmbeddedEngine(toy_voice())
    prepared = engine.prepare(clip())
    started = engine.speak(SENTENCE, CODES, SamplingOptions(seed=1), index=0)
    next(started)
    assert engine.close() > 100_000
    assert engine.close() == 0
    for use in (lambda: next(started), lambda: engine.encode(prepared), lambda: spoken(engine)):
        with pytest.raises(EngineClosed, match="embedded has been unloaded"):
            use()


def test_the_voice_model_in_the_assets_speaks_every_frame_it_planned(tmp_path):
    engine = load_engine("embedded", Settings(data_dir=tmp_path))
    codes = engine.encode(engine.prepare(clip(samples=72_000))).codes
    chunks = list(engine.speak(Utterance(text="Good morning."), codes, SamplingOptions(seed=1), index=0))
    sound = np.concatenate(chunks, axis=1)
    assert sound.shape[1] % FRAME == 0
    assert sound.shape[1] >= 5 * FRAME
    assert int(np.abs(sound.astype(np.int32)).max()) > 300


def test_the_decoder_is_told_what_is_said_for_as_many_frames_as_are_spoken(monkeypatch):
    told, voice = [], toy_voice()
    start = voice.codec.start
    monkeypatch.setattr(voice.codec, "start", lambda noise, text: told.append(text) or start(noise, text))
    sound = np.concatenate(spoken(EmbeddedEngine(voice)), axis=1)
    assert [text.coarse.shape[1] * FRAME for text in told] == [sound.shape[1]]
    monkeypatch.setattr(voice.codec, "start", lambda noise, _: start(noise))
    assert not np.array_equal(np.concatenate(spoken(EmbeddedEngine(voice)), axis=1), sound)
