"""The invariance lab's probe of the embedded voice's codec."""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from studio.engine.harmonic_codec import Encoder, HarmonicCodec
from studio.engine.interface import CodecIdentity
from studio.engine.probe import PaddedBatch, ProbeSetting
from studio.engine.probe_thread import ProbeThread, network_dtype
from studio.engine.probe_trace import NetworkTrace
from studio.engine.quantizer import ResidualQuantizer
from studio.engine.sampling import CounterDraws


class HarmonicProbe:
    """Implements `CodecProbe`. In 16 bit the networks are cast; what the encoder hears of the waveform, a Fourier
    transform, and the quantiser stay float32."""

    device = "cpu"
    whole_tolerance = 5e-3
    """A last bit of the pitch adds up in the phase: up to 4e-4 in two seconds of the built-in voices."""

    def __init__(self, codec: HarmonicCodec, identity: CodecIdentity, setting: ProbeSetting) -> None:
        self.codec = identity
        self.setting = setting
        self._network = codec
        self._encoder = _cast(codec.encoder, network_dtype(setting))
        self._thread = ProbeThread(setting, self.device)

    def encode(self, batch: PaddedBatch) -> np.ndarray:
        quantizer = self._network.quantizer
        return self._thread.run(lambda: quantizer.encode(self._latents(batch)).numpy().astype(np.int16))

    def latents(self, batch: PaddedBatch) -> np.ndarray:
        return self._thread.run(lambda: self._latents(batch).numpy())

    def distances(self, batch: PaddedBatch) -> np.ndarray:
        return self._thread.run(lambda: nearest_two(self._network.quantizer, self._latents(batch)).numpy())

    def trace(self, solo: PaddedBatch, batch: PaddedBatch, row: int) -> NetworkTrace:
        return NetworkTrace(self._encoder, lambda: self._latents(solo), lambda: self._latents(batch), row, self._thread)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return self._thread.run(lambda: self._network.decode(_frames(codes)[None], _noise).numpy())

    def decode_streamed(self, codes: np.ndarray, chunk: int) -> np.ndarray:
        return self._thread.run(lambda: self._streamed(_frames(codes), chunk).numpy())

    def _latents(self, batch: PaddedBatch) -> Tensor:
        with self._thread.networks():
            return self._encoder(torch.from_numpy(np.ascontiguousarray(batch.samples[:, 0])))

    def _streamed(self, codes: Tensor, chunk: int) -> Tensor:
        """This decoder takes one frame a call, so a chunk is as many calls and one piece of sound."""
        state, sound = self._network.start(_noise), []
        for piece in codes.split(chunk, dim=1):
            sound.append(torch.cat([self._network.step(frame, state) for frame in piece.T]))
        return torch.cat([*sound, self._network.finish(state)])[None]


def nearest_two(quantizer: ResidualQuantizer, latents: Tensor) -> Tensor:
    """Squared distances `(batch, num_codebooks, num_frames, 2)` of each residual to the best and the second-best entry,
    along the path that `quantizer.encode` takes."""
    residual, found = latents.float(), []
    for codebook in range(quantizer.num_codebooks):
        entries = quantizer.codebooks[codebook]
        scores = residual @ entries.T * 2 - (entries * entries).sum(-1)
        found.append((residual * residual).sum(-1, keepdim=True) - scores.topk(2).values)
        residual = residual - entries[quantizer.nearest(residual, codebook)]
    return torch.stack(found, dim=1)


def _cast(encoder: Encoder, dtype: torch.dtype) -> Encoder:
    if dtype is torch.float32:
        return encoder
    cast = copy.deepcopy(encoder)
    for name, module in cast.named_children():
        if name != "features":
            module.to(dtype)
    cast.input.register_forward_pre_hook(_to(dtype))
    return cast


def _to(dtype: torch.dtype) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...]]:
    def hook(_module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(each.to(dtype) for each in arguments)

    return hook


def _frames(codes: np.ndarray) -> Tensor:
    return torch.from_numpy(codes.astype(np.int64))


def _noise(start: int, count: int) -> Tensor:
    return torch.from_numpy(CounterDraws(0, 0).noise(start, count))[None]
