"""The engine that speaks with a downloaded MOSS model."""

import os
from collections.abc import Generator
from contextlib import closing

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.device_memory import give_back
from studio.engine.engine_errors import EngineClosed
from studio.engine.interface import CodecIdentity, Encoded, Environment
from studio.engine.lanes import LANE_THREADS
from studio.engine.moss_family import MossParts
from studio.engine.moss_speech import MossRequest, speak_utterance
from studio.engine.sampling import SamplingOptions
from studio.engine.solo_encoder import SoloEncoder, environment_of
from studio.engine.weight_files import tensor_bytes
from studio.text.languages import check_letters
from studio.text.script import Utterance

_CHECK_SECONDS = 3
_MOST_THREADS = 4
"""More share too little work: a frame is many small products."""


class MossEngine:
    """Implements `Engine` for both families: the languages of its model, 48 kHz stereo, 12.5 frames a second.

    It clones by the plain prompt, which is what the makers advise; a transcript is not used, because speech that
    continues a clip tends to repeat what the clip says.
    """

    uses_transcript = False

    def __init__(self, parts: MossParts, encoder: SoloEncoder, *, codec: CodecIdentity, revision: str) -> None:
        self._held: MossParts | None = parts
        self._encoder = encoder
        self.name = parts.entry.name
        self.revision = revision
        self.device = parts.device
        self.speech_threads = min(os.cpu_count() or 1, _MOST_THREADS) if parts.device == "cpu" else 1
        self.sample_rate = codec.sample_rate
        self.channels = parts.decoder.config.channels
        self.codec = codec
        self._languages = parts.entry.languages
        self._prepare = parts.family.prepare

    @property
    def parts(self) -> MossParts:
        """The loaded model. Raises EngineClosed."""
        if self._held is None:
            raise EngineClosed(self.name)
        return self._held

    @property
    def environment(self) -> Environment:
        return environment_of(self.device, LANE_THREADS)

    def check_lanes(self) -> None:
        """Raises LanesDiffer where encodes that run at once have other codes than one that runs alone."""
        time_axis = np.arange(_CHECK_SECONDS * self.sample_rate) / self.sample_rate
        noise = np.random.default_rng(0).standard_normal((2, time_axis.size))
        sound = (0.1 * (1 + np.sin(20 * time_axis)) * noise).clip(-1, 1)
        self._encoder.check_lanes(self.prepare(Waveform(sound.astype(np.float32), self.sample_rate)))

    def check_script(self, text: str) -> None:
        """Raises ForeignLetters where no language of the model is written so."""
        check_letters(text, self._languages)

    def prepare(self, clip: Waveform) -> Waveform:
        return self._prepare(clip)

    def encode(self, prepared: Waveform) -> Encoded:
        return self._encoder.encode(prepared)

    def speak(
        self, utterance: Utterance, codes: np.ndarray, options: SamplingOptions, *, index: int
    ) -> Generator[np.ndarray, None, None]:
        """Yields after every frame, as `speak_utterance`; raises EngineClosed with the frame after `close`."""
        request = MossRequest(utterance=utterance, codes=codes, options=options, index=index)
        with closing(speak_utterance(self.parts, request)) as chunks:
            for chunk in chunks:
                yield chunk
                if self._held is None:
                    raise EngineClosed(self.name)

    def close(self) -> int:
        """As `Engine.close`: bytes of weights that were loaded, not what the system has got back by now; weights that
        are mapped from a file took only what was read of them."""
        held, self._held = self._held, None
        if held is None:
            return 0
        freed = tensor_bytes(held.model) + tensor_bytes(held.decoder) + self._encoder.close()
        del held
        give_back(self.device)
        return freed
