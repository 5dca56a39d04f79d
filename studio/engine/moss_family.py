"""In what the two families of MOSS models differ for whoever speaks with them, and the parts of a loaded model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from studio.audio.waveform import Waveform
from studio.engine.backbone_config import QwenShape, SpeechModelConfig
from studio.engine.codec import CodecDecoder
from studio.engine.frame_sampling import LOCAL_SAMPLING, NANO_SAMPLING, SpeechSampling
from studio.engine.model_catalogue import ModelEntry
from studio.engine.moss_pool import SpeechPool
from studio.engine.moss_tokenizers import NanoTokenizer, QwenTokenizer
from studio.engine.prompt_rows import PromptRows, TextTokenizer
from studio.engine.reference_preparation import LOCAL_RECIPE, NANO_RECIPE, prepare_for_local, prepare_for_nano
from studio.engine.speech_model import SpeechModel
from studio.text.moss_chunks import nano_pieces
from studio.text.script import Utterance

Cut = Callable[[Utterance, TextTokenizer], tuple[Utterance, ...]]


def _cut_for_nano(utterance: Utterance, tokenizer: TextTokenizer) -> tuple[Utterance, ...]:
    return nano_pieces(utterance, lambda text: len(tokenizer.encode(text)))


def _whole(utterance: Utterance, tokenizer: TextTokenizer) -> tuple[Utterance, ...]:  # noqa: ARG001
    return (utterance,)


@dataclass(frozen=True, kw_only=True)
class Family:
    """What belongs to all models of one family."""

    recipe: str
    """Id of `prepare`."""
    prepare: Callable[[Waveform], Waveform]
    tokenizer: Callable[[Path], TextTokenizer]
    sampling: SpeechSampling
    cut: Cut
    """An utterance in pieces that are spoken one by one; the pauses between them are theirs."""
    takes_length: bool
    """Whether its prompt can say how many frames the speech should take."""


LOCAL = Family(
    recipe=LOCAL_RECIPE,
    prepare=prepare_for_local,
    tokenizer=QwenTokenizer,
    sampling=LOCAL_SAMPLING,
    cut=_whole,
    takes_length=True,
)
NANO = Family(
    recipe=NANO_RECIPE,
    prepare=prepare_for_nano,
    tokenizer=NanoTokenizer,
    sampling=NANO_SAMPLING,
    cut=_cut_for_nano,
    takes_length=False,
)


def family_of(config: SpeechModelConfig) -> Family:
    """The shape of the backbone tells."""
    return LOCAL if isinstance(config.backbone, QwenShape) else NANO


@dataclass(frozen=True, kw_only=True, eq=False)
class MossParts:
    """A loaded model: all that speaks. What encodes is apart from it, because it is needed for moments only."""

    entry: ModelEntry
    model: SpeechModel
    tokenizer: TextTokenizer
    decoder: CodecDecoder
    device: str
    dtype: str
    """Of the language model; the codec is float32."""
    pool: SpeechPool

    @property
    def family(self) -> Family:
        return family_of(self.model.config)

    @property
    def prompts(self) -> PromptRows:
        return PromptRows(self.model.config, self.tokenizer)
