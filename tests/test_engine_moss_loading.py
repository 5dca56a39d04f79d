"""Loading a MOSS model: what is refused before, what is tried out, and the sentences where something is wrong."""

import io
import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from moss_studio import TOY_LOCAL, TOY_NANO, publish_nano, toy_engine, write_model
from toy_hub import ToyHub, serving
from toy_moss import codec_files, local_files, nano_files

from studio.audio.waveform import Waveform
from studio.engine import moss_speech
from studio.engine.catalogue import ENGINES, load_engine
from studio.engine.device_memory import memory_suffices
from studio.engine.model_catalogue import MOSS_LOCAL, MemoryNeed
from studio.engine.model_download import download_model
from studio.engine.model_errors import FolderUnfit, MemoryTooSmall, ModelAbsent, NotFinite, OutOfMemory
from studio.engine.model_folder import adopt_folder
from studio.engine.model_store import ModelStore
from studio.engine.moss_engine import MossEngine
from studio.engine.moss_loading import choose_device, load_moss
from studio.engine.packed_weights import HalfLinear
from studio.engine.sampling import SamplingOptions
from studio.errors import CheckpointError, SettingError
from studio.settings import Settings
from studio.text.languages import ForeignLetters
from studio.text.script import Utterance


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def damaged(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return files | {name: files[name][: len(files[name]) // 2]}


def test_every_engine_but_the_first_is_a_model_that_can_be_got(settings):
    assert ENGINES[0] == "embedded"
    for name in ENGINES[1:]:
        with pytest.raises(ModelAbsent, match=f"`models get {name}` downloads about .* from https://huggingface.co"):
            load_engine(name, settings)


def test_a_model_from_a_hub_is_loaded_and_named_by_its_bytes(settings):
    hub = ToyHub()
    publish_nano(hub)
    with serving(hub):
        download_model(TOY_NANO, ModelStore(settings.models_dir), hub.url)
    engine = load_engine("moss-nano", settings)
    assert isinstance(engine, MossEngine)
    assert (engine.name, engine.device, engine.sample_rate, engine.channels) == ("moss-nano", "cpu", 48_000, 2)
    assert (engine.parts.dtype, engine.uses_transcript) == ("float32", False)
    assert engine.revision == ModelStore(settings.models_dir).folders(TOY_NANO, hub.url).revision


def test_weights_that_16_bits_hold_stay_so_on_a_cpu_and_take_less_memory(tmp_path):
    files = nano_files()
    tensors = torch.load(io.BytesIO(files["pytorch_model.bin"]), weights_only=True)
    buffer = io.BytesIO()
    torch.save({name: tensor.float() * 1.001 for name, tensor in tensors.items()}, buffer)
    finer = files | {"pytorch_model.bin": buffer.getvalue()}
    packed, plain = toy_engine(tmp_path / "a", TOY_NANO, files), toy_engine(tmp_path / "b", TOY_NANO, finer)
    halves = [part for part in packed.parts.model.modules() if isinstance(part, HalfLinear)]
    assert halves
    assert not any(isinstance(part, HalfLinear) for part in plain.parts.model.modules())
    assert packed.close() < plain.close()


def test_the_same_codec_has_the_same_digest_wherever_it_lies_and_another_one_has_another(tmp_path):
    digests = [
        toy_engine(tmp_path / str(place), TOY_NANO, codec=files).codec.digest
        for place, files in enumerate((codec_files(), codec_files(), codec_files(silent=True)))
    ]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_it_speaks_what_is_written_as_its_languages_are(tmp_path):
    engine = toy_engine(tmp_path, TOY_NANO)
    for text in (
        "Good morning, 42!",
        "Ночь, улица",
        "今天天气很好。",
        "מה" if "he" in TOY_NANO.languages else "Straße",
    ):
        engine.check_script(text)
    with pytest.raises(
        ForeignLetters, match=r"letters of 'สวัสดี'\. Write the text in one of its languages: Arabic, Chinese"
    ):
        engine.check_script("Hello สวัสดี")


@pytest.mark.parametrize(
    ("speech", "codec", "said"),
    [
        (damaged(nano_files(), "pytorch_model.bin"), codec_files(), "pytorch_model.bin is damaged"),
        (damaged(nano_files(), "tokenizer.model"), codec_files(), "tokenizer.model is damaged"),
        (damaged(nano_files(), "config.json"), codec_files(), "config.json is damaged"),
        (nano_files(), damaged(codec_files(), "model-00001-of-00001.safetensors"), "safetensors is damaged"),
        (nano_files(), codec_files(3), "it has 3 codebooks of 64 entries at 48000 Hz, and the language model speaks 4"),
    ],
)
def test_a_model_that_is_damaged_or_does_not_fit_its_codec_is_named_with_the_cure(tmp_path, speech, codec, said):
    with pytest.raises(CheckpointError, match=f"{said}.*Download it again"):
        toy_engine(tmp_path, TOY_NANO, speech, codec)


def test_a_folder_of_ones_own_that_lost_a_file_is_not_replaced_by_another_copy(settings, tmp_path):
    folder = write_model(tmp_path / "mine", TOY_NANO)
    adopt_folder(ModelStore(settings.models_dir), TOY_NANO, folder)
    (folder / "MOSS-TTS-Nano" / "tokenizer.model").unlink()
    with pytest.raises(FolderUnfit, match=r"tokenizer\.model is gone"):
        load_moss(TOY_NANO, settings)


def test_a_model_too_large_for_the_machine_is_refused_before_it_is_loaded(tmp_path):
    large = replace(TOY_NANO, memory=(MemoryNeed(device="cpu", dtype="float32", num_bytes=10**15),))
    with pytest.raises(MemoryTooSmall, match=r"needs about .* of memory on cpu in float32.*or choose a smaller model"):
        toy_engine(tmp_path, large, damaged(nano_files(), "pytorch_model.bin"))


def test_devices_that_do_not_do_are_refused_and_a_slow_one_is_said_to_be_slow(monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingError, match="no graphics card here; choose auto or cpu"):
        choose_device(TOY_NANO, "cuda")
    with pytest.raises(SettingError, match="64-bit numbers"):
        choose_device(TOY_NANO, "mps")
    with caplog.at_level(logging.WARNING):
        assert choose_device(TOY_NANO, "auto") == "cpu"
        assert not caplog.messages
        assert choose_device(MOSS_LOCAL, "cpu") == "cpu"
    assert "is slow on a processor" in caplog.messages[0]


def test_a_dtype_in_which_the_model_gives_no_numbers_is_not_used(tmp_path, caplog):
    files = local_files(weights_of_the_last_norm=1e38)
    needs = [MemoryNeed(device="cpu", dtype=dtype, num_bytes=1) for dtype in ("bfloat16", "float32")]
    engine = toy_engine(tmp_path / "good", replace(TOY_LOCAL, memory=tuple(needs)))
    assert engine.parts.dtype == "bfloat16"
    with caplog.at_level(logging.WARNING), pytest.raises(NotFinite, match="on cpu in bfloat16 or float32"):
        toy_engine(tmp_path / "bad", replace(TOY_LOCAL, memory=tuple(needs)), files)
    assert [message.split(" in ")[1] for message in caplog.messages] == ["bfloat16.", "float32."]


def test_memory_that_runs_out_is_a_sentence_and_the_next_request_works(tmp_path, monkeypatch):
    engine = toy_engine(tmp_path, TOY_NANO, nano_files(longest=2**52))
    codes = np.zeros((4, 10), dtype=np.int16)
    options = SamplingOptions(seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(moss_speech, "frame_budget", lambda text: 2**50)
        patch.setattr(moss_speech, "LONGEST_BUDGET", 2**50)
        with pytest.raises(OutOfMemory, match="memory on cpu did not suffice for what MOSS-TTS Nano was asked"):
            next(engine.speak(Utterance("Yes, you may."), codes, options, index=0))
    assert next(engine.speak(Utterance("Yes, you may."), codes, options, index=0)).shape == (2, 0)
    with pytest.raises(OutOfMemory):
        engine.encode(huge_clip())
    assert engine.encode(engine.prepare(Waveform(np.ones((1, 48_000), dtype=np.float32), 48_000))).codes.shape == (
        4,
        12,
    )


def huge_clip() -> Waveform:
    """A view that takes no memory, of more samples than any machine has memory for."""
    return Waveform(np.broadcast_to(np.zeros((1, 1), dtype=np.float32), (2, 2**50)), 48_000)


def test_another_fault_of_torch_is_no_lack_of_memory():
    with pytest.raises(RuntimeError, match="Sizes of tensors"), memory_suffices("Toy", "cpu"):
        torch.cat([torch.zeros(2, 2), torch.zeros(3, 3)])
