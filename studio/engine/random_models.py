"""Models of a given size with random weights: they compute as long and hold as much as trained ones and say nothing."""

from itertools import chain

import torch
from torch import nn

from studio.engine.codec import CodecDecoder, CodecEncoder
from studio.engine.codec_weights import CodecModules
from studio.engine.released_sizes import ModelSize
from studio.engine.speech_model import SpeechModel, build_speech_model

_SCALE = 0.3
"""Of the codec's branches: neither lost beside their input nor all there is."""


def random_speech_model(size: ModelSize, *, device: str, dtype: torch.dtype, seed: int = 0) -> SpeechModel:
    """The language model, ready to speak."""
    with torch.device("meta"):
        model = build_speech_model(size.speech).to(dtype)
    _fill(model, device, seed)
    model.eval().requires_grad_(False)
    model.prepare()
    return model


def random_decoder(size: ModelSize, *, device: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> CodecDecoder:
    """The codec's decoder, for as many codebooks as the language model speaks."""
    modules = _modules(size, "encoder", device, dtype, seed)
    table = modules.quantizer.table(size.speech.num_codebooks)
    return CodecDecoder(size.codec, table, modules.decoder).eval()


def random_encoder(size: ModelSize, *, device: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> CodecEncoder:
    """The codec's encoder; its quantiser is float32 whatever `dtype` is."""
    modules = _modules(size, "decoder", device, dtype, seed)
    return CodecEncoder(size.codec, modules.encoder, modules.quantizer).eval()


def _modules(size: ModelSize, unwanted: str, device: str, dtype: torch.dtype, seed: int) -> CodecModules:
    with torch.device("meta"):
        modules = CodecModules(size.codec)
    delattr(modules, unwanted)
    for half in (name for name in ("encoder", "decoder") if name != unwanted):
        modules.get_submodule(half).to(dtype)
    _fill(modules, device, seed)
    return modules


@torch.no_grad()
def _fill(module: nn.Module, device: str, seed: int) -> None:
    """Matrices keep the variance of what goes through them, norms change nothing."""
    module.to_empty(device=device)
    generator = torch.Generator(device).manual_seed(seed)
    for name, tensor in chain(module.named_parameters(), module.named_buffers()):
        if tensor.dim() > 1:
            tensor.normal_(0.0, tensor.shape[-1] ** -0.5, generator=generator)
        else:
            tensor.fill_(0.0 if name.endswith("bias") else _SCALE if name.endswith("scale") else 1.0)
