"""Whole models of both MOSS families at toy size, in the released format: weights, configuration and real tokenizers.

Their speech is noise. It ends after some twenty frames by the draws of the stop head, which leans towards going on.
"""

import functools
import io
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn
from toy_tokenizers import CONTROLS, local_tokenizer, nano_tokenizer

from studio.engine.backbone_json import speech_config
from studio.engine.codec_json import codec_config
from studio.engine.codec_weights import CodecModules
from studio.engine.speech_model import LocalSpeechModel, NanoSpeechModel, SpeechModel, build_speech_model

Files = dict[str, bytes]
RATE = 48_000
HOP = 3_840
CODEBOOK_SIZE = 64
NANO_CODEBOOKS = 4
LOCAL_CODEBOOKS = 3
WIDTH = 64
NEVER_STOPS = 10.0
"""By how much the stop head prefers to go on where speech is not to end."""


@functools.cache
def nano_files(*, goes_on: float = 3.0, longest: int = 4_096) -> Files:
    """A repository of the shape of MOSS-TTS-Nano, its weights in a pickle as there."""
    ids = {f"{name}_token_id": 4 + place for place, name in enumerate(CONTROLS[:4])}
    ids |= {"audio_user_slot_token_id": 8, "audio_assistant_slot_token_id": 9, "pad_token_id": 3}
    gpt = _gpt_fields(rope_base=10_000.0, activation="gelu_new", epsilon=1e-5)
    fields = ids | {
        "model_type": "moss_tts_nano",
        "gpt2_config": gpt | {"n_layer": 2, "vocab_size": 320, "n_positions": longest, "n_ctx": longest},
        "local_transformer_layers": 1,
        "audio_tokenizer_sample_rate": RATE,
        **_code_fields(NANO_CODEBOOKS),
    }
    model = _toy_model(fields, goes_on)
    buffer = io.BytesIO()
    torch.save({name: tensor.half() for name, tensor in model.state_dict().items()}, buffer)
    return {
        "config.json": json.dumps(fields).encode(),
        "tokenizer.model": nano_tokenizer(),
        "pytorch_model.bin": buffer.getvalue(),
    }


@functools.cache
def local_files(*, goes_on: float = 3.0, weights_of_the_last_norm: float | None = None) -> Files:
    """A repository of the shape of MOSS-TTS-Local-Transformer v1.5, in bfloat16, with the tied heads stored twice."""
    tokenizer, ids = local_tokenizer()
    qwen = {
        "hidden_size": WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 96,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000,
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "vocab_size": 400,
        "max_position_embeddings": 4_096,
    }
    fields = ids | {
        "model_type": "moss_tts_local",
        "qwen3_config": qwen,
        "language_config": qwen,
        "gpt2_config": _gpt_fields(rope_base=1e6, activation="silu", epsilon=1e-6) | {"n_layer": 1},
        "local_text_head_mode": "binary",
        "sampling_rate": RATE,
        **_code_fields(LOCAL_CODEBOOKS),
    }
    model = _toy_model(fields, goes_on)
    tensors = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    if weights_of_the_last_norm is not None:
        tensors["transformer.norm.weight"].fill_(weights_of_the_last_norm)
    tensors |= {again: tensors[name].clone() for again, name in model.ties.items()}
    return {"config.json": json.dumps(fields).encode(), "tokenizer.json": tokenizer, "model.safetensors": save(tensors)}


@functools.cache
def codec_files(num_codebooks: int = NANO_CODEBOOKS + 2, *, silent: bool = False) -> Files:
    """A repository of the shape of MOSS-Audio-Tokenizer-Nano in one shard with an index; it has more codebooks than are
    spoken. `silent`: whatever is decoded is silence."""
    sides = [(240, 12, 0.5), (24, 12, 0.5), (24, 8, 0.5)]
    patches = (240, 2, 2, 8)
    encoder: list[dict[str, Any]] = [_patch(patches[0])]
    for (into, out, seconds), patch in zip(sides, patches[1:], strict=True):
        encoder += [_stack(into, out, seconds), _patch(patch)]
    decoder: list[dict[str, Any]] = [_patch(8), _stack(8, 24, 0.5), _patch(2), _stack(12, 24, 0.5), _patch(2)]
    decoder += [_stack(12, 240, 0.5), _patch(240)]
    fields = {
        "model_type": "moss-audio-tokenizer",
        "sampling_rate": RATE,
        "sample_rate": RATE,
        "downsample_rate": HOP,
        "number_channels": 2,
        "enable_channel_interleave": True,
        "encoder_kwargs": encoder,
        "decoder_kwargs": decoder,
        "quantizer_type": "rlfq",
        "quantizer_kwargs": {
            "input_dim": 64,
            "rvq_dim": 16,
            "output_dim": 64,
            "num_quantizers": num_codebooks,
            "codebook_size": CODEBOOK_SIZE,
            "codebook_dim": 8,
            "quantizer_type": "rlfq",
            "quantizer_dropout": 1.0,
        },
    }
    torch.manual_seed(3)
    modules = CodecModules(codec_config(fields, source="toy"))
    last = modules.decoder[5].output_proj
    assert isinstance(last, nn.Linear)
    nn.init.normal_(last.weight, std=0.0 if silent else 0.02)
    for name, parameter in modules.quantizer.named_parameters():
        if name.endswith("in_proj.bias"):
            nn.init.zeros_(parameter)  # so that the codes depend on the sound
    weights = save(_as_released(modules.state_dict()))
    shard = "model-00001-of-00001.safetensors"
    index = {"weight_map": dict.fromkeys(_as_released(modules.state_dict()), shard)}
    return {
        "config.json": json.dumps(fields).encode(),
        "model.safetensors.index.json": json.dumps(index).encode(),
        shard: weights,
    }


def write_files(folder: Path, files: Files) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def _toy_model(fields: dict[str, Any], goes_on: float) -> SpeechModel:
    torch.manual_seed(2)
    model = build_speech_model(speech_config(fields, source="toy"))
    last, lean = model.local_transformer.ln_f, nn.functional.normalize(torch.randn(WIDTH), dim=0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed" in name or "wte" in name:
                parameter.mul_(0.3)
        if isinstance(model, LocalSpeechModel):
            model.local_text_lm_head.weight.copy_(torch.stack([lean / 2, -lean / 2]))
        elif isinstance(model, NanoSpeechModel):
            table = model.state_dict()["transformer.wte.weight"]
            table[7] = table[9] - lean
        last.weight.mul_(0.5)
        last.bias.copy_(goes_on * lean)
    return model


def _gpt_fields(*, rope_base: float, activation: str, epsilon: float) -> dict[str, Any]:
    return {
        "n_embd": WIDTH,
        "n_head": 4,
        "n_inner": 96,
        "activation_function": activation,
        "layer_norm_epsilon": epsilon,
        "rope_base": rope_base,
        "position_embedding_type": "rope",
        "scale_attn_weights": True,
    }


def _code_fields(num_codebooks: int) -> dict[str, Any]:
    return {
        "n_vq": num_codebooks,
        "audio_vocab_size": CODEBOOK_SIZE,
        "audio_codebook_sizes": [CODEBOOK_SIZE] * num_codebooks,
        "audio_pad_token_id": CODEBOOK_SIZE,
    }


def _patch(patch: int) -> dict[str, Any]:
    return {"module_type": "PatchedPretransform", "patch_size": patch}


def _stack(into: int, out: int, seconds: float) -> dict[str, Any]:
    return {
        "module_type": "Transformer",
        "input_dimension": into,
        "output_dimension": out,
        "d_model": 16,
        "num_heads": 2,
        "num_layers": 1,
        "dim_feedforward": 32,
        "causal": True,
        "norm": "layer_norm",
        "positional_embedding": "rope",
        "max_period": 10_000,
        "gating": "none",
        "layer_scale": 0.01,
        "conv_layout": True,
        "context_duration": seconds,
    }


def _as_released(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The quantiser's projections as normalised convolutions over one step: a length and a direction."""
    released: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith("quantizer.") and name.endswith("_proj.weight"):
            owner = name.removesuffix("weight") + "parametrizations.weight"
            released[f"{owner}.original0"] = tensor.norm(dim=1)[:, None, None].contiguous()
            released[f"{owner}.original1"] = tensor[:, :, None].contiguous()
        else:
            released[name] = tensor.contiguous()
    return released
