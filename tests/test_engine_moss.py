"""The engine of the MOSS models, at toy size: how it encodes, speaks, stops and ends."""

import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from moss_studio import TOY_LOCAL, TOY_NANO, toy_engine
from toy_moss import HOP, NEVER_STOPS, RATE, codec_files, local_files

from studio.audio.waveform import Waveform, to_pcm
from studio.engine.engine_errors import EngineClosed, RanAway
from studio.engine.frame_sampling import NANO_SAMPLING
from studio.engine.generation import GenerationLane, Producer
from studio.engine.moss_engine import MossEngine
from studio.engine.moss_speech import PieceDraws, sampling_of
from studio.engine.sampling import CounterDraws, SamplingOptions
from studio.engine.speech_frames import speech_frames
from studio.errors import ReferenceTooLong, SettingError
from studio.reference_check import check_codes
from studio.text.moss_chunks import frame_budget
from studio.text.script import Utterance

SENTENCE = Utterance("The quick brown fox jumps over the lazy dog.")
RETRIED = 32
"""With this seed the first attempt of the toy Nano at SENTENCE stops before its first frame, the second does not."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in the generation lane: two threads that wait for each other take minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def nano(tmp_path_factory) -> MossEngine:
    return toy_engine(tmp_path_factory.mktemp("nano"), TOY_NANO, lanes=2)


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> MossEngine:
    return toy_engine(tmp_path_factory.mktemp("local"), TOY_LOCAL)


@pytest.fixture(scope="module")
def endless(tmp_path_factory) -> MossEngine:
    """A Local that never stops by itself."""
    return toy_engine(tmp_path_factory.mktemp("endless"), TOY_LOCAL, local_files(goes_on=NEVER_STOPS))


@pytest.fixture(params=["nano", "local"])
def engine(request) -> MossEngine:
    return request.getfixturevalue(request.param)


def clip(samples: int = 72_100, channels: int = 1, sample_rate: int = 24_000, seed: int = 0) -> Waveform:
    noise = np.random.default_rng(seed).standard_normal((channels, samples)).astype(np.float32) * 0.1
    return Waveform(noise, sample_rate)


def codes_for(engine: MossEngine, frames: int = 20) -> np.ndarray:
    shape = (engine.codec.num_codebooks, frames)
    return np.random.default_rng(0).integers(0, engine.codec.codebook_size, shape).astype(np.int16)


def spoken(engine: MossEngine, utterance: Utterance = SENTENCE, index: int = 0, **options) -> Producer:
    return engine.speak(utterance, codes_for(engine), SamplingOptions(**{"seed": 1} | options), index=index)


def whole(chunks: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate(list(chunks), axis=1)


def frames_until_it_ran_away(chunks: Producer) -> int:
    heard: list[np.ndarray] = []
    with pytest.raises(RanAway, match=r"'The quick brown fox.*longer than its text could take.*another seed"):
        heard.extend(chunk for chunk in chunks)
    return whole(heard).shape[1] // HOP


class TestReferences:
    def test_codes_are_those_of_the_clip_in_whole_frames_and_say_where_they_were_made(self, engine):
        prepared = engine.prepare(clip())
        assert prepared.samples.shape == (2, 144_200)
        encoded = engine.encode(prepared)
        assert encoded.codes.shape == (engine.codec.num_codebooks, 144_200 // HOP)
        assert encoded.codes.dtype == np.int16
        check_codes(encoded.codes, prepared.num_samples, engine.codec)
        assert encoded.environment == engine.environment
        assert (encoded.environment.device, encoded.environment.num_threads) == ("cpu", 1)
        assert encoded.duration > 0

    def test_an_encode_gives_the_same_codes_whatever_else_is_done_at_the_same_time(self, nano):
        alone = nano.encode(nano.prepare(clip(seed=1))).codes
        lane = GenerationLane()
        stream = lane.open(spoken(nano))
        results: dict[int, np.ndarray] = {}

        def encode(seed: int) -> None:
            results[seed] = nano.encode(nano.prepare(clip(samples=40_000 + 9_000 * seed, seed=seed))).codes

        callers = [threading.Thread(target=encode, args=(seed,)) for seed in range(2, 6)]
        for caller in callers:
            caller.start()
        beside = nano.encode(nano.prepare(clip(seed=1))).codes
        for caller in callers:
            caller.join()
        whole(stream)
        lane.shut()
        assert np.array_equal(alone, beside)
        assert len(results) == 4

    def test_two_lanes_give_the_codes_of_one(self, nano):
        nano.check_lanes()

    def test_the_families_prepare_and_name_their_codes_each_in_its_way(self, nano, local):
        assert (nano.codec.compute_dtype, nano.codec.attention_backend) == ("float32", "sdpa-math")
        assert nano.codec.recipe != local.codec.recipe
        assert (nano.codec.codec_id, local.codec.codec_id) == (
            "OpenMOSS-Team/MOSS-Audio-Tokenizer-Nano",
            "OpenMOSS-Team/MOSS-Audio-Tokenizer-v2",
        )
        assert len(nano.codec.digest) == 64
        assert not np.array_equal(nano.prepare(clip()).samples, local.prepare(clip()).samples)

    def test_a_reference_that_leaves_no_room_to_speak_is_refused(self, nano):
        codes = codes_for(nano, frames=5_000)
        with pytest.raises(ReferenceTooLong, match=r"400\.0 s long"):
            whole(nano.speak(SENTENCE, codes, SamplingOptions(seed=1), index=0))


class TestSound:
    def test_the_first_chunk_holds_three_frames_and_later_ones_grow_to_eight(self, engine):
        longest = max((list(spoken(engine, seed=seed)) for seed in (1, 7)), key=len)
        sizes = [chunk.shape[1] // HOP for chunk in longest]
        assert sizes[:8] == [0, 0, 3, 0, 0, 3, 0, 0]
        assert [size for size in sizes if size][:7] == [3, 3, 4, 4, 6, 8, 8]
        assert {(chunk.dtype, len(chunk)) for chunk in longest} == {(np.dtype(np.int16), 2)}

    def test_the_samples_are_those_of_the_codes_that_the_model_draws(self, engine):
        parts = engine.parts
        draws = PieceDraws(CounterDraws(1, 0), 0)
        prompt = parts.prompts.clone(SENTENCE.text, [codes_for(engine)])
        options = {"budget": 99, "sampling": parts.family.sampling, "draws": draws}
        frames = torch.stack(list(speech_frames(parts.model, prompt, **options)), dim=1)
        expected = to_pcm(parts.decoder.decode(frames).numpy()).astype(int)
        assert np.abs(whole(spoken(engine)).astype(int) - expected).max() <= 1

    def test_the_same_seed_gives_the_same_samples_and_another_utterance_or_seed_gives_others(self, engine):
        once = whole(spoken(engine))
        assert np.array_equal(once, whole(spoken(engine)))
        assert not np.array_equal(once, whole(spoken(engine, seed=2)))
        assert not np.array_equal(once, whole(spoken(engine, index=1)))

    def test_a_take_made_alone_equals_the_take_made_beside_others_and_beside_encodes(self, engine):
        lane = GenerationLane()
        alone = whole(lane.open(spoken(engine)))
        texts = ("Yes.", SENTENCE.text, "You may jump over the lazy dog, and the quick brown fox jumps over you.")
        streams = [
            lane.open(spoken(engine, Utterance(text), seed=seed)) for text, seed in zip(texts, (2, 1, 5), strict=True)
        ]
        encodes = [threading.Thread(target=engine.encode, args=(engine.prepare(clip(seed=seed)),)) for seed in (1, 2)]
        for encode in encodes:
            encode.start()
        beside = [whole(stream) for stream in streams][1]
        for encode in encodes:
            encode.join()
        lane.shut()
        assert np.array_equal(alone, beside)

    def test_closing_stops_the_model_within_one_frame(self, engine):
        made: list[None] = []
        last = list(engine.parts.model.transformer.children())[-1]  # the norm after all layers: once a frame
        hook = last.register_forward_hook(lambda *_: made.append(None))
        chunks = spoken(engine)
        for count in range(1, 5):
            next(chunks)
            assert len(made) == count
        chunks.close()
        hook.remove()
        assert len(made) == 4

    def test_nano_speaks_a_long_utterance_in_pieces_with_silence_between_them(self, nano):
        text = "The ferry leaves at noon. The captain never waits for anyone. " * 6
        chunks = list(spoken(nano, Utterance(text.strip(), pause=9.0), seed=4))
        silences = [chunk.shape[1] / RATE for chunk in chunks if chunk.size and not chunk.any()]
        assert len(silences) >= 1
        assert set(silences) <= {0.24, 0.4}
        assert chunks[-1].any()

    def test_temperature_and_top_k_replace_those_of_the_family(self):
        assert sampling_of(NANO_SAMPLING, SamplingOptions(seed=1)) == NANO_SAMPLING
        asked = sampling_of(NANO_SAMPLING, SamplingOptions(seed=1, temperature=0.3, top_k=7))
        assert (asked.codes.temperature, asked.codes.top_k) == (0.3, 7)
        assert (asked.codes.top_p, asked.codes.repetition_penalty) == (0.95, 1.2)
        assert asked.stop == NANO_SAMPLING.stop


class TestPace:
    def test_nano_has_no_control_of_its_pace_and_says_so(self, nano):
        with pytest.raises(SettingError, match=r"speed cannot be 1\.5: MOSS-TTS Nano speaks at the pace of its voice"):
            next(spoken(nano, speed=1.5))

    def test_local_is_asked_for_as_many_frames_as_the_pace_takes(self, local, endless):
        assert not np.array_equal(whole(spoken(local)), whole(spoken(local, speed=2.0)))
        assert frames_until_it_ran_away(spoken(endless, speed=0.5)) > frame_budget(SENTENCE.text)


class TestRunaways:
    def test_speech_that_does_not_end_is_ended_within_what_its_text_may_take(self, endless):
        heard = frames_until_it_ran_away(spoken(endless))
        assert frame_budget(SENTENCE.text) - 8 < heard <= frame_budget(SENTENCE.text)

    def test_an_attempt_of_which_nothing_was_heard_is_tried_once_more_with_other_draws(self, nano):
        parts, prompt = nano.parts, nano.parts.prompts.clone(SENTENCE.text, [codes_for(nano)])
        options = {"budget": 99, "sampling": parts.family.sampling}
        first, second = (
            list(speech_frames(parts.model, prompt, draws=PieceDraws(CounterDraws(RETRIED, 0, attempt), 0), **options))
            for attempt in range(2)
        )
        assert (len(first), len(second) > 0) == (0, True)
        assert whole(spoken(nano, seed=RETRIED)).shape[1] == len(second) * HOP

    def test_speech_without_a_sound_is_no_speech(self, tmp_path):
        engine = toy_engine(tmp_path, TOY_NANO, codec=codec_files(silent=True))
        for seed in range(4):
            with pytest.raises(RanAway, match=r"without a sound|fell silent|longer than"):
                whole(spoken(engine, seed=seed))


class TestTheEnd:
    def test_a_closed_engine_says_what_it_freed_and_does_nothing_any_more(self, tmp_path):
        engine = toy_engine(tmp_path, TOY_NANO)
        prepared = engine.prepare(clip())
        started = spoken(engine)
        next(started)
        without_encoder = sum(
            parameter.numel() * 4
            for part in (engine.parts.model, engine.parts.decoder)
            for parameter in part.parameters()
        )
        engine.encode(prepared)
        assert engine.close() > without_encoder
        assert engine.close() == 0
        for use in (lambda: next(started), lambda: engine.encode(prepared), lambda: next(spoken(engine))):
            with pytest.raises(EngineClosed, match="moss-nano has been unloaded"):
                use()
