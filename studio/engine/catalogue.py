"""The engines this studio knows, and how each is loaded."""

from studio.engine.checkpoints import load
from studio.engine.embedded import EmbeddedEngine
from studio.engine.interface import Engine
from studio.engine.model_catalogue import find_model
from studio.engine.moss_loading import load_moss
from studio.errors import SettingError, UnknownEngine
from studio.settings import Settings, assets_dir

ENGINES = ("embedded", "moss-nano", "moss-local")
"""The first needs no download; the others are models of the catalogue."""


def load_engine(name: str, settings: Settings) -> Engine:
    """Loads an engine's weights and warms it up: in a second or two, in more where the model is large.

    Raises UnknownEngine, SettingError, ModelAbsent (which says how to get the model) and other kinds of ModelError,
    WeightsError, and LanesDiffer where this device cannot keep to the canonical codes with as many encoder lanes as the
    settings ask for.
    """
    if name not in ENGINES:
        raise UnknownEngine(name, ", ".join(ENGINES))
    if name == "embedded":
        return _load_embedded(settings)
    return load_moss(find_model(name), settings)


def _load_embedded(settings: Settings) -> EmbeddedEngine:
    if settings.device not in ("auto", "cpu"):
        raise SettingError("device", settings.device, "the embedded voice runs on the CPU; choose auto or cpu.")
    engine = EmbeddedEngine(load(assets_dir() / "model"), lanes=settings.lanes)
    engine.warm_up()
    engine.check_lanes()
    return engine
