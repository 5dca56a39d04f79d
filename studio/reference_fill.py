"""The solo encode: one clip alone through preparation and encoder, its codes checked before they are kept."""

import time

from studio.audio.waveform import Waveform
from studio.engine.interface import CodecIdentity, Encoded, Engine
from studio.reference_check import check_codes
from studio.reference_key import codec_key
from studio.store.code_cache import CachedCodes, CodeCache, Provenance, Refilled


class SoloFill:
    """Encodes with one engine into one cache; that nobody else does meanwhile is the desk's care."""

    def __init__(self, engine: Engine, cache: CodeCache) -> None:
        self._engine = engine
        self._cache = cache
        self.codec = codec_key(engine.codec)

    def encode(self, clip: Waveform) -> Encoded:
        """Codes as they would be stored; nothing is stored or counted. DegenerateCodes where they are not usable."""
        prepared = self._engine.prepare(clip)
        encoded = self._engine.encode(prepared)
        check_codes(encoded.codes, prepared.num_samples, self._engine.codec)
        return encoded

    def fill(self, key: str, clip: Waveform) -> CachedCodes:
        """Stores the codes unless somebody else has; returns what is stored then."""
        encoded = self.encode(clip)
        return self._cache.insert(key, encoded.codes, _provenance(encoded, self._engine.codec), codec=self.codec)

    def refill(self, key: str, clip: Waveform) -> Refilled:
        """Stores the codes in place of those that are there."""
        encoded = self.encode(clip)
        return self._cache.replace(key, encoded.codes, _provenance(encoded, self._engine.codec), codec=self.codec)


def _provenance(encoded: Encoded, codec: CodecIdentity) -> Provenance:
    environment = encoded.environment
    return Provenance(
        device=environment.device,
        torch_version=environment.torch_version,
        cuda_version=environment.cuda_version,
        num_threads=environment.num_threads,
        encode_seconds=encoded.duration,
        filled=time.time(),
        codec_id=codec.codec_id,
        recipe=codec.recipe,
    )
