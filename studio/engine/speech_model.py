"""The MOSS speech language models: a backbone over rows of text and codes, and a depth transformer that turns one of
its hidden states into one frame of codes. Attributes are named as in the released weight files.

The two families share everything but the beginning of a frame. Local decides at depth position 0 whether speech goes on
and reads codebook 0 at that same position. Nano decides there too, then takes the slot token's text embedding as the
input of position 1 and reads codebook 0 there.
"""

from abc import ABC, abstractmethod
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone import Backbone, GptBackbone, QwenBackbone
from studio.engine.backbone_config import GptShape, QwenShape, SpeechModelConfig
from studio.engine.backbone_json import read_speech_config
from studio.engine.depth_transformer import DepthCache, DepthTransformer
from studio.engine.weight_files import drop_tied, load_strictly, read_tensors


class SpeechModel(nn.Module, ABC):
    """What the families share. Rows are int64 `(num_rows, 1 + num_codebooks)`: a text token, then codes or pads."""

    transformer: Backbone
    ties: dict[str, str]
    """Names that a weight file may hold a second time, each with the name of the tensor it must equal."""
    unused: tuple[str, ...] = ()
    """Names that a weight file may hold and nothing needs."""
    first_position: int
    """The depth position at which codebook 0 is read."""
    code_projections: Tensor | None
    """Once prepared, what the first depth layer projects each code to, `(num_codebooks - 1, codebook_size, 3 * width)`;
    the last codebook's codes are never an input."""

    def __init__(self, config: SpeechModelConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("code_projections", None, persistent=False)
        self.packed_heads: nn.ModuleList | None = None
        self._tables: list[Tensor] = []
        """Once prepared, the weights of `audio_embeddings`, at hand: a frame asks for them 47 times."""
        self.local_transformer = DepthTransformer(config.depth)
        self.audio_embeddings = nn.ModuleList(
            nn.Embedding(config.codebook_size, config.backbone.width) for _ in range(config.num_codebooks)
        )
        self.ties = {
            f"audio_lm_heads.{codebook}.weight": f"audio_embeddings.{codebook}.weight"
            for codebook in range(config.num_codebooks)
        }

    def embed_rows(self, rows: Tensor) -> Tensor:
        """The summed embeddings `(num_rows, width)` of `rows`; a pad adds nothing."""
        total = self.transformer.embed(rows[:, 0])
        codes, spoken = rows[:, 1:].clamp(max=self.config.codebook_size - 1), rows[:, 1:] != self.config.code_pad
        weights = spoken.to(total.dtype)
        for codebook in range(self.config.num_codebooks):
            embedded = self.embed_code(codes[:, codebook], codebook)
            total = torch.addcmul(total, embedded, weights[:, codebook, None])
        return total

    def embed_code(self, codes: Tensor, codebook: int) -> Tensor:
        """Embeddings `(slots, width)` of one codebook's `codes` `(slots,)`."""
        return torch.embedding(self._table(codebook), codes)

    def code_logits(self, hidden: Tensor, codebook: int) -> Tensor:
        """Logits `(slots, codebook_size)` of a codebook; the head is the embedding, or its packed copy."""
        if self.packed_heads is not None:
            return self.packed_heads[codebook](hidden)
        return functional.linear(hidden, self._table(codebook))

    def start_depth(self, slots: int) -> DepthCache:
        """An empty cache for the frames of `slots` slots."""
        return self.local_transformer.start(slots, self.first_position + self.config.num_codebooks)

    @abstractmethod
    def stop_logits(self, hidden: Tensor) -> Tensor:
        """Logits `(slots, 2)` of going on and of stopping, from the output of depth position 0."""

    @abstractmethod
    def first_code_state(self, hidden: Tensor, cache: DepthCache) -> Tensor:
        """The state `(slots, width)` that codebook 0 is read from, from the output of depth position 0."""

    def next_code_state(self, codes: Tensor, codebook: int, cache: DepthCache) -> Tensor:
        """The state that the codebook after `codebook` is read from, once this one's `codes` `(slots,)` are known."""
        position, embedded = self.first_position + codebook + 1, self.embed_code(codes, codebook)
        if self.code_projections is None:
            return self.local_transformer.step(embedded, position, cache)
        projected = torch.embedding(self.code_projections[codebook], codes)
        heads = projected.unflatten(1, (3, self.config.depth.num_heads, -1))
        return self.local_transformer.step_projected(embedded, heads, position, cache)

    @torch.no_grad()
    def prepare(self) -> None:
        """Makes from the weights what is computed faster with, once they are in their place and before they are used:
        merged matrices, and what the first depth layer makes of every code, which comes at one position only. The
        numbers stay the same up to rounding, the names of the weights too."""
        self.transformer.merge()
        self._tables = [table.get_parameter("weight") for table in self.audio_embeddings]
        tables = self._tables[:-1]
        positions = range(self.first_position + 1, self.first_position + self.config.num_codebooks)
        projected = map(self.local_transformer.projected, tables, positions)
        self.code_projections = torch.stack([each.flatten(1) for each in projected]) if tables else None

    def _table(self, codebook: int) -> Tensor:
        return self._tables[codebook] if self._tables else self.audio_embeddings[codebook].get_parameter("weight")


class LocalSpeechModel(SpeechModel):
    """MOSS-TTS-Local-Transformer v1.5: a stop head of its own, at the position of codebook 0."""

    first_position = 0

    def __init__(self, config: SpeechModelConfig) -> None:
        assert isinstance(config.backbone, QwenShape), "Local has a Qwen backbone"
        super().__init__(config)
        self.transformer = QwenBackbone(config.backbone, config.vocabulary)
        self.local_text_lm_head = nn.Linear(config.backbone.width, 2, bias=False)
        self.ties |= {"text_lm_head.weight": "transformer.embed_tokens.weight"}

    def stop_logits(self, hidden: Tensor) -> Tensor:
        return self.local_text_lm_head(hidden)

    def first_code_state(self, hidden: Tensor, cache: DepthCache) -> Tensor:  # noqa: ARG002
        return hidden


class NanoSpeechModel(SpeechModel):
    """MOSS-TTS-Nano: two rows of the text embedding serve as the stop head."""

    first_position = 1
    unused = ("local_transformer.wte.weight",)
    slot_projection: Tensor | None
    """Once prepared, what the first depth layer projects the slot token to, `(1, 3, heads, head_width)`."""

    def __init__(self, config: SpeechModelConfig) -> None:
        assert isinstance(config.backbone, GptShape), "Nano has a GPT backbone"
        super().__init__(config)
        self.register_buffer("slot_projection", None, persistent=False)
        self.transformer = GptBackbone(config.backbone, config.vocabulary)
        self.ties |= {"text_lm_head.weight": "transformer.wte.weight"}

    def stop_logits(self, hidden: Tensor) -> Tensor:
        tokens = self.config.tokens
        head = torch.stack([self._text_embedding(tokens.assistant_slot), self._text_embedding(tokens.audio_end)])
        return functional.linear(hidden, head)

    def first_code_state(self, hidden: Tensor, cache: DepthCache) -> Tensor:
        row = self._text_embedding(self.config.tokens.assistant_slot).expand_as(hidden)
        if self.slot_projection is None:
            return self.local_transformer.step(row, 1, cache)
        projected = self.slot_projection.expand(len(hidden), -1, -1, -1)
        return self.local_transformer.step_projected(row, projected, 1, cache)

    @torch.no_grad()
    def prepare(self) -> None:
        super().prepare()
        row = self._text_embedding(self.config.tokens.assistant_slot)
        self.slot_projection = self.local_transformer.projected(row[None], 1)

    def _text_embedding(self, token: int) -> Tensor:
        assert isinstance(self.transformer, GptBackbone)
        return self.transformer.wte.weight[token]


def build_speech_model(config: SpeechModelConfig) -> SpeechModel:
    """The family that the backbone's shape tells, with weights that are not set yet."""
    family = LocalSpeechModel if isinstance(config.backbone, QwenShape) else NanoSpeechModel
    return family(config)


def load_speech_model(folder: Path, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> SpeechModel:
    """The model of a released checkpoint folder, in evaluation mode. Weights are mapped, cast to `dtype` one by one and
    then moved, so memory is not held twice.

    Raises CheckpointError where config.json asks for what is not computed here, a file is missing or damaged, a tensor
    is missing, has no place or another shape, or a duplicate of a tied tensor differs from it.
    """
    config = read_speech_config(folder)
    with torch.device("meta"):
        model = build_speech_model(config).to(dtype)
    tensors = drop_tied(read_tensors(folder), model.ties, source=str(folder))
    load_strictly(model, tensors, source=str(folder), ignored=model.unused)
    model.to(device).eval().requires_grad_(False)
    model.prepare()
    return model
