"""Weights of the research prototype, in the names the studio's modules use."""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from studio.engine.aligned_model import AlignedModel, AlignedModelConfig
from studio.engine.checkpoints import Recommended, save
from studio.engine.harmonic_codec import HarmonicCodec, HarmonicCodecConfig

State = dict[str, Tensor]
_BLOCK = {"n1": "attention_norm", "n2": "feed_forward_norm", "qkv": "qkv", "o": "output", "up": "up", "dn": "down"}
_CODEC = {
    "e_in": "encoder.input",
    "e1": "encoder.fine",
    "e_p": "encoder.merge",
    "e2": "encoder.coarse",
    "zi": "encoder.latent",
    "zo": "decoder.latent",
    "d1": "decoder.coarse",
    "u1": "decoder.to_middle",
    "d2": "decoder.middle",
    "u2": "decoder.to_fine",
    "d3": "decoder.fine",
    "d_n": "decoder.norm",
    "head": "decoder.head",
}
_LANGUAGE = {
    "te": "text.embedding",
    "tb": "text.blocks",
    "tn": "text.norm",
    "tf": "text.to_frame",
    "ae": "codes",
    "rt": "reference_mark",
    "bos": "begin",
    "b": "blocks",
    "n": "norm",
    "dur": "durations",
    "le": "local.embedding",
    "lp": "local.positions",
    "gi": "local.input",
    "lb": "local.blocks",
    "ln": "local.norm",
    "hd": "local.heads",
}


def codec_state(prototype: State) -> State:
    """The codec's state dict; what only training used (mean statistics, an unused norm) is left out, and the
    frame that follows, which the prototype's decoder did not look at, counts nothing."""
    state = {"quantizer.codebooks": prototype["rvq.c"].float()}
    state["decoder.following.weight"] = torch.zeros_like(prototype["zo.weight"], dtype=torch.float32)
    for key, value in prototype.items():
        first, *rest = key.split(".")
        if first in _CODEC:
            state[".".join([_CODEC[first], *_block_names(rest)])] = value.float()
    return state


def language_state(prototype: State) -> State:
    """The language model's state dict."""
    state = {}
    for key, value in prototype.items():
        first, *rest = key.split(".")
        state[".".join([_LANGUAGE[first], *_block_names(rest, stack=False)])] = value.float()
    return state


def _block_names(parts: list[str], *, stack: bool = True) -> list[str]:
    """`b.0.n1.weight` within a stack, `0.n1.weight` in a plain list, to our names."""
    if stack and parts[0] == "b":
        parts = ["blocks", *parts[1:]]
    return [_BLOCK.get(part, part) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prototype", type=Path, help="folder with codec.safetensors, lm.safetensors, vocabulary.json")
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    phonemes = json.loads((arguments.prototype / "vocabulary.json").read_text(encoding="utf-8"))
    codec = HarmonicCodec(HarmonicCodecConfig())
    codec.load_state_dict(codec_state(load_file(arguments.prototype / "codec.safetensors")), strict=True)
    language = AlignedModel(AlignedModelConfig(vocabulary_size=len(phonemes)))
    language.load_state_dict(language_state(load_file(arguments.prototype / "lm.safetensors")), strict=True)
    with torch.no_grad():
        save(arguments.output, codec, language, phonemes=tuple(phonemes), recommended=Recommended())


if __name__ == "__main__":
    main()
