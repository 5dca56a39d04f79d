"""The text tokenizers of the MOSS speech models, from files beside the weights. Only this module knows their libraries.

Both implement `TextTokenizer`.
"""

import re
from pathlib import Path

from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

from studio.errors import CheckpointError

_NAME_MARKS = re.compile(r"[\W_]+")


class QwenTokenizer:
    """The byte-level BPE of Local v1.5, from `tokenizer.json`."""

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError where the file is missing or damaged."""
        path = _present(folder, "tokenizer.json")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no narrower class for a file that it cannot read
            raise CheckpointError(str(folder), f"{path.name} is damaged") from error
        self.control_ids = frozenset(self._tokenizer.get_added_tokens_decoder())

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def spell(self, control_id: int) -> list[int]:
        return self.encode(_words(self._tokenizer.get_added_tokens_decoder()[control_id].content))


class NanoTokenizer:
    """The SentencePiece model of Nano, from `tokenizer.model`. Line breaks count as spaces, and spaces at the ends or
    in a row vanish; each call that is not empty begins with a word mark."""

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError where the file is missing or damaged."""
        path = _present(folder, "tokenizer.model")
        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(path.read_bytes())
        except (RuntimeError, OSError) as error:
            raise CheckpointError(str(folder), f"{path.name} is damaged") from error
        self.control_ids = frozenset(filter(self._is_control, range(self._processor.GetPieceSize())))

    def encode(self, text: str) -> list[int]:
        return self._processor.EncodeAsIds(text)

    def spell(self, control_id: int) -> list[int]:
        return self.encode(_words(self._processor.IdToPiece(control_id)))

    def _is_control(self, index: int) -> bool:
        """A piece with a name in angle brackets that stands neither for a byte nor for an unknown character."""
        processor = self._processor
        return _is_name(processor.IdToPiece(index)) and not processor.IsByte(index) and not processor.IsUnknown(index)


def _present(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise CheckpointError(str(folder), f"{name} is missing")
    return folder / name


def _is_name(piece: str) -> bool:
    return len(piece) > 2 and piece[0] == "<" and piece[-1] == ">"


def _words(name: str) -> str:
    return _NAME_MARKS.sub(" ", name).strip()
