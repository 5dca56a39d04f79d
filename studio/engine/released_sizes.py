"""Sizes of the released MOSS models, and of toys of the same form: for measuring speed and memory, which do not depend
on what the weights are. Who speaks with a model reads its config.json instead."""

from dataclasses import dataclass, replace

import torch

from studio.engine.backbone_config import ControlTokens, GptShape, QwenShape, SpeechModelConfig
from studio.engine.codec_config import CodecConfig, LookupConfig, PatchConfig, StackConfig, Stage, UnpatchConfig
from studio.engine.frame_sampling import LOCAL_SAMPLING, NANO_SAMPLING, SpeechSampling

_TOKENS = ControlTokens(pad=3, im_start=4, im_end=5, audio_start=6, audio_end=7, user_slot=8, assistant_slot=9)


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """A language model with its codec."""

    name: str
    speech: SpeechModelConfig
    codec: CodecConfig
    sampling: SpeechSampling
    cpu_dtype: torch.dtype
    """What it is measured in on a CPU: the largest model does not fit most machines in float32."""


def _nano_speech() -> SpeechModelConfig:
    stack = GptShape(
        width=768, num_layers=12, num_heads=12, inner_width=3072, activation="gelu_tanh", norm_epsilon=1e-5,
        rotary_base=10_000.0,
    )  # fmt: skip
    return SpeechModelConfig(
        backbone=stack, depth=replace(stack, num_layers=1), vocabulary=16_384, num_codebooks=16, codebook_size=1024,
        code_pad=1024, longest=32_768, sample_rate=48_000, tokens=_TOKENS,
    )  # fmt: skip


def _local_speech() -> SpeechModelConfig:
    backbone = QwenShape(
        width=2560, num_layers=36, num_heads=32, num_key_heads=8, head_width=128, inner_width=9728, norm_epsilon=1e-6,
        rotary_base=1e6,
    )  # fmt: skip
    depth = GptShape(
        width=2560, num_layers=1, num_heads=32, inner_width=9728, activation="silu", norm_epsilon=1e-6, rotary_base=1e6
    )
    return SpeechModelConfig(
        backbone=backbone, depth=depth, vocabulary=151_936, num_codebooks=12, codebook_size=1024, code_pad=1024,
        longest=40_960, sample_rate=48_000, tokens=_TOKENS,
    )  # fmt: skip


def _stack(features: tuple[int, int], width: int, num_layers: int, window: int) -> StackConfig:
    """A stage of heads of 64 and a feed-forward network four times as wide, as all released ones are."""
    return StackConfig(
        input_features=features[0], output_features=features[1], width=width, num_heads=width // 64,
        num_layers=num_layers, feed_forward_width=4 * width, max_period=10_000.0, window=window, projects_input=True,
        projects_output=True,
    )  # fmt: skip


def _codec(encoder: tuple[Stage, ...], decoder: tuple[Stage, ...], num_codebooks: int) -> CodecConfig:
    quantizer = LookupConfig(
        latent_width=768, residual_width=512, num_codebooks=num_codebooks, codebook_size=1024, code_width=8
    )
    return CodecConfig(
        sample_rate=48_000, channels=2, hop_length=3840, encoder=encoder, decoder=decoder, quantizer=quantizer
    )


def _nano_codec() -> CodecConfig:
    def patched(features: tuple[int, int], num_layers: int, window: int) -> StackConfig:
        return _stack(features, 256, num_layers, window)

    encoder = (
        PatchConfig(patch=240), patched((240, 384), 4, 1600), PatchConfig(patch=2), patched((768, 384), 2, 1200),
        PatchConfig(patch=2), patched((768, 384), 2, 800), PatchConfig(patch=2), patched((768, 192), 4, 500),
        PatchConfig(patch=4),
    )  # fmt: skip
    decoder = (
        UnpatchConfig(patch=4), patched((192, 768), 4, 500), UnpatchConfig(patch=2), patched((384, 768), 2, 800),
        UnpatchConfig(patch=2), patched((384, 768), 2, 1200), UnpatchConfig(patch=2), patched((384, 240), 4, 1600),
        UnpatchConfig(patch=240),
    )  # fmt: skip
    return _codec(encoder, decoder, 16)


def _second_codec() -> CodecConfig:
    def wide(features: tuple[int, int]) -> StackConfig:
        return _stack(features, 1280, 32, 125)

    def narrow(features: tuple[int, int], window: int = 400) -> StackConfig:
        return _stack(features, 768, 12, window)

    encoder = (
        PatchConfig(patch=240), narrow((240, 384)), PatchConfig(patch=2), narrow((768, 384)), PatchConfig(patch=2),
        narrow((768, 384)), PatchConfig(patch=2), narrow((768, 384)), PatchConfig(patch=2), narrow((768, 640), 250),
        PatchConfig(patch=2), wide((1280, 768)),
    )  # fmt: skip
    decoder = (
        wide((768, 1280)), UnpatchConfig(patch=2), narrow((640, 768), 250), UnpatchConfig(patch=2), narrow((384, 768)),
        UnpatchConfig(patch=2), narrow((384, 768)), UnpatchConfig(patch=2), narrow((384, 768)), UnpatchConfig(patch=2),
        narrow((384, 240)), UnpatchConfig(patch=240),
    )  # fmt: skip
    return _codec(encoder, decoder, 32)


def _toy(size: ModelSize) -> ModelSize:
    """The same form with few small layers."""
    speech = size.speech
    if isinstance(speech.backbone, QwenShape):
        backbone = replace(
            speech.backbone, width=64, num_layers=2, num_heads=4, num_key_heads=2, head_width=16, inner_width=96
        )
    else:
        backbone = replace(speech.backbone, width=64, num_layers=2, num_heads=4, inner_width=96)
    depth = replace(speech.depth, width=64, num_heads=4, inner_width=96)
    return replace(
        size,
        name=f"toy-{size.name}",
        speech=replace(speech, backbone=backbone, depth=depth, vocabulary=128, num_codebooks=4),
        codec=_toy_codec(),
        cpu_dtype=torch.float32,
    )


def _toy_codec() -> CodecConfig:
    encoder = (
        PatchConfig(patch=24), _stack((24, 64), 64, 1, 20), PatchConfig(patch=2), _stack((128, 64), 64, 1, 10),
        PatchConfig(patch=2),
    )  # fmt: skip
    decoder = (
        UnpatchConfig(patch=2), _stack((64, 128), 64, 1, 10), UnpatchConfig(patch=2), _stack((64, 24), 64, 1, 20),
        UnpatchConfig(patch=24),
    )  # fmt: skip
    quantizer = LookupConfig(latent_width=128, residual_width=16, num_codebooks=4, codebook_size=1024, code_width=4)
    return CodecConfig(
        sample_rate=600, channels=2, hop_length=48, encoder=encoder, decoder=decoder, quantizer=quantizer
    )


NANO = ModelSize(
    name="nano", speech=_nano_speech(), codec=_nano_codec(), sampling=NANO_SAMPLING, cpu_dtype=torch.float32
)
LOCAL = ModelSize(
    name="local", speech=_local_speech(), codec=_second_codec(), sampling=LOCAL_SAMPLING, cpu_dtype=torch.bfloat16
)
SIZES = {size.name: size for size in (NANO, LOCAL, _toy(NANO), _toy(LOCAL))}
"""The released models and their toys, by name."""
