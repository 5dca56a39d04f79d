import torch

from studio.engine.quantizer import ResidualQuantizer


def quantizer(seed: int = 0) -> ResidualQuantizer:
    torch.manual_seed(seed)
    made = ResidualQuantizer(4, 16, 3)
    made.codebooks.copy_(torch.randn(4, 16, 3) / torch.tensor([1.0, 2.0, 4.0, 8.0])[:, None, None])
    return made


def test_each_codebook_takes_the_nearest_entry_to_what_is_left():
    made, latent = quantizer(), torch.randn(2, 9, 3)
    codes, residual = made.encode(latent), latent
    for codebook in range(4):
        distances = torch.cdist(residual, made.codebooks[codebook][None].expand(2, -1, -1))
        assert torch.equal(codes[:, codebook], distances.argmin(-1))
        residual = residual - made.codebooks[codebook][codes[:, codebook]]
    torch.testing.assert_close(made.decode(codes), latent - residual)


def test_the_first_codes_do_not_depend_on_how_many_codebooks_follow():
    made, latent = quantizer(), torch.randn(1, 9, 3)
    shorter = ResidualQuantizer(2, 16, 3)
    shorter.codebooks.copy_(made.codebooks[:2])
    assert torch.equal(shorter.encode(latent), made.encode(latent)[:, :2])


def test_fewer_codebooks_decode_to_a_coarser_latent():
    made, latent = quantizer(), torch.randn(1, 50, 3)
    codes = made.encode(latent)
    errors = [(made.decode(codes[:, :count]) - latent).square().mean().item() for count in (1, 2, 4)]
    assert errors == sorted(errors, reverse=True)


def test_a_tie_takes_the_lowest_index():
    made = ResidualQuantizer(1, 3, 1)
    made.codebooks.copy_(torch.tensor([[[5.0], [1.0], [1.0]]]))
    assert made.encode(torch.tensor([[[1.0]]])).item() == 1
