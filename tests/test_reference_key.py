"""The key names the content and everything that decides its codes, and nothing else."""

from dataclasses import fields, replace

import numpy as np
import pytest
from counting_engine import CODEC, encoded_file, other_codec, talk

from studio.audio import files
from studio.audio.waveform import Waveform
from studio.errors import SettingError
from studio.reference_key import cache_key, codec_key, trim_to_span

CLIP = talk()
WHOLE = (0, CLIP.num_samples)


def test_the_record_is_the_one_that_was_released() -> None:
    """A change here gives every saved voice another key: raise the record's version and say so in the changelog."""
    clip = Waveform(np.array([[0.0, 0.5, -0.25]], np.float32), 24_000)
    assert cache_key(clip, (0, 3), CODEC) == "7a977f46401cc944e4b9de19e3d99c731d27111130e8ebca8bb876729eb8a37d"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recipe", "mono-mean,floor/2"),
        ("codec_id", "counting2"),
        ("digest", "b" * 64),
        ("num_codebooks", 3),
        ("compute_dtype", "bfloat16"),
        ("attention_backend", "flash"),
    ],
)
def test_each_field_of_the_codec_changes_the_key(field: str, value: str | int) -> None:
    changed = other_codec(**{field: value})
    assert cache_key(CLIP, WHOLE, changed) != cache_key(CLIP, WHOLE, CODEC)
    assert codec_key(changed) != codec_key(CODEC)


def test_what_the_configuration_hash_covers_is_not_in_the_key_again() -> None:
    in_key = {"recipe", "codec_id", "digest", "num_codebooks", "compute_dtype", "attention_backend"}
    assert {field.name for field in fields(CODEC)} - in_key == {"sample_rate", "hop_length", "codebook_size"}


@pytest.mark.parametrize(
    "clip",
    [
        Waveform(np.nextafter(CLIP.samples, np.float32(1)), CLIP.sample_rate),
        Waveform(CLIP.samples, 24_001),
        Waveform(CLIP.samples.reshape(2, -1), CLIP.sample_rate),
        Waveform(CLIP.samples[:, :-1], CLIP.sample_rate),
        Waveform(np.pad(CLIP.samples, ((0, 0), (0, 1))), CLIP.sample_rate),
    ],
    ids=["last bits", "sample rate", "channels", "shorter", "longer"],
)
def test_each_property_of_the_clip_changes_the_key(clip: Waveform) -> None:
    assert cache_key(clip, (0, clip.num_samples), CODEC) != cache_key(CLIP, WHOLE, CODEC)


def test_start_and_end_of_a_trim_change_the_key() -> None:
    keys = {cache_key(CLIP, span, CODEC) for span in (WHOLE, (1, WHOLE[1]), (0, WHOLE[1] - 1), (1, WHOLE[1] - 1))}
    assert len(keys) == 4


def test_the_layout_in_memory_does_not_change_the_key() -> None:
    stereo = np.concatenate([CLIP.samples, -CLIP.samples])
    transposed = np.asfortranarray(stereo)
    assert cache_key(Waveform(transposed, 24_000), WHOLE, CODEC) == cache_key(Waveform(stereo, 24_000), WHOLE, CODEC)


def test_a_key_is_the_same_in_every_run() -> None:
    assert cache_key(CLIP, WHOLE, CODEC) == cache_key(talk(), WHOLE, replace(CODEC))


def test_equal_samples_of_every_format_have_one_key() -> None:
    # Rounding gives zeros of both signs, which a float file keeps.
    coarse = Waveform(np.round(CLIP.samples * 2**15).astype(np.float32) / np.float32(2**15), CLIP.sample_rate)
    kinds = [
        ("WAV", "PCM_16"),
        ("WAV", "PCM_24"),
        ("WAV", "PCM_32"),
        ("WAV", "FLOAT"),
        ("FLAC", "PCM_16"),
        ("FLAC", "PCM_24"),
    ]
    clips = [files.read(encoded_file(coarse, *kind), name=str(kind)) for kind in kinds]
    assert len({cache_key(clip, WHOLE, CODEC) for clip in clips}) == 1


def test_a_trim_in_seconds_is_a_span_of_samples() -> None:
    assert trim_to_span(CLIP, None) == WHOLE
    assert trim_to_span(CLIP, (0.5, 1.25)) == (12_000, 30_000)
    assert trim_to_span(CLIP, (0.0, 2.0)) == trim_to_span(CLIP, (0.0, 99.0)) == WHOLE


@pytest.mark.parametrize(
    "trim", [(1.0, 1.0), (1.5, 1.0), (-0.1, 1.0), (2.0, 3.0), (float("nan"), 1.0), (0.0, float("nan"))]
)
def test_a_trim_that_leaves_nothing_is_refused(trim: tuple[float, float]) -> None:
    with pytest.raises(SettingError, match="trim"):
        trim_to_span(CLIP, trim)
