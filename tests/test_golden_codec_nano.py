"""The Nano codec against its golden folder."""

import pytest
import torch
from codec_parity import TOLERANCE, CodecParity


class TestCodecNano(CodecParity):
    name = "codec_nano"

    @pytest.mark.parametrize("chunk", [1, 2, 3, 4, 8])
    def test_a_stream_agrees_with_the_published_stream(self, golden, decoder, chunk):
        state = decoder.start(chunk)
        made = [decoder.step(part, state) for part in golden.expected["codes_a"].split(chunk, dim=1)]
        golden.assert_close(f"stream_a_chunk{chunk}", torch.cat(made, dim=1), TOLERANCE)

    def test_two_streams_side_by_side_agree_with_the_published_pair(self, golden, decoder):
        rests = {clip: golden.expected[f"codes_{clip}"] for clip in "ab"}
        states = {clip: decoder.start() for clip in "ab"}
        made = {"a": [], "b": []}
        for counts in golden.info["tworeq_plan"]:
            for clip, count in zip("ab", counts, strict=True):
                made[clip].append(decoder.step(rests[clip][:, :count], states[clip]))
                rests[clip] = rests[clip][:, count:]
        for clip, parts in made.items():
            golden.assert_close(f"tworeq_wav_{clip}", torch.cat(parts, dim=1), TOLERANCE)
