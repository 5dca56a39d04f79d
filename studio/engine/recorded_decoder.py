"""One stream's decoder whose step is recorded for a few chunk sizes; on a CPU the same thing with plain calls."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from studio.engine.codec import CodecDecoder
from studio.engine.codec_stream import StreamState
from studio.engine.frame_graph import Recorder, Step, recorded

CHUNK_SIZES = (1, 2, 4, 8)


@dataclass
class RecordedChunk:
    """The step for chunks of one size: codes go into `codes`, `run` fills `waveform`."""

    codes: Tensor
    """`(num_codebooks, num_frames)`"""
    waveform: Tensor
    """`(channels, num_frames * hop_length)`"""
    run: Step


class RecordedDecoder:
    """A stream that can be restarted; gives what `CodecDecoder.step` gives with a state of as many frames at once."""

    def __init__(
        self, decoder: CodecDecoder, sizes: Sequence[int] = CHUNK_SIZES, *, record: Recorder = recorded
    ) -> None:
        """Records every size of `sizes`, which must hold 1, so that any number of frames can be made of them."""
        if 1 not in sizes:
            raise ValueError(f"chunks of {sizes} frames do not make every number of frames")
        self._decoder = decoder
        self._state = decoder.start(max(sizes))
        self._chunks = [self._recorded(size, record) for size in sorted(set(sizes), reverse=True)]
        self.restart()

    def restart(self) -> None:
        """Begins another stream in the same buffers."""
        self._state.restart()

    @torch.inference_mode()
    def step(self, codes: Tensor) -> Tensor:
        """The waveform `(channels, num_frames * hop_length)` of the next codes `(num_codebooks, num_frames)`."""
        parts, done = [], 0
        for chunk in self._chunks:
            size = chunk.codes.shape[1]
            while codes.shape[1] - done >= size:
                chunk.codes.copy_(codes[:, done : done + size])
                chunk.run()
                parts.append(chunk.waveform.clone())
                done += size
        return torch.cat(parts, dim=1)

    def _recorded(self, size: int, record: Recorder) -> RecordedChunk:
        decoder, state = self._decoder, self._state
        config, device = decoder.config, state.position.device
        codes = torch.zeros(decoder.table.num_codebooks, size, dtype=torch.int64, device=device)
        waveform = torch.zeros(config.channels, size * config.hop_length, device=device)
        return RecordedChunk(codes, waveform, record(_step(decoder, state, codes, waveform), device))


def _step(decoder: CodecDecoder, state: StreamState, codes: Tensor, waveform: Tensor) -> Step:
    def step() -> None:
        waveform.copy_(decoder.step(codes, state))

    return step
