"""The engine that needs no download: the studio's own voice model, on the CPU."""

import time
from collections.abc import Generator, Sequence

import numpy as np
import torch

from studio.audio.resample import resample
from studio.audio.waveform import Waveform, to_pcm
from studio.engine.aligned_generation import FrameGenerator, FrameSampling
from studio.engine.batched_encode import encode_padded
from studio.engine.checkpoints import VoiceModel
from studio.engine.engine_errors import EngineClosed
from studio.engine.fixed_arithmetic import ATTENTION, fixed_arithmetic
from studio.engine.harmonic_codec import FRAME, DecoderState
from studio.engine.harmonic_signal import SAMPLE_RATE
from studio.engine.interface import CodecIdentity, Encoded, Environment
from studio.engine.lanes import LANE_THREADS, EncoderLanes, check_lanes
from studio.engine.sampling import CounterDraws, SamplingOptions
from studio.engine.solo_encoder import environment_of
from studio.engine.weight_files import tensor_bytes
from studio.errors import SilentClip, UnspeakableScript
from studio.text.phonemes import BREAKS, check_speakable, phonemes, warm_up
from studio.text.script import Utterance

RECIPE = "mono-mean,dc-removed,sinc6-24k,peak-0.6-max-30db,floor-1920/1"
_PEAK = 0.6
_MAX_GAIN = 10 ** (30 / 20)
_FIRST_CHUNK = 4
"""Frames before the first sound leaves: 200 ms, for the decoder holds back a frame and a half; above what the player
waits for."""
_LARGEST_CHUNK = 8


class EmbeddedEngine:
    """Implements `Engine` with a `VoiceModel`: English, 24 kHz mono, 12.5 frames a second."""

    name = "embedded"
    device = "cpu"
    sample_rate = SAMPLE_RATE
    channels = 1
    speech_threads = 1
    uses_transcript = False

    def __init__(self, model: VoiceModel, *, lanes: int = 1) -> None:
        self._held: VoiceModel | None = model
        self._lanes = EncoderLanes(lanes)
        self._vocabulary = {phoneme: index for index, phoneme in enumerate(model.phonemes)}
        self.revision = model.revision
        self.codec = CodecIdentity(
            codec_id="solo-harmonic",
            digest=model.codec_digest,
            sample_rate=SAMPLE_RATE,
            hop_length=FRAME,
            num_codebooks=model.codec.config.num_codebooks,
            codebook_size=model.codec.config.codebook_size,
            compute_dtype="float32",
            attention_backend=ATTENTION,
            recipe=RECIPE,
        )

    @property
    def _model(self) -> VoiceModel:
        if self._held is None:
            raise EngineClosed(self.name)
        return self._held

    def close(self) -> int:
        """Nothing of the model is kept; an encode that runs now still ends."""
        held, self._held = self._held, None
        return 0 if held is None else tensor_bytes(held.codec) + tensor_bytes(held.language)

    def warm_up(self) -> None:
        """Does once what the first request would otherwise wait for: the lexicon, and torch's first operations."""
        warm_up()
        silence = Waveform(np.zeros((1, 2 * FRAME), dtype=np.float32), SAMPLE_RATE)
        for _ in self.speak(Utterance("Yes."), self.encode(silence).codes, SamplingOptions(seed=0), index=0):
            pass

    def check_lanes(self) -> None:
        """Raises LanesDiffer where encodes that run at once have other codes than one that runs alone."""
        clip = self.prepare(_made_clip())
        check_lanes(self._lanes, lambda: self._encode(clip).codes, self.device)

    @property
    def environment(self) -> Environment:
        """Where an encode would run now: no lane runs with another thread count than the one that it read back."""
        return environment_of(self.device, LANE_THREADS)

    def check_script(self, text: str) -> None:
        check_speakable(text)

    def prepare(self, clip: Waveform) -> Waveform:
        """Channel mean, no DC, 24 kHz, peak 0.6 (at most +30 dB), whole frames; the rest of the tail is dropped."""
        mono = clip.mono()
        centred = Waveform(mono.samples - mono.samples.mean(dtype=np.float64).astype(np.float32), mono.sample_rate)
        samples = resample(centred, SAMPLE_RATE).samples
        peak = float(np.abs(samples).max(initial=0.0))
        if peak == 0.0:
            raise SilentClip(-np.inf)
        gained = samples * np.float32(min(_PEAK / peak, _MAX_GAIN))
        return Waveform(gained[:, : gained.shape[1] // FRAME * FRAME], SAMPLE_RATE)

    def encode(self, prepared: Waveform) -> Encoded:
        """Batch 1, the whole clip in one pass, float32, one thread, plain attention: the canonical value."""
        return self._lanes.run(lambda: self._encode(prepared))

    def encode_together(self, clips: Sequence[np.ndarray], num_threads: int) -> list[np.ndarray]:
        """Codes of prepared clips `(1, samples)` in one padded batch: not canonical, for comparing only."""
        return encode_padded(self._model.codec.encode, clips, hop_length=FRAME, num_threads=num_threads)

    @torch.inference_mode()
    def _encode(self, prepared: Waveform) -> Encoded:
        started = time.perf_counter()
        with fixed_arithmetic():
            codes = self._model.codec.encode(torch.from_numpy(prepared.samples))[0]
        environment = environment_of(self.device, torch.get_num_threads())
        duration = time.perf_counter() - started
        return Encoded(codes=codes.numpy().astype(np.int16), environment=environment, duration=duration)

    def speak(
        self, utterance: Utterance, codes: np.ndarray, options: SamplingOptions, *, index: int
    ) -> Generator[np.ndarray, None, None]:
        """Yields after every frame: int16 `(1, samples)`, without samples until a chunk is full. The first chunk is 4
        frames, later ones grow to 8, so that sound starts soon and then costs few messages."""
        draws = CounterDraws(options.seed, index)
        with fixed_arithmetic():
            frames = self._generator(utterance, codes, options, draws)
        sound = self._start_sound(frames, draws)
        pending: list[np.ndarray] = []
        target = _FIRST_CHUNK
        while not frames.finished:
            pending.append(self._sound(frames, sound))
            if len(pending) < target and not frames.finished:
                yield np.empty((1, 0), dtype=np.int16)
                continue
            if frames.finished:
                with torch.inference_mode(), fixed_arithmetic():
                    pending.append(self._model.codec.finish(sound).numpy())
            yield to_pcm(np.concatenate(pending)[None])
            pending, target = [], min(target + 1, _LARGEST_CHUNK)

    @torch.inference_mode()
    def _start_sound(self, frames: FrameGenerator, draws: CounterDraws) -> DecoderState:
        codec = self._model.codec
        with fixed_arithmetic():
            text = codec.decoder.read(frames.phonemes, frames.alignment)
        return codec.start(lambda start, count: torch.from_numpy(draws.noise(start, count))[None], text)

    @torch.inference_mode()
    def _sound(self, frames: FrameGenerator, sound: DecoderState) -> np.ndarray:
        with fixed_arithmetic():
            return self._model.codec.step(frames.next_frame(), sound).numpy()

    def _generator(
        self, utterance: Utterance, codes: np.ndarray, options: SamplingOptions, draws: CounterDraws
    ) -> FrameGenerator:
        recommended = self._model.recommended
        temperature = recommended.temperature if options.temperature is None else options.temperature
        sampling = FrameSampling(
            temperature=temperature,
            later_temperature=temperature * recommended.later_scale,
            top_k=options.top_k or recommended.top_k,
            pace=recommended.pace * options.speed,
            guidance=recommended.guidance,
        )
        spoken = phonemes(utterance.text)
        if BREAKS.issuperset(spoken):
            raise UnspeakableScript(utterance.text[:30], "English")
        indices = [self._vocabulary.get(phoneme, 1) for phoneme in spoken]
        reference = codes[:, : recommended.reference_frames]
        return FrameGenerator(self._model.language, indices, reference, sampling, draws)


def _made_clip() -> Waveform:
    """Three seconds of a gliding buzz in noise, the same in every run: frames of many kinds, also near boundaries."""
    time_axis = np.arange(3 * SAMPLE_RATE) / SAMPLE_RATE
    phase = 2 * np.pi * np.cumsum(90 + 60 * np.sin(3 * time_axis)) / SAMPLE_RATE
    buzz = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 20))
    noise = np.random.default_rng(0).standard_normal(time_axis.size)
    sound = 0.1 * (1 + np.sin(20 * time_axis)) * buzz + 0.02 * noise
    return Waveform(sound.astype(np.float32)[None].clip(-1, 1), SAMPLE_RATE)
