"""The invariance lab's probe of the MOSS audio tokenizer."""

import copy

import numpy as np
import torch
from torch import Tensor

from studio.engine.codec import CodecDecoder, CodecEncoder, interleave
from studio.engine.interface import CodecIdentity
from studio.engine.probe import PaddedBatch, ProbeSetting
from studio.engine.probe_thread import ProbeThread, network_dtype
from studio.engine.probe_trace import NetworkTrace


class MossProbe:
    """Implements `CodecProbe`. In 16 bit the encoder's stages are cast, a copy of them; the quantiser stays float32."""

    whole_tolerance = 1e-5

    def __init__(
        self, encoder: CodecEncoder, decoder: CodecDecoder, identity: CodecIdentity, setting: ProbeSetting
    ) -> None:
        """`identity.hop_length` and `identity.num_codebooks` are taken as said."""
        parameter = next(encoder.parameters())
        self.codec = identity
        self.setting = setting
        self.device = parameter.device.type
        self._where = parameter.device
        dtype = network_dtype(setting)
        self._stages = encoder.stages if parameter.dtype is dtype else copy.deepcopy(encoder.stages).to(dtype)
        self._dtype = dtype
        self._quantizer = encoder.quantizer
        self._decoder = decoder
        self._thread = ProbeThread(setting, self.device)

    def encode(self, batch: PaddedBatch) -> np.ndarray:
        count = self.codec.num_codebooks
        return self._thread.run(lambda: _numpy(self._quantizer.encode(self._latents(batch), count)).astype(np.int16))

    def latents(self, batch: PaddedBatch) -> np.ndarray:
        return self._thread.run(lambda: _numpy(self._latents(batch)))

    def distances(self, batch: PaddedBatch) -> np.ndarray:
        count = self.codec.num_codebooks
        return self._thread.run(lambda: _numpy(self._quantizer.encode_with_margins(self._latents(batch), count)[1]))

    def trace(self, solo: PaddedBatch, batch: PaddedBatch, row: int) -> NetworkTrace:
        return NetworkTrace(self._stages, lambda: self._latents(solo), lambda: self._latents(batch), row, self._thread)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return self._thread.run(lambda: _numpy(self._decoder.decode(self._frames(codes))))

    def decode_streamed(self, codes: np.ndarray, chunk: int) -> np.ndarray:
        return self._thread.run(lambda: self._streamed(self._frames(codes), chunk))

    def _latents(self, batch: PaddedBatch) -> Tensor:
        samples = torch.from_numpy(np.ascontiguousarray(batch.samples)).to(self._where)
        return self._stages(interleave(samples).to(self._dtype)).float()

    def _streamed(self, codes: Tensor, chunk: int) -> np.ndarray:
        state = self._decoder.start(max_frames=1)
        return _numpy(torch.cat([self._decoder.step(piece, state) for piece in codes.split(chunk, dim=1)], dim=1))

    def _frames(self, codes: np.ndarray) -> Tensor:
        return torch.from_numpy(codes.astype(np.int64)).to(self._where)


def _numpy(values: Tensor) -> np.ndarray:
    return values.cpu().numpy()
