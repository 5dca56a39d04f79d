"""The second version of the codec against its golden folder."""

import pytest
import torch
from codec_parity import TOLERANCE, CodecParity


class TestCodecV2(CodecParity):
    name = "codec_v2"

    @pytest.mark.parametrize("chunk", [1, 2, 3, 4, 8])
    def test_a_stream_agrees_with_the_published_stream(self, golden, decoder, chunk):
        state = decoder.start(chunk)
        made = [decoder.step(part, state) for part in golden.expected["codes_a"].split(chunk, dim=1)]
        golden.assert_close(f"stream_a_chunk{chunk}", torch.cat(made, dim=1), TOLERANCE)
