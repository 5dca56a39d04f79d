"""What a config.json of a speech language model may say, and what is refused."""

import copy
import json

import pytest
from moss_golden import GoldenFolder

from studio.engine.backbone_config import GptShape, QwenShape
from studio.engine.backbone_json import read_speech_config, speech_config
from studio.errors import CheckpointError

LOCAL, NANO = GoldenFolder("local_v1_5"), GoldenFolder("nano_lm")


def changed(golden: GoldenFolder, **fields: object) -> dict:
    """The golden config with some fields replaced, or left out where they are None; `part__field` reaches inside."""
    config = copy.deepcopy(golden.config)
    for place, value in fields.items():
        *parts, name = place.split("__")
        inner = config
        for part in parts:
            inner = inner[part]
        inner.pop(name, None)
        if value is not None:
            inner[name] = value
    return config


def test_local_is_read_from_its_file() -> None:
    config = read_speech_config(LOCAL.path)
    assert config.backbone == QwenShape(
        width=48,
        num_layers=2,
        num_heads=4,
        num_key_heads=2,
        head_width=16,
        inner_width=96,
        norm_epsilon=1e-6,
        rotary_base=50_000.0,
    )
    assert config.depth == GptShape(
        width=48, num_layers=1, num_heads=4, inner_width=80, activation="silu", norm_epsilon=1e-6, rotary_base=2000.0
    )
    assert (config.vocabulary, config.num_codebooks, config.codebook_size, config.code_pad) == (112, 3, 32, 32)
    assert (config.sample_rate, config.longest, config.tokens.assistant_slot) == (600, 512, 9)


def test_nano_has_a_depth_transformer_of_its_own_number_of_layers() -> None:
    config = read_speech_config(NANO.path)
    assert isinstance(config.backbone, GptShape)
    assert (config.backbone.num_layers, config.depth.num_layers) == (2, 1)
    assert config.depth.activation == config.backbone.activation == "gelu_tanh"
    assert (config.sample_rate, config.longest) == (600, 1024)


@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_the_rotary_base_is_found_wherever_it_lies(place: str) -> None:
    nested = {"rope_type": "default", "rope_theta": 7000}
    fields = changed(LOCAL, qwen3_config__rope_theta=None, **{f"qwen3_config__{place}": nested})
    backbone = speech_config(fields, source="x").backbone
    assert backbone.rotary_base == 7000.0


def test_aliases_win_over_plain_names() -> None:
    fields = changed(LOCAL, audio_pad_code=40, audio_assistant_gen_slot_token_id=11)
    config = speech_config(fields, source="x")
    assert (config.code_pad, config.tokens.assistant_slot) == (40, 11)


def test_the_second_name_of_the_backbone_is_read_where_the_first_is_missing() -> None:
    assert speech_config(changed(LOCAL, qwen3_config=None), source="x") == read_speech_config(LOCAL.path)


@pytest.mark.parametrize(
    ("golden", "fields", "named"),
    [
        (LOCAL, {"model_type": "moss_tts_delay"}, "moss_tts_delay"),
        (LOCAL, {"local_text_head_mode": "full_vocab"}, "local_text_head_mode"),
        (LOCAL, {"local_text_head_mode": None}, "local_text_head_mode"),
        (LOCAL, {"qwen3_config__hidden_act": "gelu"}, "hidden_act"),
        (LOCAL, {"qwen3_config__attention_bias": True}, "attention_bias"),
        (LOCAL, {"qwen3_config__use_sliding_window": True}, "use_sliding_window"),
        (LOCAL, {"qwen3_config__rope_scaling": {"rope_type": "yarn", "factor": 4}}, "rope_scaling"),
        (LOCAL, {"qwen3_config__rope_theta": None}, "rope_theta"),
        (LOCAL, {"qwen3_config__hidden_size": 64}, "depth transformer is 48 wide"),
        (LOCAL, {"qwen3_config__num_key_value_heads": 3}, "key heads"),
        (LOCAL, {"audio_codebook_sizes": [32, 32, 16]}, "audio_codebook_sizes"),
        (LOCAL, {"audio_codebook_sizes": [32, 32]}, "audio_codebook_sizes"),
        (LOCAL, {"audio_pad_code": 31}, "code pad 31"),
        (LOCAL, {"audio_end_token_id": 112}, "vocabulary of 112"),
        (NANO, {"gpt2_config__position_embedding_type": "absolute"}, "position_embedding_type"),
        (NANO, {"gpt2_config__activation_function": "relu"}, "relu"),
        (NANO, {"gpt2_config__scale_attn_weights": False}, "scale_attn_weights"),
        (NANO, {"gpt2_config__n_head": 3}, "3 heads"),
        (NANO, {"gpt2_config__n_layer": True}, "n_layer"),
        (NANO, {"gpt2_config__rope_base": "big"}, "rope_base"),
        (NANO, {"n_vq": None}, "n_vq"),
        (NANO, {"im_end_token_id": -1}, "im_end_token_id"),
    ],
)
def test_what_is_not_computed_here_is_refused_by_name(golden: GoldenFolder, fields: dict, named: str) -> None:
    with pytest.raises(CheckpointError, match=named):
        speech_config(changed(golden, **fields), source="the folder")


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"model_type": "moss_tts_nano", "gpt2_config": 3}'])
def test_a_file_that_is_no_config_is_refused(content: str, tmp_path) -> None:
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError):
        read_speech_config(tmp_path)


def test_a_missing_file_is_refused(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="is missing"):
        read_speech_config(tmp_path)


def test_training_fields_change_nothing() -> None:
    fields = json.loads(json.dumps(NANO.config)) | {"some_training_field": 3}
    assert speech_config(fields, source="x") == read_speech_config(NANO.path)
