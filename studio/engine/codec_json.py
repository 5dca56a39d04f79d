"""Read the config.json of a released MOSS audio tokenizer: the first version, the second, and Nano.

Refuses, by a CheckpointError that names the field, whatever the network here does not compute and every field of a
stage that was never seen: the weights might fit all the same, and the sound would be noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from studio.engine.codec_config import CodecConfig, LookupConfig, PatchConfig, StackConfig, Stage, UnpatchConfig
from studio.engine.released_config import Fields, described, expect, read_fields, size

_FIXED = {"causal": True, "norm": "layer_norm", "positional_embedding": "rope", "gating": "none", "conv_layout": True}
"""What each transformer stage of the released codecs states; nothing else is computed here."""
_SIZES = ("input_dimension", "output_dimension", "d_model", "num_heads", "num_layers", "dim_feedforward")
_STACK_FIELDS = {"module_type", *_FIXED, *_SIZES, "max_period", "layer_scale", "context_duration"}
_LOOKUP_SIZES = ("input_dim", "output_dim", "rvq_dim", "num_quantizers", "codebook_size", "codebook_dim")
_TRAINING_FIELDS = ("codebook_loss_weight", "commitment_loss_weight", "quantizer_dropout")
_LOOKUP_FIELDS = {*_LOOKUP_SIZES, *_TRAINING_FIELDS, "quantizer_type"}


@dataclass(frozen=True)
class _Version:
    """In what two versions that share a format differ."""

    window: Callable[[float], int]
    """Steps of a window from its exact length in steps."""
    always_projects: bool
    """The first version has no projection where both sides have the same width."""


_FIRST = _Version(window=int, always_projects=False)
_SECOND = _Version(window=round, always_projects=True)


def read_codec_config(folder: Path) -> CodecConfig:
    """The codec that `folder/config.json` describes. Raises CheckpointError where there is none that can be used."""
    return codec_config(read_fields(folder), source=str(folder))


def codec_config(fields: Fields, *, source: str) -> CodecConfig:
    """The codec that the fields of a config.json describe; `source` names it in a CheckpointError."""
    return described(fields, _codec, source=source)


def _codec(fields: Fields) -> CodecConfig:
    sample_rate = _one_of(fields, "sampling_rate", "sample_rate")
    hop_length = size(fields, "downsample_rate")
    channels = _channels(fields)
    stack = partial(_stack, version=_version(fields), context=fields.get("causal_transformer_context_duration"))
    return CodecConfig(
        sample_rate=sample_rate,
        channels=channels,
        hop_length=hop_length,
        encoder=_encoder(fields["encoder_kwargs"], float(sample_rate * channels), stack),
        decoder=_decoder(_decoder_fields(fields), sample_rate / hop_length, stack),
        quantizer=_quantizer(fields),
    )


def _version(fields: Fields) -> _Version:
    """The first version knew nothing of channels, nor of a window for each stage."""
    if {"number_channels", "channels_numbers"} & fields.keys():
        return _SECOND
    expect(fields, "model_type", "speech_tokenizer")
    return _FIRST


def _channels(fields: Fields) -> int:
    if not {"number_channels", "channels_numbers"} & fields.keys():
        return 1
    channels = _one_of(fields, "number_channels", "channels_numbers")
    if channels > 1:
        expect(fields, "enable_channel_interleave", True)
    return channels


def _decoder_fields(fields: Fields) -> Sequence[Fields]:
    """The decoder's stages; where only the mirrored list is there, it is in encoder order with both sides swapped."""
    if fields.get("decoder_kwargs") is not None:
        return fields["decoder_kwargs"]
    return [_swapped(stage) for stage in reversed(fields["reversed_decoder_kwargs"])]


def _swapped(stage: Fields) -> Fields:
    if stage["module_type"] != "Transformer":
        return stage
    return {
        **stage,
        "input_dimension": stage["output_dimension"],
        "output_dimension": stage["input_dimension"],
    }


def _encoder(stages: Sequence[Fields], rate: float, stack: Callable[[Fields, float], StackConfig]) -> tuple[Stage, ...]:
    """`rate` is that of the stream's scalars, a second."""
    made: list[Stage] = []
    for stage in stages:
        if stage["module_type"] == "Transformer":
            made.append(stack(stage, rate))
        else:
            made.append(PatchConfig(patch=_patch(stage)))
            rate /= _patch(stage)
    return tuple(made)


def _decoder(stages: Sequence[Fields], rate: float, stack: Callable[[Fields, float], StackConfig]) -> tuple[Stage, ...]:
    """`rate` is that of the frames, a second."""
    made: list[Stage] = []
    for stage in stages:
        if stage["module_type"] == "Transformer":
            made.append(stack(stage, rate))
        else:
            made.append(UnpatchConfig(patch=_patch(stage)))
            rate *= _patch(stage)
    return tuple(made)


def _patch(stage: Fields) -> int:
    expect(stage, "module_type", "PatchedPretransform")
    _know(stage, {"module_type", "patch_size"})
    return size(stage, "patch_size")


def _stack(stage: Fields, rate: float, *, version: _Version, context: float | None) -> StackConfig:
    _know(stage, _STACK_FIELDS)
    for field, value in _FIXED.items():
        expect(stage, field, value)
    if stage["layer_scale"] is None:
        raise ValueError("layer_scale is None, and the layers here are scaled")
    seconds = stage.get("context_duration", context)
    if not isinstance(seconds, int | float):
        raise ValueError(f"context_duration is {seconds!r}")
    input_features, output_features, width, num_heads, num_layers, feed_forward = (size(stage, key) for key in _SIZES)
    return StackConfig(
        input_features=input_features,
        output_features=output_features,
        width=width,
        num_heads=num_heads,
        num_layers=num_layers,
        feed_forward_width=feed_forward,
        max_period=float(stage["max_period"]),
        window=version.window(rate * seconds),
        projects_input=version.always_projects or input_features != width,
        projects_output=version.always_projects or output_features != width,
    )


def _quantizer(fields: Fields) -> LookupConfig:
    quantizer = fields["quantizer_kwargs"]
    _know(quantizer, _LOOKUP_FIELDS)
    expect(quantizer, "quantizer_type", "rlfq")
    expect(fields, "quantizer_type", "rlfq")
    latent, output, residual, num_codebooks, codebook_size, code_width = (size(quantizer, key) for key in _LOOKUP_SIZES)
    if output != latent:
        raise ValueError(f"output_dim is {output}, input_dim {latent}")
    return LookupConfig(
        latent_width=latent,
        residual_width=residual,
        num_codebooks=num_codebooks,
        codebook_size=codebook_size,
        code_width=code_width,
    )


def _one_of(fields: Fields, name: str, alias: str) -> int:
    """A number that has two names; where both are there they must agree."""
    if name in fields and alias in fields and fields[name] != fields[alias]:
        raise ValueError(f"{name} is {fields[name]!r}, {alias} {fields[alias]!r}")
    return size(fields, name if name in fields else alias)


def _know(fields: Fields, known: set[str]) -> None:
    if fields.keys() - known:
        raise ValueError(f"nothing is known of {', '.join(sorted(fields.keys() - known))}")
