"""From texts and codes to the rows that a MOSS speech model reads: one template, filled by ids.

Every piece of the template is tokenised by itself, so that no merge crosses its border; that is how the models were
trained. Both families read the same template. Local fills its fields; Nano knows them as `None` only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from studio.engine.backbone_config import SpeechModelConfig
from studio.errors import NothingToSpeak

_INTRODUCTION = "<user_inst>\n- Reference(s):\n"
_NO_REFERENCE = "None"
_CONCLUSION = "\n</user_inst>"


class TextTokenizer(Protocol):
    """Text to the ids of a model's text column."""

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that steer the model and are not text, though a text can spell them."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without any added at its ends; text that spells a control token gives its id."""
        ...

    def spell(self, control_id: int) -> list[int]:
        """The ids of a control token's name as plain words."""
        ...


@dataclass(frozen=True, kw_only=True)
class PromptFields:
    """What may be asked for beside the text; blank fields read `None`. Local v1.5 only."""

    instruction: str = ""
    tokens: int | None = None
    """Frames that the speech should take. Words may get lost where it is short."""
    quality: str = ""
    sound_event: str = ""
    ambient_sound: str = ""
    language: str = ""
    """English name of the language, as "French"."""

    def block(self) -> str:
        """The template's text between the references and the text to speak."""
        values = {
            "Instruction": self.instruction,
            "Tokens": "" if self.tokens is None else str(self.tokens),
            "Quality": self.quality,
            "Sound Event": self.sound_event,
            "Ambient Sound": self.ambient_sound,
            "Language": self.language,
        }
        return "".join(f"\n- {name}:\n{value.strip() or 'None'}" for name, value in values.items()) + "\n- Text:\n"


class PromptRows:
    """Makes prompts for one model: int64 `(num_rows, 1 + num_codebooks)`, a text token and then codes or pads."""

    def __init__(self, config: SpeechModelConfig, tokenizer: TextTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer

    def clone(self, text: str, references: Sequence[np.ndarray] = (), fields: PromptFields | None = None) -> np.ndarray:
        """Speech of `text` in the voice of `references`, each int codes `(num_codebooks, num_frames)`; without any, in
        a voice the model chooses. Codes of fewer codebooks than the model has leave the others as pads.

        The text goes in as it is; only where it spells a control token, the token's name is spoken instead.
        Raises NothingToSpeak where it has nothing but space.
        """
        tokens = self._config.tokens
        spoken: list[np.ndarray] = []
        for reference in references:
            spoken += [
                self._text_rows([tokens.audio_start]),
                self._code_rows(reference, tokens.user_slot),
                self._text_rows([tokens.audio_end]),
            ]
        return self._assemble(text, spoken or [self._no_reference()], fields)

    def continuation(
        self, text: str, transcript: str, codes: np.ndarray, fields: PromptFields | None = None
    ) -> np.ndarray:
        """Speech that goes on after `codes` `(num_codebooks, num_frames)`, in which `transcript` is said. The two texts
        are joined as they are: a space between them belongs to one of them. Raises NothingToSpeak as `clone`."""
        if not text.strip():
            raise NothingToSpeak
        prompt = self._assemble(transcript + text, [self._no_reference()], fields)
        return np.concatenate([prompt, self._code_rows(codes, self._config.tokens.assistant_slot)])

    def _assemble(self, text: str, references: Sequence[np.ndarray], fields: PromptFields | None) -> np.ndarray:
        if not text.strip():
            raise NothingToSpeak
        tokens, encode = self._config.tokens, self._tokenizer.encode
        before = [tokens.im_start, *encode("user\n"), *encode(_INTRODUCTION)]
        after = [
            *self._spoken((fields or PromptFields()).block()),
            *self._spoken(text),
            *encode(_CONCLUSION),
            tokens.im_end,
            *encode("\n"),
            tokens.im_start,
            *encode("assistant\n"),
            tokens.audio_start,
        ]
        return np.concatenate([self._text_rows(before), *references, self._text_rows(after)])

    def _spoken(self, text: str) -> list[int]:
        """Ids of text that came from a user: none of them steers the model, however the text spells it."""
        controls, spell = self._tokenizer.control_ids, self._tokenizer.spell
        ids = self._tokenizer.encode(text)
        return [part for one in ids for part in (spell(one) if one in controls else [one])]

    def _no_reference(self) -> np.ndarray:
        return self._text_rows(self._tokenizer.encode(_NO_REFERENCE))

    def _text_rows(self, ids: Sequence[int]) -> np.ndarray:
        rows = np.full((len(ids), 1 + self._config.num_codebooks), self._config.code_pad, dtype=np.int64)
        rows[:, 0] = ids
        return rows

    def _code_rows(self, codes: np.ndarray, token: int) -> np.ndarray:
        if codes.ndim != 2 or not 1 <= codes.shape[0] <= self._config.num_codebooks:
            raise ValueError(f"codes must be (1 to {self._config.num_codebooks} codebooks, frames), not {codes.shape}")
        if codes.size and not (codes.min() >= 0 and codes.max() < self._config.codebook_size):
            raise ValueError(f"a code lies outside 0 to {self._config.codebook_size - 1}")
        rows = self._text_rows([token] * codes.shape[1])
        rows[:, 1 : 1 + codes.shape[0]] = codes.T
        return rows
