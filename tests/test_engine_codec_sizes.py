import json
from math import prod

import pytest
import torch
from moss_golden import GOLDEN, GoldenFolder

from studio.engine.codec_config import StackConfig
from studio.engine.codec_json import codec_config
from studio.engine.codec_weights import CodecModules, released_tensors
from studio.engine.weight_files import load_strictly, parameter_total, read_tensors


def released_fields(version):
    return json.loads((GOLDEN / "codec_released" / f"{version}.json").read_text(encoding="utf-8"))


def released_shapes(fields):
    """Keys and shapes of a released checkpoint, from its config.json and the published list of keys."""
    first = "number_channels" not in fields
    attention, ffn = ("in_projs.0", "out_projs.0"), ("linear1", "linear2")
    if not first:
        attention, ffn = ("in_proj", "out_proj"), ("ffn.0", "ffn.2")
    shapes = {}
    for side in ("encoder", "decoder"):
        for index, stage in enumerate(fields[f"{side}_kwargs"]):
            if stage["module_type"] != "Transformer":
                continue
            start, width, inner = f"{side}.{index}", stage["d_model"], stage["dim_feedforward"]
            if not first or stage["input_dimension"] != width:
                shapes[f"{start}.input_proj.weight"] = (width, stage["input_dimension"])
            if not first or stage["output_dimension"] != width:
                shapes[f"{start}.output_proj.weight"] = (stage["output_dimension"], width)
            for number in range(stage["num_layers"]):
                layer = f"{start}.transformer.layers.{number}"
                for vector in ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"):
                    shapes[f"{layer}.{vector}"] = (width,)
                shapes[f"{layer}.layer_scale_1.scale"] = shapes[f"{layer}.layer_scale_2.scale"] = (width,)
                shapes[f"{layer}.self_attn.{attention[0]}.weight"] = (3 * width, width)
                shapes[f"{layer}.self_attn.{attention[1]}.weight"] = (width, width)
                shapes[f"{layer}.{ffn[0]}.weight"] = (inner, width)
                shapes[f"{layer}.{ffn[1]}.weight"] = (width, inner)
    return shapes | quantizer_shapes(fields["quantizer_kwargs"])


def quantizer_shapes(sizes):
    latent, residual, narrow = sizes["input_dim"], sizes["rvq_dim"], sizes["codebook_dim"]
    projections = {"input_proj": (residual, latent), "output_proj": (latent, residual)}
    shapes = {}
    for number in range(sizes["num_quantizers"]):
        shapes[f"quantizer.quantizers.{number}.codebook.weight"] = (sizes["codebook_size"], narrow)
        projections[f"quantizers.{number}.in_proj"] = (narrow, residual)
        projections[f"quantizers.{number}.out_proj"] = (residual, narrow)
    for name, (outputs, inputs) in projections.items():
        shapes[f"quantizer.{name}.bias"] = (outputs,)
        shapes[f"quantizer.{name}.parametrizations.weight.original0"] = (outputs, 1, 1)
        shapes[f"quantizer.{name}.parametrizations.weight.original1"] = (outputs, inputs, 1)
    return shapes


@pytest.mark.parametrize("name", ["codec_v2", "codec_nano", "codec_v1"])
def test_the_keys_that_are_counted_are_those_that_the_published_code_saves(name):
    golden = GoldenFolder(name)
    stored = {key: tuple(tensor.shape) for key, tensor in read_tensors(golden.path).items()}
    assert released_shapes(golden.config) == stored


@pytest.mark.parametrize(
    ("version", "parameters", "tensors"),
    [("v2", 2_123_701_248, 2_094), ("nano", 21_969_664, 374), ("v1", 1_774_566_400, 1_600)],
)
def test_a_released_checkpoint_has_the_published_size_and_fills_the_modules(version, parameters, tensors):
    fields = released_fields(version)
    shapes = released_shapes(fields)
    assert len(shapes) == tensors
    assert sum(prod(shape) for shape in shapes.values()) == parameters
    with torch.device("meta"):
        modules = CodecModules(codec_config(fields, source=version))
        checkpoint = {name: torch.empty(shape) for name, shape in shapes.items()}
    load_strictly(modules, released_tensors(checkpoint, source=version), source=version)
    lengths = sum(prod(shape) for name, shape in shapes.items() if name.endswith("original0"))
    assert parameter_total(modules) == parameters - lengths


@pytest.mark.parametrize(
    ("version", "encoder", "decoder"),
    [
        ("v2", [400, 400, 400, 400, 250, 125], [125, 250, 400, 400, 400, 400]),
        ("nano", [1600, 1200, 800, 500], [500, 800, 1200, 1600]),
        ("v1", [1000, 500, 250, 125], [125, 250, 500, 1000]),
    ],
)
def test_the_windows_of_the_released_codecs_come_out(version, encoder, decoder):
    config = codec_config(released_fields(version), source=version)
    for stages, windows in ((config.encoder, encoder), (config.decoder, decoder)):
        assert [stage.window for stage in stages if isinstance(stage, StackConfig)] == windows
    assert config.frame_rate == 12.5
