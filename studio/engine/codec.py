"""The MOSS audio tokenizer: waveforms to codes and codes to waveforms, as two halves that live apart.

The encoder is large and needed for a moment only; it can be freed while any number of streams decode over one decoder.
Nothing here keeps a state between calls: a stream's state is handed in. Waveforms are `(channels, samples)` float32 at
the codec's sample rate, codes `(num_codebooks, num_frames)` int64.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.codec_config import CodecConfig
from studio.engine.codec_layers import CodecStages
from studio.engine.codec_stream import StreamState, start_stream, stream_step
from studio.engine.lookup_quantizer import LookupQuantizer, LookupTable

DEFAULT_MAX_FRAMES = 8


class CodecEncoder(nn.Module):
    """Waveforms to codes, by the modules that are handed in with their weights."""

    def __init__(self, config: CodecConfig, stages: CodecStages, quantizer: LookupQuantizer) -> None:
        super().__init__()
        self.config = config
        self.stages = stages
        self.quantizer = quantizer

    @torch.inference_mode()
    def encode(self, samples: Tensor, num_codebooks: int | None = None) -> Tensor:
        """Codes of one clip `(channels, samples)`, encoded alone and in one pass; None takes all codebooks.

        There are as many frames as the clip holds whole ones: the rest of its tail is computed, because the released
        code computes it, and dropped. A clip shorter than a frame has none.
        """
        codes = self.quantizer.encode(self._latents(samples[None]), self._count(num_codebooks))
        return codes[0, :, : self._num_frames(samples)]

    @torch.inference_mode()
    def encode_with_margins(self, samples: Tensor, num_codebooks: int | None = None) -> tuple[Tensor, Tensor]:
        """Codes as `encode`, and the squared distances `(num_codebooks, num_frames, 2)` of each latent to the best and
        the second-best entry, both at unit length."""
        codes, distances = self.quantizer.encode_with_margins(self._latents(samples[None]), self._count(num_codebooks))
        frames = self._num_frames(samples)
        return codes[0, :, :frames], distances[0, :, :frames]

    @torch.inference_mode()
    def encode_padded(self, clips: Sequence[Tensor], num_codebooks: int | None = None) -> list[Tensor]:
        """Codes of each of several clips, encoded as one batch with zeros behind the shorter ones.

        Not canonical: a last bit depends on how many clips there are and how long the longest is. For comparing only.
        """
        longest = max(clip.shape[1] for clip in clips)
        batch = torch.stack([functional.pad(clip, (0, longest - clip.shape[1])) for clip in clips])
        codes = self.quantizer.encode(self._latents(batch), self._count(num_codebooks))
        return [row[:, : self._num_frames(clip)] for row, clip in zip(codes, clips, strict=True)]

    @torch.inference_mode()
    def latents(self, samples: Tensor) -> Tensor:
        """What the quantiser is given for one clip, `(num_frames, latent_width)`."""
        return self._latents(samples[None])[0, : self._num_frames(samples)]

    def _latents(self, batch: Tensor) -> Tensor:
        """`(batch, frames, latent_width)` of `(batch, channels, samples)`, a frame more where a rest was padded."""
        stream = interleave(functional.pad(batch, (0, -batch.shape[2] % self.config.hop_length)))
        return self.stages(stream)

    def _num_frames(self, samples: Tensor) -> int:
        return samples.shape[-1] // self.config.hop_length

    def _count(self, num_codebooks: int | None) -> int:
        return self.config.quantizer.num_codebooks if num_codebooks is None else num_codebooks


class CodecDecoder(nn.Module):
    """Codes to waveforms: whole, or as any number of streams side by side."""

    def __init__(self, config: CodecConfig, table: LookupTable, stages: CodecStages) -> None:
        super().__init__()
        self.config = config
        self.table = table
        self.stages = stages

    @torch.inference_mode()
    def decode(self, codes: Tensor) -> Tensor:
        """The waveform `(channels, num_frames * hop_length)` of codes in one pass; the first codebooks alone give a
        coarser sound."""
        return self.decode_batch(codes[None])[0]

    @torch.inference_mode()
    def decode_batch(self, codes: Tensor) -> Tensor:
        """Waveforms `(batch, channels, samples)` of codes `(batch, num_codebooks, num_frames)`."""
        return self._waveforms(self.stages(self._hidden(codes)))

    @torch.inference_mode()
    def start(self, max_frames: int = DEFAULT_MAX_FRAMES) -> StreamState:
        """The state of a fresh stream, of which at most `max_frames` are computed at once.

        With one frame at once every chunking gives equal bits; with more, equal up to rounding.
        """
        return start_stream(self.stages, max_frames)

    @torch.inference_mode()
    def step(self, codes: Tensor, state: StreamState) -> Tensor:
        """The waveform `(channels, num_frames * hop_length)` of the next codes of a stream, any number of frames: up to
        rounding the samples that `decode` gives in these places.
        """
        parts = [self._step(piece[None], state)[0] for piece in codes.split(state.max_frames, dim=1)]
        return torch.cat(parts, dim=1)

    def _step(self, codes: Tensor, state: StreamState) -> Tensor:
        return self._waveforms(stream_step(self.stages, self._hidden(codes), state))

    def _hidden(self, codes: Tensor) -> Tensor:
        return self.table(codes).to(next(self.stages.parameters()).dtype)

    def _waveforms(self, stream: Tensor) -> Tensor:
        return separate(stream.float(), self.config.channels)


def interleave(waveforms: Tensor) -> Tensor:
    """`(batch, channels, samples)` as the one stream `(batch, samples * channels, 1)`: left, right, left, right."""
    return waveforms.transpose(1, 2).flatten(1).unsqueeze(-1)


def separate(stream: Tensor, channels: int) -> Tensor:
    """The inverse of `interleave`."""
    return stream.flatten(1).unflatten(1, (-1, channels)).transpose(1, 2)
