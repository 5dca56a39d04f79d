"""What is said in a clip, by a Whisper model that the user already has; needs the extra `asr` (faster-whisper, MIT).

Nothing is downloaded here, and the recogniser is imported only when a transcript is asked for.
"""

import importlib.util
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studio.audio.speech import check_length, heard
from studio.audio.waveform import Waveform
from studio.errors import NoTranscriber

if TYPE_CHECKING:
    from faster_whisper import WhisperModel  # pyright: ignore[reportMissingImports]

NEEDED_FILES = ("config.json", "model.bin", "tokenizer.json")
_LOUD = 0.7


class Transcriber:
    """A Whisper model in CTranslate2's format, from a folder; loaded at the first clip and kept. May be used from any
    thread, one clip at a time."""

    def __init__(self, folder: Path | None, *, num_threads: int = 2) -> None:
        self._folder, self._num_threads = folder, num_threads
        self._model: WhisperModel | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """NoTranscriber, with the cure, where the extra or the model is missing; quick, and loads nothing."""
        if importlib.util.find_spec("faster_whisper") is None:
            raise NoTranscriber("the extra is not installed", "run `pip install -c constraints.txt 'solo-studio[asr]'`")
        if self._folder is None:
            cure = "set STUDIO_ASR_DIR to a folder with a Whisper model in CTranslate2's format"
            raise NoTranscriber("no model is named", cure)
        folder = self._folder
        missing = [name for name in NEEDED_FILES if not (folder / name).is_file()]
        if missing:
            reason = f"{folder} has no {missing[0]}"
            raise NoTranscriber(reason, "name a folder with a Whisper model in CTranslate2's format")

    def transcribe(self, clip: Waveform, *, language: str | None = None) -> str:
        """The words of a clip of at most 30 s, or of its trimmed part, in its language where none is given.

        Blank where nothing was understood. Raises NoTranscriber, or ClipError for a clip that is no reference.
        """
        check_length(clip, name="The clip")
        channel = heard(clip)
        peak = float(np.abs(channel).max(initial=0.0))
        with self._lock:
            segments, _ = self._loaded().transcribe(
                channel * np.float32(_LOUD / peak if peak else 1.0),
                language=language,
                condition_on_previous_text=False,
                without_timestamps=True,
            )
            return " ".join(segment.text.strip() for segment in segments).strip()

    def _loaded(self) -> "WhisperModel":
        if self._model is None:
            self.check()
            from faster_whisper import WhisperModel  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

            try:
                self._model = WhisperModel(
                    str(self._folder),
                    device="cpu",
                    compute_type="int8",
                    cpu_threads=self._num_threads,
                    local_files_only=True,
                )
            except (RuntimeError, ValueError) as error:
                raise NoTranscriber(f"the model in {self._folder} is damaged: {error}", "download it again") from error
        return self._model
