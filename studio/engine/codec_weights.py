"""Load a released MOSS audio tokenizer from its folder, one half at a time, to the last tensor.

Two spellings of the keys are known: the first version's, and the one that the second version and Nano share, which is
also that of the modules here.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from studio.engine.codec import CodecDecoder, CodecEncoder
from studio.engine.codec_config import CodecConfig
from studio.engine.codec_json import read_codec_config
from studio.engine.codec_layers import CodecStages
from studio.engine.lookup_quantizer import LookupQuantizer
from studio.engine.weight_files import fold_weight_norms, load_strictly, read_tensors

_FIRST_SPELLING = (
    (re.compile(r"\.self_attn\.(in|out)_projs\.0\.weight$"), r".self_attn.\1_proj.weight"),
    (re.compile(r"(\.layers\.\d+)\.linear1\.weight$"), r"\1.ffn.0.weight"),
    (re.compile(r"(\.layers\.\d+)\.linear2\.weight$"), r"\1.ffn.2.weight"),
)


class CodecModules(nn.Module):
    """All that a released checkpoint holds, under its names; weights are unset."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.encoder = CodecStages(config.encoder)
        self.decoder = CodecStages(config.decoder)
        self.quantizer = LookupQuantizer(config.quantizer)


def load_encoder(folder: Path, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> CodecEncoder:
    """The encoding half of the codec in `folder`; `dtype` is that of its stages, the quantiser stays float32.

    Canonical codes are float32 ones. On the CPU the weights are mapped from the file, and freed with the encoder.

    Raises CheckpointError where the folder does not hold a codec that can be used.
    """
    config = read_codec_config(folder)
    modules = _modules_on_meta(config)
    modules.encoder.to(dtype)
    _fill_without(modules, "decoder", folder)
    modules.to(device)
    return CodecEncoder(config, modules.encoder, modules.quantizer).eval()


def load_decoder(
    folder: Path, *, num_codebooks: int | None = None, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> CodecDecoder:
    """The decoding half, for the first `num_codebooks` or for all; otherwise as `load_encoder`."""
    config = read_codec_config(folder)
    modules = _modules_on_meta(config)
    modules.decoder.to(dtype)
    _fill_without(modules, "encoder", folder)
    modules.to(device)
    table = modules.quantizer.table(config.quantizer.num_codebooks if num_codebooks is None else num_codebooks)
    return CodecDecoder(config, table, modules.decoder).eval()


def released_tensors(tensors: Mapping[str, Tensor], *, source: str) -> dict[str, Tensor]:
    """Tensors of a released checkpoint in either spelling, named and shaped as `CodecModules` wants them.

    Weight norms are folded, and the quantiser's convolutions over one step become the matrices they are.
    """
    folded = fold_weight_norms(tensors, source=source)
    return {_renamed(name): _as_matrix(name, tensor) for name, tensor in folded.items()}


def _modules_on_meta(config: CodecConfig) -> CodecModules:
    with torch.device("meta"):
        return CodecModules(config)


def _fill_without(modules: CodecModules, half: str, folder: Path) -> None:
    """Drops the half that is not wanted and fills the rest; a name that belongs to neither half is refused."""
    unwanted = [name for name in modules.state_dict() if name.startswith(f"{half}.")]
    delattr(modules, half)
    tensors = released_tensors(read_tensors(folder), source=str(folder))
    load_strictly(modules, tensors, source=str(folder), ignored=unwanted)


def _renamed(name: str) -> str:
    for spelling, ours in _FIRST_SPELLING:
        name = spelling.sub(ours, name)
    return name


def _as_matrix(name: str, tensor: Tensor) -> Tensor:
    pointwise = name.startswith("quantizer.") and tensor.dim() == 3 and tensor.shape[-1] == 1
    return tensor.squeeze(-1) if pointwise else tensor
