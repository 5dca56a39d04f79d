"""The first version of the codec against its golden folder."""

import torch
from codec_parity import CodecParity
from torch import nn


class TestCodecV1(CodecParity):
    name = "codec_v1"

    def test_a_stream_loses_no_key_as_the_published_one_does(self, golden, decoder):
        """The published stream is no target: it drops the oldest keys of each chunk, and the folder says how far off
        that is."""
        state = decoder.start(1)
        made = [decoder.step(part, state) for part in golden.expected["codes_a"].split(1, dim=1)]
        published = golden.expected["stream_a_chunk1"] - torch.cat(made, dim=1)
        assert abs(published.abs().max() - golden.info["stream_max_abs_dev_vs_full"]["1"]) < 1e-4

    def test_no_projection_stands_where_both_sides_have_one_width(self, encoder, decoder):
        assert isinstance(encoder.stages[5].input_proj, nn.Identity)
        assert isinstance(decoder.stages[0].output_proj, nn.Identity)
        assert isinstance(encoder.stages[5].output_proj, nn.Linear)
