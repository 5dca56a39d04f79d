import json
import re

import pytest
from moss_golden import GoldenFolder

from studio.engine.codec_config import StackConfig
from studio.engine.codec_json import codec_config, read_codec_config
from studio.errors import CheckpointError

V2, NANO, V1 = (GoldenFolder(name) for name in ("codec_v2", "codec_nano", "codec_v1"))
ALL = pytest.mark.parametrize("golden", [V2, NANO, V1], ids=lambda golden: golden.name)


def changed(fields, path, value):
    """A deep copy of `fields` with one place changed; a value of None removes it."""
    copy = json.loads(json.dumps(fields))
    place = copy
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("encoder_kwargs", 0, "module_type"), "Wavelet", "module_type is 'Wavelet'"),
        (("encoder_kwargs", 1, "gating"), "silu", "gating is 'silu'"),
        (("encoder_kwargs", 1, "norm"), "rms_norm", "norm is 'rms_norm'"),
        (("encoder_kwargs", 1, "causal"), False, "causal is False"),
        (("decoder_kwargs", 0, "positional_embedding"), "sin", "positional_embedding is 'sin'"),
        (("decoder_kwargs", 0, "qk_norm"), True, "nothing is known of qk_norm"),
        (("decoder_kwargs", 0, "num_heads"), 5, "do not make 5 heads"),
        (("decoder_kwargs", 0, "num_layers"), 0, "num_layers is 0"),
        (("decoder_kwargs", 0, "d_model"), "48", "d_model is '48'"),
        (("encoder_kwargs", 1, "context_duration"), 0.0001, "window below 1"),
        (("encoder_kwargs", 1, "input_dimension"), 13, "takes 13 features where 12 arrive"),
        (("encoder_kwargs", 5, "output_dimension"), 23, "the encoder ends with 23 features"),
        (("decoder_kwargs", 0, "output_dimension"), 63, "63 features cannot become 4 steps"),
        (("downsample_rate",), 50, "do not make a frame of 50 samples"),
        (("downsample_rate",), None, "does not state downsample_rate"),
        (("sample_rate",), 48_000, "sampling_rate is 600, sample_rate 48000"),
        (("enable_channel_interleave",), False, "enable_channel_interleave is False"),
        (("number_channels",), None, "model_type is 'moss-audio-tokenizer'"),
        (("quantizer_type",), "rvq", "quantizer_type is 'rvq'"),
        (("quantizer_kwargs", "quantizer_type"), "fsq", "quantizer_type is 'fsq'"),
        (("quantizer_kwargs", "output_dim"), 25, "output_dim is 25"),
        (("quantizer_kwargs", "codebook_size"), 1, "one entry a codebook"),
        (("quantizer_kwargs", "temperature"), 1.0, "nothing is known of temperature"),
        (("encoder_kwargs",), 3, "cannot be used"),
    ],
)
def test_a_configuration_that_is_not_computed_here_is_refused_by_name(path, value, reason):
    with pytest.raises(CheckpointError, match=re.escape(reason)):
        codec_config(changed(V2.config, path, value), source="here")


@pytest.mark.parametrize(("content", "reason"), [(None, "missing"), ("{", "damaged"), ("[]", "cannot be used")])
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=f"config.json .*{reason}"):
        read_codec_config(tmp_path)


@ALL
def test_a_decoder_that_is_stated_in_encoder_order_only_is_turned_round(golden):
    mirrored = changed(golden.config, ("decoder_kwargs",), None)
    assert codec_config(mirrored, source="here") == codec_config(golden.config, source="here")


def test_older_names_of_fields_mean_the_same():
    older = changed(changed(V2.config, ("number_channels",), None), ("channels_numbers",), 2)
    older = changed(changed(older, ("sampling_rate",), None), ("model_type",), "speech_tokenizer")
    assert codec_config(older, source="here") == codec_config(V2.config, source="here")


def test_a_stage_without_a_context_of_its_own_takes_the_common_one():
    common = changed(V2.config, ("causal_transformer_context_duration",), 0.24)
    config = codec_config(changed(common, ("encoder_kwargs", 5, "context_duration"), None), source="here")
    assert isinstance(config.encoder[5], StackConfig)
    assert config.encoder[5].window == 3


@pytest.mark.parametrize(("golden", "window"), [(V2, 7), (V1, 6)], ids=["v2", "v1"])
def test_the_first_version_cuts_a_window_off_where_later_ones_round(golden, window):
    config = codec_config(changed(golden.config, ("encoder_kwargs", 5, "context_duration"), 0.54), source="here")
    assert isinstance(config.encoder[5], StackConfig)
    assert config.encoder[5].window == window  # 12.5 Hz for 0.54 s is 6.75 steps
