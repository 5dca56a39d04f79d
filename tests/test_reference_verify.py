"""Verify compares and changes nothing; refill replaces on request, leaves a tombstone, and is seen by every process."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counting_engine import ENVIRONMENT, CountingEngine, encoded_file, other_codec, talk
from counting_studio import Studio

from studio.audio.waveform import Waveform
from studio.errors import DegenerateCodes
from studio.reference_verify import count_differing, refill_voice, verify_cache, verify_voice
from studio.store.database import connection, transaction


class OtherCodes(CountingEngine):
    """The same codec on a device that rounds the first code of every frame otherwise."""

    def codes(self, prepared: Waveform) -> np.ndarray:
        codes = super().codes(prepared)
        codes[0] ^= 1
        return codes


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


def rounding_otherwise(studio: Studio) -> Studio:
    """The studio started again on another machine."""
    again = Studio(studio.folder)
    again.desk.engine.__class__ = OtherCodes
    return again


def stored(studio: Studio) -> list[tuple[object, ...]]:
    """Every row that stands for a value, a count or a memory of one."""
    studio.cache.counters()
    with connection(studio.folder / "studio.db") as db:
        return [
            tuple(row)
            for table in ("codes", "sources", "tombstones", "counters", "clip_codes", "clips")
            for row in db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()  # noqa: S608
        ]


def test_an_entry_that_an_encode_meets_passes_and_nothing_is_changed(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    before = stored(studio)
    again = Studio(studio.folder)
    verification = verify_voice(again.desk, again.voices, voice)
    assert (verification.key, verification.name) == (voice.key, "Ada")
    assert (verification.differing, verification.num_codes, verification.passed) == (0, 100, True)
    assert verification.digest == verification.digest_now == voice.codes_digest
    assert verification.elsewhere == ()
    assert studio.engine.encodes == 2
    assert stored(again) == before


def test_codes_that_differ_are_counted_and_stay_as_they_are(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    before = stored(studio)
    again = rounding_otherwise(studio)
    verification = verify_voice(again.desk, again.voices, voice)
    assert (verification.differing, verification.passed) == (25, False)
    assert verification.digest == voice.codes_digest != verification.digest_now
    assert stored(again) == before
    assert again.desk.from_voice(voice, again.voices).digest == voice.codes_digest


def test_where_it_was_filled_is_compared_with_where_it_runs(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    there = replace(ENVIRONMENT, torch_version="9.9", device="cuda", cuda_version="13.0")
    monkeypatch.setattr("counting_engine.ENVIRONMENT", there)
    verification = verify_voice(studio.desk, studio.voices, voice)
    assert verification.elsewhere == ("device cpu, here cuda", "torch 0.0, here 9.9", "CUDA None, here 13.0")
    assert verification.passed


def test_an_entry_whose_clip_was_not_kept_is_not_checkable_and_no_pass(studio: Studio) -> None:
    studio.desk.from_file(encoded_file(talk(seed=3)), "a.wav")
    [verification] = verify_cache(studio.desk, studio.voices)
    assert (verification.differing, verification.passed) == (None, False)
    assert "not kept" in verification.not_checkable
    assert studio.engine.encodes == 1


def test_a_clip_file_that_is_gone_or_damaged_is_not_checkable(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    (studio.folder / "clips" / voice.clip_id).write_bytes(encoded_file(talk(seed=3)))
    verification = verify_voice(studio.desk, studio.voices, voice)
    assert "damaged" in verification.not_checkable
    assert not verification.passed


def test_the_whole_cache_is_verified_entry_by_entry(studio: Studio) -> None:
    ada = studio.save_voice(encoded_file(talk()))
    studio.save_voice(encoded_file(talk(seed=3)), name="Ben", trim=(0.25, 1.75))
    studio.desk.from_file(encoded_file(talk(3.0)), "a.wav")
    Studio(studio.folder, codec=other_codec(digest="b" * 64)).desk.from_file(encoded_file(talk()), "a.wav")
    with transaction(studio.folder / "studio.db") as db:
        db.execute("UPDATE codes SET codes = CAST(x'ff03' || substr(codes, 3) AS BLOB) WHERE key = ?", [ada.key])
    again = Studio(studio.folder)
    before = stored(again)
    found = {verification.name: verification for verification in verify_cache(again.desk, again.voices)}
    reasons = [verification.not_checkable for verification in verify_cache(again.desk, again.voices)]
    assert found["Ben"].passed
    assert found["Ada"].damaged
    assert not found["Ada"].passed
    assert len([reason for reason in reasons if "not kept" in reason]) == 1
    assert len([reason for reason in reasons if "another codec" in reason]) == 1
    assert stored(again) == before


def test_a_refill_replaces_and_leaves_a_tombstone_of_what_was_there(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    studio.cache.close()
    again = rounding_otherwise(studio)
    refill = refill_voice(again.desk, again.voices, voice)
    assert refill.changed
    assert (refill.key, refill.digest_before) == (voice.key, voice.codes_digest)
    renewed = again.voices.get("Ada")
    assert (renewed.key, renewed.codes_digest) == (voice.key, refill.digest)
    assert again.desk.from_voice(renewed, again.voices).digest == refill.digest != voice.codes_digest
    with connection(studio.folder / "studio.db") as db:
        [(key, digest, provenance)] = db.execute("SELECT key, digest, provenance FROM tombstones").fetchall()
    assert (key, digest) == (voice.key, voice.codes_digest)
    assert '"codec_id": "counting"' in provenance
    counters = again.cache.counters()
    assert (counters["changes"], counters["fills"], counters["misses"], counters["repairs"]) == (1, 2, 1, 0)


def test_a_refill_that_gives_the_same_codes_is_no_change(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()), trim=(0.0, 1.75))
    refill = refill_voice(studio.desk, studio.voices, voice)
    assert not refill.changed
    assert refill.digest == voice.codes_digest
    assert studio.cache.counters()["changes"] == 0


def test_a_refill_that_fails_leaves_the_codes_that_are_there(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    monkeypatch.setattr(studio.engine, "codes", lambda _: np.zeros((4, 25), np.int16))
    with pytest.raises(DegenerateCodes):
        refill_voice(studio.desk, studio.voices, voice)
    assert studio.desk.from_voice(voice, studio.voices).digest == voice.codes_digest
    assert studio.cache.counters()["failures"] == 1


def test_a_refill_of_a_voice_without_codes_fills_it(studio: Studio) -> None:
    old = studio.save_voice(encoded_file(talk()))
    new = Studio(studio.folder, codec=other_codec(digest="b" * 64))
    refill = refill_voice(new.desk, new.voices, new.voices.get("Ada"))
    assert not refill.changed
    assert new.voices.get("Ada").filled
    assert studio.voices.get("Ada").key == old.key


def refill_elsewhere(folder: Path) -> None:
    other = rounding_otherwise(Studio(folder))
    refill_voice(other.desk, other.voices, other.voices.get("Ada"))


def test_a_refill_in_another_process_is_seen_by_a_memory_that_holds_the_old_codes(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    assert studio.desk.from_voice(voice, studio.voices).digest == voice.codes_digest
    process = multiprocessing.get_context("spawn").Process(target=refill_elsewhere, args=[studio.folder])
    process.start()
    process.join(120)
    assert process.exitcode == 0
    seen = studio.desk.from_voice(studio.voices.get("Ada"), studio.voices)
    assert seen.digest != voice.codes_digest
    assert np.array_equal(seen.codes[0], studio.engine.codes(talk())[0] ^ 1)
    assert studio.cache.counters()["hits_memory"] == 1


def test_codes_of_other_shapes_all_differ() -> None:
    assert count_differing(np.zeros((4, 6), np.int16), np.zeros((4, 7), np.int16)) == 28
    assert count_differing(np.arange(4).reshape(2, 2), np.array([[0, 1], [9, 3]])) == 1
