"""Read the config.json of a released MOSS speech language model: Local v1.5 and Nano.

Refuses, by a CheckpointError that names the field, whatever the networks here do not compute: the weights might fit
all the same, and the speech would be noise. Nothing is taken from defaults; released files state what matters.
"""

from pathlib import Path

from studio.engine.backbone_config import Activation, ControlTokens, GptShape, QwenShape, SpeechModelConfig
from studio.engine.released_config import Fields, described, expect, read_fields, size

_ACTIVATIONS: dict[str, Activation] = {"silu": "silu", "gelu_new": "gelu_tanh"}
_ALIASES = {
    "audio_pad_token_id": "audio_pad_code",
    "audio_assistant_slot_token_id": "audio_assistant_gen_slot_token_id",
}
"""Fields with a second name; the released code lets the second one win."""


def read_speech_config(folder: Path) -> SpeechModelConfig:
    """The model that `folder/config.json` describes. Raises CheckpointError where there is none that can be used."""
    return speech_config(read_fields(folder), source=str(folder))


def speech_config(fields: Fields, *, source: str) -> SpeechModelConfig:
    """The model that the fields of a config.json describe; `source` names it in a CheckpointError."""
    return described(fields, _speech, source=source)


def _speech(fields: Fields) -> SpeechModelConfig:
    if fields["model_type"] == "moss_tts_local":
        return _local(fields)
    if fields["model_type"] == "moss_tts_nano":
        return _nano(fields)
    raise ValueError(f"model_type is {fields['model_type']!r}, which is neither Local nor Nano")


def _local(fields: Fields) -> SpeechModelConfig:
    expect(fields, "local_text_head_mode", "binary")
    qwen = fields["qwen3_config"] if "qwen3_config" in fields else fields["language_config"]
    gpt = fields["gpt2_config"]
    depth = _gpt(gpt, size(fields, "local_transformer_layers") if "local_transformer_layers" in fields else None)
    return _config(
        fields,
        backbone=_qwen(qwen),
        depth=depth,
        vocabulary=size(qwen, "vocab_size"),
        longest=size(qwen, "max_position_embeddings"),
        sample_rate=size(fields, "sampling_rate"),
    )


def _nano(fields: Fields) -> SpeechModelConfig:
    gpt = fields["gpt2_config"]
    return _config(
        fields,
        backbone=_gpt(gpt, None),
        depth=_gpt(gpt, size(fields, "local_transformer_layers")),
        vocabulary=size(gpt, "vocab_size"),
        longest=size(gpt, "n_positions"),
        sample_rate=size(fields, "audio_tokenizer_sample_rate"),
    )


def _config(
    fields: Fields,
    *,
    backbone: QwenShape | GptShape,
    depth: GptShape,
    vocabulary: int,
    longest: int,
    sample_rate: int,
) -> SpeechModelConfig:
    return SpeechModelConfig(
        backbone=backbone,
        depth=depth,
        vocabulary=vocabulary,
        num_codebooks=size(fields, "n_vq"),
        codebook_size=_codebook_size(fields),
        code_pad=_id(fields, "audio_pad_token_id"),
        longest=longest,
        sample_rate=sample_rate,
        tokens=ControlTokens(
            pad=_id(fields, "pad_token_id"),
            im_start=_id(fields, "im_start_token_id"),
            im_end=_id(fields, "im_end_token_id"),
            audio_start=_id(fields, "audio_start_token_id"),
            audio_end=_id(fields, "audio_end_token_id"),
            user_slot=_id(fields, "audio_user_slot_token_id"),
            assistant_slot=_id(fields, "audio_assistant_slot_token_id"),
        ),
    )


def _qwen(fields: Fields) -> QwenShape:
    expect(fields, "hidden_act", "silu")
    expect(fields, "attention_bias", False)
    if fields.get("use_sliding_window"):
        raise ValueError("use_sliding_window is set, and attention here sees everything")
    return QwenShape(
        width=size(fields, "hidden_size"),
        num_layers=size(fields, "num_hidden_layers"),
        num_heads=size(fields, "num_attention_heads"),
        num_key_heads=size(fields, "num_key_value_heads"),
        head_width=size(fields, "head_dim"),
        inner_width=size(fields, "intermediate_size"),
        norm_epsilon=_positive(fields, "rms_norm_eps"),
        rotary_base=_qwen_rotary_base(fields),
    )


def _qwen_rotary_base(fields: Fields) -> float:
    """The base has lain in three places over time; a scaling beside it would change the angles and is refused."""
    for name in ("rope_scaling", "rope_parameters"):
        nested = fields.get(name) or {}
        if nested.get("rope_type", nested.get("type", "default")) != "default":
            raise ValueError(f"{name} is {nested!r}, and only unscaled positions are known")
        if "rope_theta" in nested and "rope_theta" not in fields:
            return _positive(nested, "rope_theta")
    return _positive(fields, "rope_theta")


def _gpt(fields: Fields, num_layers: int | None) -> GptShape:
    """`num_layers` where the depth transformer, which shares the other fields, has a number of its own."""
    expect(fields, "position_embedding_type", "rope")
    if not fields.get("scale_attn_weights", True):
        raise ValueError("scale_attn_weights is off, and attention here is always scaled")
    activation = fields["activation_function"]
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation_function is {activation!r}, and only {', '.join(_ACTIVATIONS)} are known")
    return GptShape(
        width=size(fields, "n_embd"),
        num_layers=size(fields, "n_layer") if num_layers is None else num_layers,
        num_heads=size(fields, "n_head"),
        inner_width=size(fields, "n_inner"),
        activation=_ACTIVATIONS[activation],
        norm_epsilon=_positive(fields, "layer_norm_epsilon"),
        rotary_base=_positive(fields, "rope_base"),
    )


def _codebook_size(fields: Fields) -> int:
    sizes = set(fields["audio_codebook_sizes"])
    if sizes != {size(fields, "audio_vocab_size")} or len(fields["audio_codebook_sizes"]) != fields["n_vq"]:
        raise ValueError(f"audio_codebook_sizes is {fields['audio_codebook_sizes']!r}, not n_vq times audio_vocab_size")
    return size(fields, "audio_vocab_size")


def _id(fields: Fields, name: str) -> int:
    alias = _ALIASES.get(name, name)
    value = fields[alias] if alias in fields else fields[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value


def _positive(fields: Fields, name: str) -> float:
    if type(fields[name]) not in (int, float) or not fields[name] > 0:
        raise ValueError(f"{name} is {fields[name]!r}")
    return float(fields[name])
