"""The probe of the MOSS codec on a toy checkpoint: it gives what the codec gives, under every setting."""

import numpy as np
import pytest
import torch
from moss_golden import GOLDEN

from studio.engine.codec import CodecEncoder
from studio.engine.codec_weights import load_decoder, load_encoder
from studio.engine.interface import CodecIdentity
from studio.engine.probe import ProbeSetting, one_row
from studio.engine.probe_moss import MossProbe
from studio.invariance.clips import LabClip, together
from studio.invariance.experiment import perform
from studio.invariance.experiments import BY_NAME
from studio.invariance.lab import Lab, LabSize

FOLDER = GOLDEN / "codec_v2"


@pytest.fixture(scope="module")
def encoder() -> CodecEncoder:
    return load_encoder(FOLDER)


@pytest.fixture(scope="module")
def identity(encoder: CodecEncoder) -> CodecIdentity:
    config = encoder.config
    return CodecIdentity(
        codec_id="toy",
        digest="0" * 64,
        sample_rate=config.sample_rate,
        hop_length=config.hop_length,
        num_codebooks=config.quantizer.num_codebooks,
        codebook_size=config.quantizer.codebook_size,
        compute_dtype="float32",
        attention_backend="sdpa-math",
        recipe="none",
    )


@pytest.fixture(scope="module")
def clips(encoder: CodecEncoder) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shape = (encoder.config.channels, 6 * encoder.config.hop_length)
    return [(0.2 * rng.standard_normal(shape)).astype(np.float32) for _ in range(3)]


@pytest.fixture
def probe(encoder: CodecEncoder, identity: CodecIdentity) -> MossProbe:
    return MossProbe(encoder, load_decoder(FOLDER), identity, ProbeSetting())


def test_one_row_has_the_codes_and_distances_of_the_codec(probe: MossProbe, encoder: CodecEncoder, clips) -> None:
    codes, distances = encoder.encode_with_margins(torch.from_numpy(clips[0]))
    assert np.array_equal(probe.encode(one_row(clips[0]))[0], codes.numpy())
    assert np.allclose(probe.distances(one_row(clips[0]))[0], distances.numpy(), atol=1e-5)


def test_a_trace_follows_the_stages_to_the_latents(probe: MossProbe, clips) -> None:
    trace = probe.trace(one_row(clips[0]), together([clips[0], clips[1]]), 0)
    names = [module.module for module in trace.modules]
    assert len(names) > 10
    assert trace.modules[-1].elements == probe.latents(one_row(clips[0]))[0].size


def test_every_chunking_of_a_stream_is_equal_and_near_the_whole(probe: MossProbe, clips) -> None:
    codes = probe.encode(one_row(clips[0]))[0]
    one, three = (probe.decode_streamed(codes, chunk) for chunk in (1, 3))
    assert np.array_equal(one, three)
    assert np.abs(one - probe.decode(codes)).max() < probe.whole_tolerance


def test_sixteen_bit_stages_leave_the_encoder_as_it_was(encoder: CodecEncoder, identity: CodecIdentity, clips) -> None:
    before = encoder.encode(torch.from_numpy(clips[0]))
    probe = MossProbe(encoder, load_decoder(FOLDER), identity, ProbeSetting(dtype="bfloat16"))
    assert probe.encode(one_row(clips[0])).shape == (1, *before.shape)
    assert torch.equal(encoder.encode(torch.from_numpy(clips[0])), before)


def test_a_dtype_that_the_device_has_not_is_refused(encoder: CodecEncoder, identity: CodecIdentity) -> None:
    with pytest.raises(ValueError, match="tf32 on cpu"):
        MossProbe(encoder, load_decoder(FOLDER), identity, ProbeSetting(dtype="tf32"))


def test_experiments_run_on_it(encoder: CodecEncoder, identity: CodecIdentity, clips) -> None:
    decoder = load_decoder(FOLDER)

    def probes(setting: ProbeSetting) -> MossProbe:
        return MossProbe(encoder, decoder, identity, setting)

    size = LabSize(lengths=(2,), clips=2, batches=(2,), boundary_lengths=(2,), boundary_clips=1, threads=(1,))
    sources = [LabClip(f"noise {number}", clip) for number, clip in enumerate(clips)]
    lab = Lab(probe=probes(ProbeSetting()), probes=probes, sources=sources, size=size)
    found = {name: perform(BY_NAME[name], lab).verdict for name in ("repeat-solo", "neighbour", "padding", "chunks")}
    assert set(found.values()) == {"holds"}
    assert perform(BY_NAME["margins"], lab).verdict in ("holds", "differs")
    assert perform(BY_NAME["slots"], lab).verdict == "not checkable"
