"""What the lab examines, and which engine is probed by what."""

import torch

from studio.engine.catalogue import load_engine
from studio.engine.checkpoints import load
from studio.engine.codec_weights import load_decoder, load_encoder
from studio.engine.interface import Engine
from studio.engine.model_catalogue import find_model
from studio.engine.model_store import ModelStore
from studio.engine.probe import CodecProbe, ProbeFactory, ProbeSetting
from studio.engine.probe_harmonic import HarmonicProbe
from studio.engine.probe_moss import MossProbe
from studio.engine.random_codec import RANDOM_CODECS, RandomCodec
from studio.settings import Settings, assets_dir


def load_examined(name: str, settings: Settings) -> tuple[Engine, ProbeFactory]:
    """An engine, or one of `RANDOM_CODECS`, and the probes of its codec; raises as `load_engine`."""
    if name not in RANDOM_CODECS:
        engine = load_engine(name, settings)
        return engine, load_probes(engine, settings)
    codec = RandomCodec(name, "cuda" if torch.cuda.is_available() and settings.device != "cpu" else "cpu")
    return codec, lambda setting: MossProbe(codec.encoder, codec.decoder, codec.codec, setting)


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
