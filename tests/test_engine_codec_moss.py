import json
import re

import pytest
import torch
from moss_golden import GoldenFolder
from safetensors.torch import save_file

from studio.engine.codec import interleave, separate
from studio.engine.codec_config import StackConfig
from studio.engine.codec_weights import load_decoder, load_encoder
from studio.engine.weight_files import read_tensors
from studio.errors import CheckpointError

V2, NANO, V1 = (GoldenFolder(name) for name in ("codec_v2", "codec_nano", "codec_v1"))
ALL = pytest.mark.parametrize("golden", [V2, NANO, V1], ids=lambda golden: golden.name)


def old_spelling(tensors):
    names = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    pattern = re.compile("|".join(map(re.escape, names)))
    return {pattern.sub(lambda match: names[match[0]], name): tensor for name, tensor in tensors.items()}


def copy_codec(golden, folder, tensors):
    (folder / "config.json").write_text(json.dumps(golden.config), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors")
    return folder


@ALL
def test_the_older_spelling_of_weight_norms_gives_the_same_codec(golden, tmp_path):
    folder = copy_codec(golden, tmp_path, old_spelling(read_tensors(golden.path)))
    assert torch.equal(load_encoder(folder).encode(golden.inputs["clip_b"]), golden.expected["codes_b"])


def test_shards_and_a_pickle_give_the_same_codec(tmp_path):
    tensors = read_tensors(NANO.path)
    (tmp_path / "config.json").write_text(json.dumps(NANO.config), encoding="utf-8")
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    assert torch.equal(load_encoder(tmp_path).encode(NANO.inputs["clip_b"]), NANO.expected["codes_b"])
    save_file(tensors, tmp_path / "model-00001-of-00001.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (tmp_path / "pytorch_model.bin").unlink()
    assert torch.equal(load_encoder(tmp_path).encode(NANO.inputs["clip_b"]), NANO.expected["codes_b"])


@pytest.mark.parametrize("load", [load_encoder, load_decoder])
def test_a_tensor_that_belongs_nowhere_is_refused_by_either_half(load, tmp_path):
    folder = copy_codec(V2, tmp_path, read_tensors(V2.path) | {"decoder.4.norm.weight": torch.ones(3)})
    with pytest.raises(CheckpointError, match=r"1 tensors are unknown: decoder\.4\.norm\.weight"):
        load(folder)


def test_a_half_needs_its_own_tensors_and_not_those_of_the_other(tmp_path):
    tensors = read_tensors(V2.path)
    kept = {name: tensor for name, tensor in tensors.items() if name != "decoder.4.input_proj.weight"}
    folder = copy_codec(V2, tmp_path, kept)
    assert torch.equal(load_encoder(folder).encode(V2.inputs["clip_c"]), V2.expected["codes_c"])
    with pytest.raises(CheckpointError, match=r"missing: decoder\.4\.input_proj\.weight"):
        load_decoder(folder)


def test_a_decoder_for_fewer_codebooks_decodes_those(tmp_path):
    decoder = load_decoder(V2.path, num_codebooks=2)
    V2.assert_close("wav_a_nq2", decoder.decode(V2.expected["codes_a"][:2]), 2e-5)
    assert decoder.table.num_codebooks == 2


def test_stages_in_16_bit_leave_the_quantiser_in_32_and_the_sound_close():
    encoder, decoder = load_encoder(V2.path, dtype=torch.bfloat16), load_decoder(V2.path, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in encoder.stages.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in encoder.quantizer.parameters()} == {torch.float32}
    assert decoder.table.contributions.dtype == torch.float32
    codes, state = V2.expected["codes_a"], decoder.start()
    for made in (decoder.decode(codes), decoder.step(codes, state)):
        difference = made - V2.expected["wav_a"]
        assert made.dtype == torch.float32
        assert 0.0 < difference.square().mean().sqrt() < 0.02 * V2.info["wav_a_rms"]


@ALL
def test_nothing_encodes_to_no_frame_and_decodes_to_no_sample(golden):
    encoder, decoder = load_encoder(golden.path), load_decoder(golden.path)
    channels, state = encoder.config.channels, decoder.start()
    codes, distances = encoder.encode_with_margins(torch.zeros(channels, 0))
    assert codes.shape == (4, 0)
    assert distances.shape == (4, 0, 2)
    assert decoder.decode(codes).shape == decoder.step(codes, state).shape == (channels, 0)
    assert state.position == 0


@ALL
def test_streams_side_by_side_and_an_encode_between_leave_each_other_alone(golden):
    encoder, decoder = load_encoder(golden.path), load_decoder(golden.path)
    alone, state = [], decoder.start()
    for part in golden.expected["codes_a"].split(3, dim=1):
        alone.append(decoder.step(part, state))
    together, first, second = [], decoder.start(), decoder.start(4)
    for part, other in zip(
        golden.expected["codes_a"].split(3, dim=1), golden.expected["codes_long"].split(15, dim=1), strict=False
    ):
        together.append(decoder.step(part, first))
        decoder.step(other, second)
        encoder.encode(golden.inputs["clip_c"])
    assert torch.equal(torch.cat(alone, dim=1), torch.cat(together, dim=1))


def test_a_stream_that_computes_single_frames_gives_the_same_bits_in_every_chunking():
    decoder, made = load_decoder(V2.path), []
    for chunk in (1, 3, 8):
        state = decoder.start(max_frames=1)
        parts = V2.expected["codes_long"][:, :60].split(chunk, dim=1)
        made.append(torch.cat([decoder.step(part, state) for part in parts], dim=1))
    assert torch.equal(made[0], made[1])
    assert torch.equal(made[0], made[2])


def test_a_state_that_was_used_starts_again_as_if_new():
    decoder, state = load_decoder(V2.path), load_decoder(V2.path).start()
    first = decoder.step(V2.expected["codes_b"], state)
    decoder.step(V2.expected["codes_long"], state)
    state.restart()
    assert torch.equal(decoder.step(V2.expected["codes_b"], state), first)


def test_a_stream_keeps_its_buffers_however_long_it_runs():
    decoder = load_decoder(V2.path)
    state = decoder.start(2)
    buffers = [(ring.keys.data_ptr(), ring.keys.shape) for rings in state.rings for ring in rings]
    for part in V2.expected["codes_long"].split(2, dim=1):
        decoder.step(part, state)
    assert [(ring.keys.data_ptr(), ring.keys.shape) for rings in state.rings for ring in rings] == buffers
    windows = [stage.window for stage in decoder.config.decoder if isinstance(stage, StackConfig)]
    steps_a_frame = (1, 4, 8)
    assert [rings[0].keys.shape[2] for rings in state.rings] == [
        window - 1 + 2 * steps for window, steps in zip(windows, steps_a_frame, strict=True)
    ]
    assert state.position == 220


def test_a_step_asks_no_tensor_for_its_value():
    decoder = load_decoder(V2.path).to("meta")
    state = decoder.start(3)
    codes = torch.zeros(4, 3, dtype=torch.int64, device="meta")
    made = [decoder.step(codes, state) for _ in range(9)]
    assert [(part.is_meta, part.shape) for part in made] == 9 * [(True, (2, 3 * 48))]


def test_channels_are_interleaved_sample_by_sample_and_separated_again():
    waveforms = torch.tensor([[[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]])
    stream = interleave(waveforms)
    assert stream.flatten().tolist() == [1.0, -1.0, 2.0, -2.0, 3.0, -3.0]
    assert torch.equal(separate(stream, 2), waveforms)
