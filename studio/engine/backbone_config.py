"""What the MOSS speech language models are built from, as checked values; knows nothing of files."""

from dataclasses import astuple, dataclass
from typing import Literal

Activation = Literal["silu", "gelu_tanh"]


@dataclass(frozen=True, kw_only=True)
class QwenShape:
    """A Qwen3-shaped stack: RMS norms, gated feed-forward layers, several query heads for each key head."""

    width: int
    num_layers: int
    num_heads: int
    num_key_heads: int
    head_width: int
    """Of its own: heads times this need not be the width."""
    inner_width: int
    norm_epsilon: float
    rotary_base: float

    def __post_init__(self) -> None:
        if self.num_heads % self.num_key_heads:
            raise ValueError(f"{self.num_heads} heads cannot share {self.num_key_heads} key heads evenly")
        _check_head_width(self.head_width)


@dataclass(frozen=True, kw_only=True)
class GptShape:
    """A GPT-2-shaped stack with biases, layer norms and rotary positions in place of learned ones."""

    width: int
    num_layers: int
    num_heads: int
    inner_width: int
    activation: Activation
    norm_epsilon: float
    rotary_base: float

    def __post_init__(self) -> None:
        if self.width % self.num_heads:
            raise ValueError(f"a width of {self.width} cannot be split into {self.num_heads} heads")
        _check_head_width(self.head_width)

    @property
    def head_width(self) -> int:
        return self.width // self.num_heads


@dataclass(frozen=True, kw_only=True)
class ControlTokens:
    """Ids in the text column that no user text may hold."""

    pad: int
    im_start: int
    im_end: int
    audio_start: int
    audio_end: int
    """Also what the text head of Nano says to stop."""
    user_slot: int
    """In the text column beside each frame of a reference."""
    assistant_slot: int
    """In the text column beside each frame that is generated or continued."""


@dataclass(frozen=True, kw_only=True)
class SpeechModelConfig:
    """One model: a backbone over rows, a small transformer over the codebooks of one frame. The backbone's shape says
    which family it is: Qwen for Local, GPT for Nano."""

    backbone: QwenShape | GptShape
    depth: GptShape
    vocabulary: int
    num_codebooks: int
    codebook_size: int
    code_pad: int
    """Stands in a row where there is no code."""
    longest: int
    """Rows of prompt and speech together that the model was made for."""
    sample_rate: int
    tokens: ControlTokens

    def __post_init__(self) -> None:
        if self.depth.width != self.backbone.width:
            raise ValueError(f"the depth transformer is {self.depth.width} wide, the backbone {self.backbone.width}")
        if self.code_pad < self.codebook_size:
            raise ValueError(f"the code pad {self.code_pad} is one of {self.codebook_size} codes")
        if not all(0 <= token < self.vocabulary for token in astuple(self.tokens)):
            raise ValueError(f"a control token lies outside the vocabulary of {self.vocabulary}")


def _check_head_width(head_width: int) -> None:
    if head_width % 2:
        raise ValueError(f"rotary positions turn pairs, and a head is {head_width} wide")
