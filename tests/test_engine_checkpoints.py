import json

import pytest
import torch
from toy_voice import PHONEMES, toy_codec, toy_language

from studio.engine.checkpoints import CODEC_FILE, LANGUAGE_FILE, Recommended, load, save
from studio.errors import WeightsError


@pytest.fixture
def folder(tmp_path):
    save(tmp_path, toy_codec(), toy_language(), phonemes=PHONEMES, recommended=Recommended(top_k=7))
    return tmp_path


def test_a_saved_model_loads_with_its_vocabulary_settings_and_float16_weights(folder):
    model = load(folder)
    assert model.phonemes == PHONEMES
    assert model.recommended == Recommended(top_k=7)
    for loaded, made in ((model.codec, toy_codec()), (model.language, toy_language())):
        for name, value in made.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], value.half().float()), name
    assert not model.codec.training
    assert not model.language.training


def test_other_codec_weights_are_another_codec_and_other_language_weights_are_not(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    language = toy_language()
    with torch.no_grad():
        language.begin.add_(1)
    save(other, toy_codec(), language, phonemes=PHONEMES, recommended=Recommended(top_k=7))
    assert load(other).codec_digest == load(folder).codec_digest
    assert load(other).revision != load(folder).revision
    codec = toy_codec()
    codec.quantizer.codebooks.add_(1)
    save(other, codec, language, phonemes=PHONEMES, recommended=Recommended())
    assert load(other).codec_digest != load(folder).codec_digest


@pytest.mark.parametrize("name", [CODEC_FILE, LANGUAGE_FILE, "config.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=f"{name} is missing"):
        load(folder)


@pytest.mark.parametrize("name", [CODEC_FILE, LANGUAGE_FILE])
def test_a_changed_byte_is_noticed(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-3] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(WeightsError, match=f"{name} is damaged"):
        load(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "format is 2"),
        ({"codec": {"width": 64}}, "do not fit"),
        ({"language": {"wings": 2}}, "do not fit"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, change, reason):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(WeightsError, match=reason):
        load(folder)


def test_a_config_that_is_no_json_is_refused(folder):
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(WeightsError, match="damaged"):
        load(folder)
