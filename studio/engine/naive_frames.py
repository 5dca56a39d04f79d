"""The frame loop the plain way, as the published code of Nano runs it: the measure of what the fast loop gains.

The backbone keeps keys and values and copies them together at every step. Within a frame nothing is kept: for each
codebook the whole prefix runs through the depth transformer again. Sampling is that of the fast loop.
"""

from collections.abc import Generator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone import GptBackbone, QwenBackbone
from studio.engine.frame_sampling import SpeechSampling, choose
from studio.engine.slot_cache import Attend, rotary_table
from studio.engine.speech_frames import Draws
from studio.engine.speech_model import SpeechModel
from studio.engine.transformer import Rotation


class GrowingRows:
    """Keys and values of one sequence, in tensors that are made anew whenever rows come."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """Rows held so far."""
        return self._held[0][0].shape[2] if self._held else 0

    def attend(self, layer: int) -> Attend:
        """Causal attention of further rows `(1, time, ...)` on those held and on themselves."""

        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
            if layer in self._held:
                held_keys, held_values = self._held[layer]
                keys, values = torch.cat([held_keys, keys], dim=2), torch.cat([held_values, values], dim=2)
            self._held[layer] = keys, values
            group = queries.shape[2] // keys.shape[1]
            mixed = functional.scaled_dot_product_attention(
                queries.transpose(1, 2),
                keys.repeat_interleave(group, dim=1),
                values.repeat_interleave(group, dim=1),
                is_causal=queries.shape[1] > 1,
            )
            return mixed.transpose(1, 2).flatten(2)

        return attend


class NaiveLoop:
    """One request: its rows so far, and the frames that follow. Whether the model would stop is not asked."""

    def __init__(self, model: SpeechModel, sampling: SpeechSampling, prompt: np.ndarray, draws: Draws) -> None:
        self._model, self._sampling, self._draws = model, sampling, draws
        self._rows = GrowingRows()
        self._layers, self._norm, base = _backbone_parts(model)
        shape, like = model.config.backbone, next(model.parameters())
        self._turns = rotary_table(model.config.longest, shape.head_width, base, like)
        self._seen = torch.zeros(model.config.num_codebooks, model.config.codebook_size, dtype=torch.bool)
        self._next = torch.from_numpy(prompt)

    @torch.inference_mode()
    def frame(self, number: int) -> Tensor:
        """The codes `(num_codebooks,)` of frame `number`; frames come in order."""
        config = self._model.config
        uniforms = torch.from_numpy(self._draws.frame(number, 1 + config.num_codebooks))
        inputs = [self._hidden(self._next)]
        choose(self._model.stop_logits(self._depth(inputs)), self._sampling.stop, uniforms[:1])
        if self._model.first_position:
            slot = torch.tensor([config.tokens.assistant_slot])
            inputs.append(self._model.transformer.embed(slot))
        codes: list[Tensor] = []
        for codebook in range(config.num_codebooks):
            logits = self._model.code_logits(self._depth(inputs), codebook)
            seen = self._seen[codebook : codebook + 1]
            code = choose(logits, self._sampling.codes, uniforms[1 + codebook : 2 + codebook], seen=seen)
            codes.append(code)
            inputs.append(self._model.embed_code(code, codebook))
        frame = torch.cat(codes)
        self._seen[torch.arange(len(frame)), frame] = True
        self._next = torch.cat([torch.tensor([config.tokens.assistant_slot]), frame])[None]
        return frame

    def _hidden(self, rows: Tensor) -> Tensor:
        """The backbone's output `(1, width)` for the last of some further rows."""
        start = self._rows.length
        cosines, sines = (table[None, start : start + len(rows), None] for table in self._turns)
        hidden = self._model.embed_rows(rows)[None]
        for index, layer in enumerate(self._layers):
            hidden = layer(hidden, (cosines, sines), self._rows.attend(index))
        return self._norm(hidden)[:, -1]

    def _depth(self, inputs: list[Tensor]) -> Tensor:
        """The output `(1, width)` at the last of the positions that `inputs`, each `(1, width)`, fill."""
        shape, hidden, rows = self._model.config.depth, torch.stack(inputs, dim=1), GrowingRows()
        turn = _turn(rotary_table(len(inputs), shape.head_width, shape.rotary_base, hidden))
        for index, layer in enumerate(self._model.local_transformer.h):
            hidden = layer(hidden, turn, rows.attend(index))
        return self._model.local_transformer.ln_f(hidden)[:, -1]


def naive_frames(
    model: SpeechModel, prompt: np.ndarray, *, count: int, sampling: SpeechSampling, draws: Draws
) -> Generator[Tensor, None, None]:
    """`count` frames of codes, `(num_codebooks,)`; for models on a CPU."""
    loop = NaiveLoop(model, sampling, prompt, draws)
    for number in range(count):
        yield loop.frame(number)


def _turn(table: Rotation) -> Rotation:
    cosines, sines = table
    return cosines[None, :, None], sines[None, :, None]


def _backbone_parts(model: SpeechModel) -> tuple[nn.ModuleList, nn.Module, float]:
    backbone, shape = model.transformer, model.config.backbone
    if isinstance(backbone, QwenBackbone):
        return backbone.layers, backbone.norm, shape.rotary_base
    assert isinstance(backbone, GptBackbone)
    return backbone.h, backbone.ln_f, shape.rotary_base
