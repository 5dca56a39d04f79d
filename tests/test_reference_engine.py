"""The desk with the embedded voice's real engine at toy size: what is stored is its solo encode, from its lane."""

from pathlib import Path

import numpy as np
import pytest
import torch
from counting_engine import encoded_file, talk
from toy_voice import toy_voice

from studio.audio import files
from studio.engine.embedded import RECIPE, EmbeddedEngine
from studio.reference import ReferenceDesk
from studio.store.code_cache import CodeCache


@pytest.fixture(scope="module")
def engine() -> EmbeddedEngine:
    voice = toy_voice()
    with torch.no_grad():
        # Random weights give one latent for all sound; spread it, so that frames have codes of their own.
        voice.codec.encoder.latent.weight *= 30
    return EmbeddedEngine(voice)


def desk(engine: EmbeddedEngine, folder: Path) -> ReferenceDesk:
    return ReferenceDesk(engine, CodeCache(folder / "studio.db"), folder / "locks")


def test_what_is_stored_is_the_solo_encode_of_the_prepared_clip(engine: EmbeddedEngine, tmp_path: Path) -> None:
    reference = desk(engine, tmp_path).from_file(encoded_file(talk(sample_rate=44_100)), "a.wav")
    clip = files.read(encoded_file(talk(sample_rate=44_100)), name="a.wav")
    assert np.array_equal(reference.codes, engine.encode(engine.prepare(clip)).codes)
    assert reference.codes.shape == (3, 25)


def test_wav_copy_and_flac_are_a_fill_and_two_hits_also_after_a_restart(engine: EmbeddedEngine, tmp_path: Path) -> None:
    clip = encoded_file(talk(sample_rate=48_000))
    first = desk(engine, tmp_path)
    references = [first.from_file(clip, "a.wav"), first.from_file(clip, "copy of a.wav")]
    references.append(desk(engine, tmp_path).from_file(encoded_file(talk(sample_rate=48_000), "FLAC"), "a.flac"))
    assert [reference.outcome for reference in references] == ["fill", "hit", "hit"]
    assert len({(reference.key, reference.digest) for reference in references}) == 1


def test_the_lanes_one_thread_is_read_back_into_the_provenance(engine: EmbeddedEngine, tmp_path: Path) -> None:
    provenance = desk(engine, tmp_path).from_clip(talk()).provenance
    assert provenance.num_threads == 1
    assert provenance.torch_version == torch.__version__
    assert (provenance.device, provenance.recipe) == ("cpu", RECIPE)
