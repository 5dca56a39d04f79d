"""What a MOSS audio tokenizer is built from, as checked values; knows nothing of files."""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, kw_only=True)
class PatchConfig:
    """An encoder stage without weights: `patch` steps become one, with their features side by side."""

    patch: int

    def output_width(self, input_width: int) -> int:
        """Features a step after this stage."""
        return input_width * self.patch


@dataclass(frozen=True, kw_only=True)
class UnpatchConfig:
    """A decoder stage without weights: the inverse, one step becomes `patch`."""

    patch: int

    def output_width(self, input_width: int) -> int:
        """Features a step after this stage. Raises ValueError where they cannot be shared out."""
        if input_width % self.patch:
            raise ValueError(f"{input_width} features cannot become {self.patch} steps")
        return input_width // self.patch


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """A stage of causal transformer layers between two projections; a step sees itself and `window - 1` before it."""

    input_features: int
    output_features: int
    width: int
    num_heads: int
    num_layers: int
    feed_forward_width: int
    max_period: float
    """Base of the rotary positions."""
    window: int
    projects_input: bool
    projects_output: bool

    def __post_init__(self) -> None:
        if min(self.num_heads, self.num_layers, self.feed_forward_width, self.window, self.width) < 1:
            raise ValueError("a transformer stage has a size or a window below 1")
        if self.width % (2 * self.num_heads):
            raise ValueError(f"{self.width} features do not make {self.num_heads} heads of even width")

    def output_width(self, input_width: int) -> int:
        """Features a step after this stage. Raises ValueError where other ones arrive than it takes."""
        if input_width != self.input_features:
            raise ValueError(f"a stage takes {self.input_features} features where {input_width} arrive")
        return self.output_features


Stage = PatchConfig | UnpatchConfig | StackConfig


@dataclass(frozen=True, kw_only=True)
class LookupConfig:
    """Sizes of the residual lookup quantiser; `residual_width` is that of the space in which residuals are taken."""

    latent_width: int
    residual_width: int
    num_codebooks: int
    codebook_size: int
    code_width: int

    def __post_init__(self) -> None:
        if min(self.latent_width, self.residual_width, self.num_codebooks, self.codebook_size - 1, self.code_width) < 1:
            raise ValueError("the quantiser has a size below 1, or one entry a codebook")


@dataclass(frozen=True, kw_only=True)
class CodecConfig:
    """A whole codec: a stream of scalars through the encoder's stages to latents, codes, and back.

    Raises ValueError where the stages do not fit each other, the quantiser or the hop.
    """

    sample_rate: int
    """Samples a second of each channel."""
    channels: int
    """They are interleaved sample by sample into the one stream that the stages see."""
    hop_length: int
    """Samples of each channel a frame."""
    encoder: tuple[Stage, ...]
    decoder: tuple[Stage, ...]
    quantizer: LookupConfig

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.sample_rate / self.hop_length

    def __post_init__(self) -> None:
        latent = self.quantizer.latent_width
        for side, stages, first, last in (("encoder", self.encoder, 1, latent), ("decoder", self.decoder, latent, 1)):
            width = first
            for stage in stages:
                width = stage.output_width(width)
            if width != last:
                raise ValueError(f"the {side} ends with {width} features, not {last}")
            if prod(stage.patch for stage in stages if not isinstance(stage, StackConfig)) != self.stream_hop:
                raise ValueError(f"the patches of the {side} do not make a frame of {self.hop_length} samples")

    @property
    def stream_hop(self) -> int:
        """Scalars of the interleaved stream a frame."""
        return self.hop_length * self.channels
