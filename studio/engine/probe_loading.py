"""Which engine is probed by what."""

from studio.engine.checkpoints import load
from studio.engine.codec_weights import load_decoder, load_encoder
from studio.engine.interface import Engine
from studio.engine.model_catalogue import find_model
from studio.engine.model_store import ModelStore
from studio.engine.probe import CodecProbe, ProbeFactory, ProbeSetting
from studio.engine.probe_harmonic import HarmonicProbe
from studio.engine.probe_moss import MossProbe
from studio.settings import Settings, assets_dir


def load_probes(engine: Engine, settings: Settings) -> ProbeFactory:
    """Loads a second copy of an engine's codec, for probes of it under any setting: the engine's own is left alone.

    Raises WeightsError or a kind of ModelError.
    """
    return _embedded(engine) if engine.name == "embedded" else _moss(engine, settings)


def _embedded(engine: Engine) -> ProbeFactory:
    codec = load(assets_dir() / "model").codec

    def probe(setting: ProbeSetting) -> CodecProbe:
        return HarmonicProbe(codec, engine.codec, setting)

    return probe


def _moss(engine: Engine, settings: Settings) -> ProbeFactory:
    folder = ModelStore(settings.models_dir).folders(find_model(engine.name), settings.hub).codec
    encoder = load_encoder(folder, device=engine.device)
    decoder = load_decoder(folder, num_codebooks=engine.codec.num_codebooks, device=engine.device)

    def probe(setting: ProbeSetting) -> CodecProbe:
        return MossProbe(encoder, decoder, engine.codec, setting)

    return probe
