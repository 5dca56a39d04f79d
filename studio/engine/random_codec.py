"""The size of a released MOSS codec with random weights, as an engine that encodes: the lab examines it without a
download.

Which kernel a product takes depends on shapes and dtypes, not on the weights; how many codes flip depends on both, so
the shares it gives are those of these weights.
"""

import hashlib
from collections.abc import Generator

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.codec import CodecDecoder, CodecEncoder
from studio.engine.fixed_arithmetic import ATTENTION
from studio.engine.interface import CodecIdentity, Encoded, Environment
from studio.engine.lanes import LANE_THREADS
from studio.engine.moss_family import LOCAL, NANO
from studio.engine.random_models import random_decoder, random_encoder
from studio.engine.released_sizes import SIZES
from studio.engine.sampling import SamplingOptions
from studio.engine.solo_encoder import EncoderPlan, SoloEncoder, environment_of
from studio.errors import SettingError
from studio.text.script import Utterance

RANDOM_CODECS = {
    "random-v2": ("local", LOCAL),
    "random-nano": ("nano", NANO),
    "random-toy": ("toy-nano", NANO),
}
"""Names for the lab: which size, and which family's preparation."""


class RandomCodec:
    """Implements `Engine` but for speaking, which it refuses."""

    speech_threads = LANE_THREADS
    uses_transcript = False

    def __init__(self, name: str, device: str) -> None:
        size, family = RANDOM_CODECS[name]
        self.name = self.revision = name
        self.device = device
        self.encoder: CodecEncoder = random_encoder(SIZES[size], device=device)
        self.decoder: CodecDecoder = random_decoder(SIZES[size], device=device)
        config, count = self.encoder.config, SIZES[size].speech.num_codebooks
        self.sample_rate, self.channels = config.sample_rate, config.channels
        self.codec = CodecIdentity(
            codec_id=name,
            digest=hashlib.sha256(f"{name} on {device}".encode()).hexdigest(),
            sample_rate=config.sample_rate,
            hop_length=config.hop_length,
            num_codebooks=count,
            codebook_size=config.quantizer.codebook_size,
            compute_dtype="float32",
            attention_backend=ATTENTION,
            recipe=family.recipe,
        )
        self._prepare = family.prepare
        plan = EncoderPlan(name=name, load=lambda: self.encoder, num_codebooks=count, device=device)
        self._encoder = SoloEncoder(plan)

    @property
    def environment(self) -> Environment:
        return environment_of(self.device, LANE_THREADS)

    def check_script(self, text: str) -> None:  # noqa: ARG002  no text can be spoken
        """Raises SettingError."""
        raise _silent(self.name)

    def prepare(self, clip: Waveform) -> Waveform:
        return self._prepare(clip)

    def encode(self, prepared: Waveform) -> Encoded:
        return self._encoder.encode(prepared)

    def speak(
        self,
        utterance: Utterance,  # noqa: ARG002
        codes: np.ndarray,  # noqa: ARG002
        options: SamplingOptions,  # noqa: ARG002
        *,
        index: int,  # noqa: ARG002
    ) -> Generator[np.ndarray, None, None]:
        """Raises SettingError."""
        raise _silent(self.name)

    def close(self) -> int:
        return self._encoder.close()


def _silent(name: str) -> SettingError:
    return SettingError("engine", name, "it is a codec with random weights, for the lab only, and does not speak.")
