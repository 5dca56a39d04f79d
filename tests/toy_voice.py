"""A voice model of the real classes at toy size, with random weights: made in milliseconds, speaks noise."""

import torch
from torch import nn

from studio.engine.aligned_model import AlignedModel, AlignedModelConfig
from studio.engine.checkpoints import Recommended, VoiceModel
from studio.engine.harmonic_codec import HarmonicCodec, HarmonicCodecConfig
from studio.text.phonemes import phonemes

PHONEMES = ("<pad>", "<unk>", *sorted(set(phonemes("The quick brown fox jumps over the lazy dog. Yes, you may!"))))


def toy_codec(num_codebooks: int = 3, window: int = 7) -> HarmonicCodec:
    torch.manual_seed(1)
    codec = HarmonicCodec(
        HarmonicCodecConfig(
            width=32,
            num_heads=2,
            window=window,
            latent_width=4,
            num_codebooks=num_codebooks,
            codebook_size=32,
            encoder_layers=(1, 1),
            decoder_layers=(1, 1, 1),
            vocabulary_size=len(PHONEMES),
            text_layers=1,
        )
    )
    codec.quantizer.codebooks.normal_()
    return codec.eval()


def toy_language(num_codebooks: int = 3) -> AlignedModel:
    torch.manual_seed(2)
    model = AlignedModel(
        AlignedModelConfig(
            vocabulary_size=len(PHONEMES),
            num_codebooks=num_codebooks,
            codebook_size=32,
            width=32,
            num_heads=2,
            text_layers=1,
            backbone_layers=2,
        )
    )
    for parameter in (model.local.heads, model.local.positions, model.begin, model.reference_mark):
        nn.init.normal_(parameter)
    last = model.durations[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, 2.2)
    return model.eval()


def toy_voice() -> VoiceModel:
    return VoiceModel(
        codec=toy_codec(),
        language=toy_language(),
        phonemes=PHONEMES,
        recommended=Recommended(),
        revision="toy",
        codec_digest="0" * 64,
    )
