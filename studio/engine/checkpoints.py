"""Find, verify, load and save the embedded voice model: one config.json beside two safetensors files."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from studio.engine.aligned_model import AlignedModel, AlignedModelConfig
from studio.engine.harmonic_codec import HarmonicCodec, HarmonicCodecConfig
from studio.errors import WeightsError

FORMAT = 1
CODEC_FILE = "codec.safetensors"
LANGUAGE_FILE = "language.safetensors"


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """How the language model is best sampled; found by the evaluation of `studio.training`."""

    temperature: float = 0.5
    top_k: int = 15
    later_scale: float = 0.8
    """The temperature from the third codebook on is multiplied by this."""
    guidance: float = 1.0
    """How far the text is insisted on; 1 does without, more costs a second row in every step."""
    pace: float = 0.95
    """Divides predicted durations: they come out a little short."""
    reference_frames: int = 38
    """The language model is conditioned on at most this many frames of the reference's beginning: what training saw."""


@dataclass(frozen=True)
class VoiceModel:
    """A loaded model in evaluation mode, float32, on the CPU."""

    codec: HarmonicCodec
    language: AlignedModel
    phonemes: tuple[str, ...]
    """The vocabulary in order: 0 is padding, 1 unknown."""
    recommended: Recommended
    revision: str
    """Short name of these weights."""
    codec_digest: str
    """SHA-256 over the codec's configuration and weights."""


def load(folder: Path) -> VoiceModel:
    """Reads a model folder; every file must have the SHA-256 that config.json states.

    Raises WeightsError where a file is missing, damaged or of another format; nothing is loaded half.
    """
    config = _read_config(folder)
    for name, expected in config["files"].items():
        _check_file(folder / name, expected)
    try:
        codec = HarmonicCodec(_codec_config(config["codec"]))
        language = AlignedModel(AlignedModelConfig(**config["language"]))
        _load_weights(codec, folder / CODEC_FILE)
        _load_weights(language, folder / LANGUAGE_FILE)
    except (KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise WeightsError(str(folder), "its files do not fit each other") from error
    return VoiceModel(
        codec=codec.eval(),
        language=language.eval(),
        phonemes=tuple(config["phonemes"]),
        recommended=Recommended(**config["recommended"]),
        revision=_digest(config["files"])[:12],
        codec_digest=_digest([config["codec"], config["files"][CODEC_FILE]]),
    )


def save(
    folder: Path,
    codec: HarmonicCodec,
    language: AlignedModel,
    *,
    phonemes: tuple[str, ...],
    recommended: Recommended,
) -> None:
    """Writes a model folder: weights as float16, config.json last, so that a broken save is noticed."""
    folder.mkdir(parents=True, exist_ok=True)
    for module, name in ((codec, CODEC_FILE), (language, LANGUAGE_FILE)):
        halves = {key: value.detach().half().contiguous() for key, value in module.state_dict().items()}
        save_file(halves, folder / name)
    config = {
        "format": FORMAT,
        "codec": asdict(codec.config),
        "language": asdict(language.config) | {"dropout": 0.0},
        "recommended": asdict(recommended),
        "phonemes": phonemes,
        "files": {name: _file_digest(folder / name) for name in (CODEC_FILE, LANGUAGE_FILE)},
    }
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(str(folder), "config.json is missing") from error
    except ValueError as error:
        raise WeightsError(str(folder), "config.json is damaged") from error
    if config.get("format") != FORMAT:
        raise WeightsError(str(folder), f"its format is {config.get('format')!r}, this studio reads {FORMAT}")
    return config


def _codec_config(fields: dict[str, Any]) -> HarmonicCodecConfig:
    """JSON has lists where the configuration has tuples."""
    tuples: dict[str, Any] = {key: tuple(fields[key]) for key in ("encoder_layers", "decoder_layers")}
    return HarmonicCodecConfig(**fields | tuples)


def _check_file(path: Path, expected: str) -> None:
    if not path.is_file():
        raise WeightsError(str(path.parent), f"{path.name} is missing")
    if _file_digest(path) != expected:
        raise WeightsError(str(path.parent), f"{path.name} is damaged")


def _load_weights(module: nn.Module, path: Path) -> None:
    module.load_state_dict({key: value.to(torch.float32) for key, value in load_file(path).items()}, strict=True)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
