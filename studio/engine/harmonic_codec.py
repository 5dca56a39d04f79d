"""The embedded voice's codec: a waveform to codes at 12.5 frames a second, and codes back to sound, whole or streamed.

A causal transformer listens to log-mel and autocorrelation, a residual quantiser turns its latent into codes, another
transformer turns them into pitch and envelopes, and `harmonic_signal` makes these audible. Where the text is known, as
it is when speech is made, the second transformer reads along: 40 bits are little for 80 ms of speech, and most of the
words that are misheard are lost there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from studio.engine.harmonic_signal import FEATURES, HARMONIC_BANDS, HOP, NOISE_BANDS, Features
from studio.engine.harmonic_synthesis import Envelopes, HarmonicSynthesis, Noise, SynthesisState
from studio.engine.quantizer import ResidualQuantizer
from studio.engine.text_encoder import TextEncoder
from studio.engine.transformer import StackState, WindowedStack

HOPS_PER_FRAME = 8
FRAME = HOP * HOPS_PER_FRAME
"""Samples a frame: 80 ms at 24 kHz."""
_FINE_ROWS = 4
"""Rows a frame in the decoder's last stack, 20 ms each."""
_READ_AHEAD = 3
"""Such rows of which each one reads the text: its own and the two that follow."""


@dataclass(frozen=True, kw_only=True)
class HarmonicCodecConfig:
    """Sizes of the codec's networks."""

    width: int = 256
    num_heads: int = 4
    window: int = 50
    latent_width: int = 24
    num_codebooks: int = 8
    codebook_size: int = 1024
    encoder_layers: tuple[int, int] = (2, 2)
    decoder_layers: tuple[int, int, int] = (3, 3, 2)
    vocabulary_size: int = 75
    """Phonemes that the decoder can read."""
    text_layers: int = 3


def _merge(hidden: Tensor, count: int) -> Tensor:
    batch, time, width = hidden.shape
    return hidden.reshape(batch, time // count, count * width)


def _with(rows: Tensor, text: Tensor | None) -> Tensor:
    return rows if text is None else rows + text


def _split(hidden: Tensor, count: int) -> Tensor:
    batch, time, width = hidden.shape
    return hidden.reshape(batch, time * count, width // count)


class Encoder(nn.Module):
    """Features to latents: four hops to a 25 Hz row, two of these to a 12.5 Hz frame."""

    def __init__(self, config: HarmonicCodecConfig) -> None:
        super().__init__()
        width, (fine, coarse) = config.width, config.encoder_layers
        self.features = Features()
        self.input = nn.Linear(4 * FEATURES, width)
        self.fine = WindowedStack(width, fine, config.window, config.num_heads)
        self.merge = nn.Linear(2 * width, width)
        self.coarse = WindowedStack(width, coarse, config.window, config.num_heads)
        self.latent = nn.Linear(width, config.latent_width)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples` `(batch, samples)`, a multiple of 1,920, to latents `(batch, num_frames, latent_width)`."""
        fine = self.fine(self.input(_merge(self.features(samples), 4)))
        return self.latent(self.coarse(self.merge(_merge(fine, 2)))).float()


@dataclass(frozen=True, eq=False)
class ReadAlong:
    """What is said, as rows that are added to the decoder's own: one a frame `(batch, num_frames, width)`, and four a
    frame `(batch, 4 * num_frames, width)`."""

    coarse: Tensor
    fine: Tensor

    def frame(self, number: int) -> "ReadAlong":
        fine = self.fine[:, _FINE_ROWS * number : _FINE_ROWS * (number + 1)]
        return ReadAlong(self.coarse[:, number : number + 1], fine)


@dataclass
class DecoderState:
    """What a streaming decoder remembers: the three stacks' keys and values, the newest frame, and the sound that is
    not finished yet."""

    coarse: StackState
    middle: StackState
    fine: StackState
    sound: SynthesisState
    text: ReadAlong | None
    """Of the whole utterance; None where nobody knows what is said."""
    frame: int = 0
    """How many frames are decoded."""
    waiting: Tensor | None = None
    """The latent of the newest frame, `(1, 1, latent_width)`, which is decoded when the frame after it is known."""


class Decoder(nn.Module):
    """Latents to envelopes: 12.5 Hz to 25 Hz to 50 Hz to two hops a row.

    A frame is decoded together with the one that follows it, as the encoder can say of a frame's end only in the next
    one; at the end of speech there is none, and a latent of zeros stands for it.
    """

    def __init__(self, config: HarmonicCodecConfig) -> None:
        super().__init__()
        width, (coarse, middle, fine) = config.width, config.decoder_layers
        self.text = TextEncoder(
            config.vocabulary_size, width, config.text_layers, config.num_heads, quarters=_FINE_ROWS
        )
        self.read_fine = nn.Linear(_READ_AHEAD * width, width, bias=False)
        self.latent = nn.Linear(config.latent_width, width)
        self.following = nn.Linear(config.latent_width, width, bias=False)
        self.coarse = WindowedStack(width, coarse, config.window, config.num_heads)
        self.to_middle = nn.Linear(width, 2 * width)
        self.middle = WindowedStack(width, middle, config.window, config.num_heads)
        self.to_fine = nn.Linear(width, 2 * width)
        self.fine = WindowedStack(width, fine, config.window, config.num_heads)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2 * (2 + HARMONIC_BANDS + NOISE_BANDS))

    def read(self, phonemes: Tensor, alignment: Tensor) -> ReadAlong:
        """`phonemes` `(batch, length)`, -1 where there is none, and the one of each 10 ms `(batch, 8 * num_frames)`."""
        parts = self.text.parts(self.text(phonemes), alignment)
        ahead = [parts]
        for _ in range(_READ_AHEAD - 1):
            ahead.append(torch.cat([ahead[-1][:, 1:], parts[:, -1:]], dim=1))
        return ReadAlong(self.text.rows(parts), self.read_fine(torch.cat(ahead, dim=-1)))

    def forward(self, latent: Tensor, text: ReadAlong | None = None) -> Envelopes:
        """`latent` `(batch, num_frames, latent_width)` to the envelopes of `8 * num_frames` hops."""
        following = nn.functional.pad(latent[:, 1:], (0, 0, 0, 1))
        coarse = self.coarse(_with(self.latent(latent) + self.following(following), text and text.coarse))
        middle = self.middle(_split(self.to_middle(coarse), 2))
        return self._envelopes(self.fine(_with(_split(self.to_fine(middle), 2), text and text.fine)))

    def step(self, latent: Tensor, following: Tensor, state: DecoderState) -> Envelopes:
        """The envelopes of the next frame: its latent and that of the frame after it, both `(1, 1, latent_width)`, to
        8 hops."""
        text = state.text and state.text.frame(state.frame)
        state.frame += 1
        row = _with(self.latent(latent) + self.following(following), text and text.coarse)
        coarse = self.coarse.step(row, state.coarse)
        middle = self.middle.step(_split(self.to_middle(coarse), 2), state.middle)
        rows = _with(_split(self.to_fine(middle), 2), text and text.fine)
        return self._envelopes(self.fine.step(rows, state.fine))

    def _envelopes(self, hidden: Tensor) -> Envelopes:
        hops = _split(self.head(self.norm(hidden)), 2).float()
        harmonic, noise = hops[..., 2 : 2 + HARMONIC_BANDS] - 2, hops[..., 2 + HARMONIC_BANDS :] - 2
        return Envelopes(hops[..., 0], hops[..., 1], harmonic, noise)


class HarmonicCodec(nn.Module):
    """Encoder, quantiser, decoder and synthesis of the embedded voice."""

    def __init__(self, config: HarmonicCodecConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.quantizer = ResidualQuantizer(config.num_codebooks, config.codebook_size, config.latent_width)
        self.decoder = Decoder(config)
        self.synthesis = HarmonicSynthesis()

    def encode(self, samples: Tensor) -> Tensor:
        """`samples` `(batch, samples)`, a multiple of 1,920, to codes `(batch, num_codebooks, num_frames)`."""
        return self.quantizer.encode(self.encoder(samples))

    def decode(self, codes: Tensor, noise: Noise, text: ReadAlong | None = None) -> Tensor:
        """All frames at once, `(batch, num_codebooks, num_frames)` to `(batch, 1920 * num_frames)`. The stream below is
        what is heard; this is for training, and differs from it in the last bits only."""
        envelopes = self.decoder(self.quantizer.decode(codes), text)
        length = codes.shape[-1] * FRAME
        return self.synthesis(envelopes, noise(0, length).expand(len(codes), -1))

    def start(self, noise: Noise, text: ReadAlong | None = None) -> DecoderState:
        """A fresh stream of as many frames as `text` has, or of any number where there is none. Its noise depends on
        absolute sample numbers only."""
        device = self.quantizer.codebooks.device
        stacks = (self.decoder.coarse, 1), (self.decoder.middle, 2), (self.decoder.fine, 4)
        coarse, middle, fine = (stack.start(rows, device) for stack, rows in stacks)
        return DecoderState(coarse, middle, fine, SynthesisState(noise, device), text)

    def step(self, codes: Tensor, state: DecoderState) -> Tensor:
        """The sound `(samples,)` that the next frame of codes `(num_codebooks,)` completes: none with the first frame,
        40 ms with the second, 80 ms with each later one. Larger chunks are more calls, so every chunking gives equal
        samples."""
        following = self.quantizer.decode(codes[None, :, None])
        latent, state.waiting = state.waiting, following
        if latent is None:
            return following.new_empty(0)
        return self.synthesis.step(self.decoder.step(latent, following, state), state.sound)[0]

    def finish(self, state: DecoderState) -> Tensor:
        """The last frame and the 40 ms before it `(samples,)`, which no later frame will change any more."""
        assert state.waiting is not None, "finish comes after the first step"
        envelopes = self.decoder.step(state.waiting, torch.zeros_like(state.waiting), state)
        return torch.cat([self.synthesis.step(envelopes, state.sound), self.synthesis.finish(state.sound)], dim=1)[0]
