"""What every codec must share with the published code: tests over one golden folder, which each codec's file inherits.

The tolerance is the one that the folders' READMEs state; codes are equal.
"""

from typing import ClassVar

import pytest
import torch
from moss_golden import GoldenFolder
from torch import nn

from studio.engine.codec import interleave
from studio.engine.codec_layers import ProjectedStack
from studio.engine.codec_weights import load_decoder, load_encoder

TOLERANCE = 2e-5
CLIPS = ("a", "b", "c", "long")


class CodecParity:
    name: ClassVar[str]

    @pytest.fixture
    def golden(self):
        return GoldenFolder(self.name)

    @pytest.fixture
    def encoder(self, golden):
        return load_encoder(golden.path)

    @pytest.fixture
    def decoder(self, golden):
        return load_decoder(golden.path)

    def test_windows_follow_the_rule_of_the_version(self, golden, encoder, decoder):
        sides = (("encoder", encoder.stages), ("decoder", decoder.stages))
        windows = [
            {"stage": f"{side}.{index}", "window_steps": stage.config.window}
            for side, stages in sides
            for index, stage in enumerate(stages)
            if isinstance(stage, ProjectedStack)
        ]
        assert windows == golden.info["windows"]

    @pytest.mark.parametrize("clip", [*CLIPS, "short"])
    def test_a_clip_encoded_alone_has_the_same_codes(self, golden, encoder, clip):
        assert torch.equal(encoder.encode(golden.inputs[f"clip_{clip}"]), golden.expected[f"codes_{clip}"])

    def test_fewer_codebooks_are_the_first_ones(self, golden, encoder):
        assert torch.equal(encoder.encode(golden.inputs["clip_a"], 2), golden.expected["codes_a_nq2"])

    @pytest.mark.parametrize("clip", [*CLIPS, "short"])
    def test_what_the_quantiser_is_given_agrees(self, golden, encoder, clip):
        golden.assert_close(f"hidden_{clip}", encoder.latents(golden.inputs[f"clip_{clip}"]).T, TOLERANCE)

    @pytest.mark.parametrize("clip", [*CLIPS, "short"])
    def test_distances_to_the_best_and_the_second_best_entry_agree(self, golden, encoder, clip):
        codes, distances = encoder.encode_with_margins(golden.inputs[f"clip_{clip}"])
        assert torch.equal(codes, golden.expected[f"codes_{clip}"])
        golden.assert_close(f"dist2_{clip}", distances, TOLERANCE)

    @torch.inference_mode()
    def test_every_stage_of_the_encoder_agrees_where_the_clip_has_sound(self, golden, encoder):
        rest = -golden.inputs["clip_b"].shape[1] % encoder.config.hop_length
        hidden = interleave(nn.functional.pad(golden.inputs["clip_b"], (0, rest))[None])
        golden.assert_close("enc_b_input", hidden.transpose(1, 2), 0.0)
        for index, (stage, valid) in enumerate(zip(encoder.stages, golden.info["enc_b_stage_lengths"], strict=True)):
            hidden = stage(hidden)
            expected = golden.expected[f"enc_b_stage{index}"]
            assert hidden.shape[1] == expected.shape[2]
            torch.testing.assert_close(
                hidden.transpose(1, 2)[..., :valid], expected[..., :valid], rtol=0.0, atol=TOLERANCE
            )

    def test_every_part_of_the_first_stack_agrees(self, golden, encoder):
        stack, seen = encoder.stages[1], {}

        def watch(name, module):
            return module.register_forward_hook(lambda _module, _arguments, output: seen.update({name: output}))

        hooks = [watch("input_proj", stack.input_proj)]
        for index, layer in enumerate(stack.transformer):
            parts = {"norm1": layer.norm1, "self_attn": layer.self_attn, "out": layer}
            hooks += [watch(f"layer{index}_{part}", module) for part, module in parts.items()]
        encoder.encode(golden.inputs["clip_b"])
        for hook in hooks:
            hook.remove()
        valid = golden.info["enc_b_stage_lengths"][1]
        assert len(seen) == 7
        for part, output in seen.items():
            expected = golden.expected[f"enc_b_stage1_{part}"]
            torch.testing.assert_close(output[:, :valid], expected[:, :valid], rtol=0.0, atol=TOLERANCE)

    @torch.inference_mode()
    def test_the_quantisers_way_in_agrees(self, golden, encoder):
        projected = encoder.quantizer.input_proj(encoder.latents(golden.inputs["clip_b"]))
        expected = golden.expected["quant_b_after_input_proj"][0, :, : projected.shape[0]]
        torch.testing.assert_close(projected.T, expected, rtol=0.0, atol=TOLERANCE)

    def test_clips_in_one_padded_batch_have_the_same_codes(self, golden, encoder):
        encoded = encoder.encode_padded([golden.inputs[f"clip_{clip}"] for clip in "abc"])
        for row, codes in enumerate(encoded):
            assert codes.shape[1] == golden.expected["batch_code_lengths"][row]
            assert torch.equal(codes, golden.expected["batch_codes"][:, row, : codes.shape[1]])

    @torch.inference_mode()
    def test_every_stage_of_the_decoder_agrees(self, golden, decoder):
        hidden = decoder.table(golden.expected["codes_c"][None])
        golden.assert_close("dec_c_quantizer_out", hidden.transpose(1, 2), TOLERANCE)
        for index, stage in enumerate(decoder.stages):
            hidden = stage(hidden)
            golden.assert_close(f"dec_c_stage{index}", hidden.transpose(1, 2), TOLERANCE)

    @pytest.mark.parametrize("clip", CLIPS)
    def test_codes_decode_to_the_same_waveform(self, golden, decoder, clip):
        golden.assert_close(f"wav_{clip}", decoder.decode(golden.expected[f"codes_{clip}"]), TOLERANCE)

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_fewer_codebooks_decode_to_the_same_coarser_waveform(self, golden, decoder, count):
        golden.assert_close(f"wav_a_nq{count}", decoder.decode(golden.expected["codes_a"][:count]), TOLERANCE)

    def test_codes_in_one_padded_batch_decode_to_the_same_waveforms(self, golden, decoder):
        lengths = golden.expected["batch_code_lengths"].tolist()
        batch = nn.utils.rnn.pad_sequence(
            [golden.expected[f"codes_{clip}"].T for clip in "abc"], batch_first=True
        ).transpose(1, 2)
        for made, expected, frames in zip(
            decoder.decode_batch(batch), golden.expected["batch_wav"], lengths, strict=True
        ):
            valid = frames * decoder.config.hop_length
            torch.testing.assert_close(made[:, :valid], expected[:, :valid], rtol=0.0, atol=TOLERANCE)

    @pytest.mark.parametrize("chunk", [1, 2, 3, 4, 8])
    def test_a_stream_past_every_window_gives_the_whole_decode(self, golden, decoder, chunk):
        codes, state = golden.expected["codes_long"], decoder.start()
        assert codes.shape[1] > 2 * max(stage["window_steps"] for stage in golden.info["windows"])
        made = [decoder.step(part, state) for part in codes.split(chunk, dim=1)]
        golden.assert_close("wav_long", torch.cat(made, dim=1), TOLERANCE)
