from itertools import accumulate

import torch
from torch.nn import functional

from studio.engine.codec_config import LookupConfig
from studio.engine.lookup_quantizer import LookupQuantizer


def toy_quantizer():
    torch.manual_seed(5)
    sizes = {"latent_width": 6, "residual_width": 5, "num_codebooks": 4, "codebook_size": 16, "code_width": 3}
    return LookupQuantizer(LookupConfig(**sizes))


@torch.inference_mode()
def test_each_codebook_takes_the_entry_of_nearest_direction_to_what_is_left():
    quantizer, latents = toy_quantizer(), torch.randn(2, 9, 6)
    codes, residual = quantizer.encode(latents, 4), quantizer.input_proj(latents)
    for number, codebook in enumerate(quantizer.codebooks(4)):
        entries = codebook.codebook.weight
        cosines = functional.cosine_similarity(codebook.in_proj(residual)[..., None, :], entries, dim=-1)
        assert torch.equal(codes[:, number], cosines.argmax(-1))
        residual = residual - codebook.out_proj(entries[codes[:, number]])


@torch.inference_mode()
def test_the_table_gives_the_sum_of_what_the_codebooks_took():
    quantizer, latents = toy_quantizer(), torch.randn(2, 9, 6)
    codes = quantizer.encode(latents, 4)
    parts = [book.out_proj(book.codebook(codes[:, number])) for number, book in enumerate(quantizer.codebooks(4))]
    for count, total in zip((1, 2, 3, 4), accumulate(parts), strict=True):
        torch.testing.assert_close(quantizer.table(4)(codes[:, :count]), quantizer.output_proj(total))


@torch.inference_mode()
def test_a_tie_takes_the_lowest_entry_and_its_margin_is_nothing():
    quantizer = LookupQuantizer(
        LookupConfig(latent_width=2, residual_width=2, num_codebooks=1, codebook_size=3, code_width=1)
    )
    (codebook,) = quantizer.codebooks(1)
    codebook.codebook.weight.copy_(torch.tensor([[-1.0], [2.0], [3.0]]))
    codebook.in_proj.weight.zero_()
    codebook.in_proj.bias.fill_(0.5)
    codes, distances = quantizer.encode_with_margins(torch.randn(1, 1, 2), 1)
    assert codes.item() == 1
    assert distances.flatten().tolist() == [0.0, 0.0]


@torch.inference_mode()
def test_16_bit_latents_are_quantised_in_float32():
    quantizer, latents = toy_quantizer(), torch.randn(1, 40, 6).bfloat16()
    assert torch.equal(quantizer.encode(latents, 4), quantizer.encode(latents.float(), 4))
