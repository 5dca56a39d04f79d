"""The reference desk in one process: one solo encode a clip, known again by its content, kept only when it is good."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from counting_engine import encoded_file, other_codec, talk
from counting_studio import Studio

from studio.audio import files
from studio.audio.waveform import Waveform
from studio.errors import (
    DegenerateCodes,
    EmptyClip,
    MissingClip,
    NoSpeech,
    ReferenceTooLong,
    ReferenceTooShort,
    SettingError,
    SilentClip,
    StudioError,
    UnreadableClip,
)
from studio.store.database import transaction
from studio.store.voices import VoiceLibrary


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


def forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the clip was decoded or checked again")

    monkeypatch.setattr("studio.audio.files.read", refuse)
    monkeypatch.setattr("studio.reference.check_reference", refuse)


def test_the_codes_are_those_of_the_clip_alone(studio: Studio) -> None:
    reference = studio.desk.from_clip(talk())
    assert np.array_equal(reference.codes, studio.engine.codes(studio.engine.prepare(talk())))
    assert reference.codes.dtype == np.int16
    assert (reference.outcome, reference.duration) == ("fill", 2.0)


def test_a_24_bit_wav_a_copy_under_another_name_and_a_flac_are_one_entry(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "one.wav").write_bytes(encoded_file(talk()))
    (tmp_path / "two.wav").write_bytes(encoded_file(talk()))
    (tmp_path / "three.flac").write_bytes(encoded_file(talk(), "FLAC"))
    references = [studio.desk.from_file(tmp_path / name, name) for name in ("one.wav", "two.wav", "three.flac")]
    assert [reference.outcome for reference in references] == ["fill", "hit", "hit"]
    assert len({(reference.key, reference.digest) for reference in references}) == 1
    assert studio.engine.encodes == 1
    assert studio.stored() == [1, 2, 0]


def test_other_sound_under_the_same_name_is_another_entry(studio: Studio, tmp_path: Path) -> None:
    clip = tmp_path / "clip.wav"
    clip.write_bytes(encoded_file(talk(seed=1)))
    first = studio.desk.from_file(clip, "clip.wav")
    clip.write_bytes(encoded_file(talk(seed=2)))
    second = studio.desk.from_file(clip, "clip.wav")
    assert first.key != second.key
    assert first.digest != second.digest
    assert (second.outcome, studio.engine.encodes) == ("fill", 2)


def test_known_bytes_are_neither_decoded_nor_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Studio(tmp_path).desk.from_file(encoded_file(talk()), "a.wav")
    forbid_decoding(monkeypatch)
    again = Studio(tmp_path).desk.from_file(encoded_file(talk()), "b.wav")
    assert (again.outcome, again.key, again.encode_ms) == ("hit", first.key, first.encode_ms)
    assert again.encode_ms > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("recipe", "mono-mean,floor/2"),
        ("digest", "b" * 64),
        ("num_codebooks", 3),
        ("compute_dtype", "bfloat16"),
        ("attention_backend", "flash"),
    ],
)
def test_another_recipe_or_codec_fills_anew_also_for_known_bytes(tmp_path: Path, field: str, value: str | int) -> None:
    first = Studio(tmp_path).desk.from_file(encoded_file(talk()), "a.wav")
    changed = Studio(tmp_path, codec=other_codec(**{field: value}))
    second = changed.desk.from_file(encoded_file(talk()), "a.wav")
    assert second.outcome == "fill"
    assert second.key != first.key


def test_a_trim_encodes_that_part_under_its_own_key(studio: Studio) -> None:
    clip = encoded_file(talk(4.0))
    whole = studio.desk.from_file(clip, "a.wav")
    part = studio.desk.from_file(clip, "a.wav", trim=(1.0, 3.0))
    assert part.key != whole.key
    assert part.duration == 2.0
    assert np.array_equal(part.codes, studio.engine.codes(talk(4.0).slice(24_000, 72_000)))
    assert studio.desk.from_file(clip, "a.wav", trim=(1, 3)).outcome == "hit"
    assert studio.desk.from_clip(talk(4.0), trim=(1.0, 3.0)).key == part.key
    assert studio.engine.encodes == 2


def test_a_long_clip_can_be_used_by_a_trimmed_part(studio: Studio) -> None:
    clip = encoded_file(talk(40.0))
    with pytest.raises(ReferenceTooLong, match="30"):
        studio.desk.from_file(clip, "long.wav")
    assert studio.desk.from_file(clip, "long.wav", trim=(12.0, 16.0)).duration == pytest.approx(4.0)


def silence(duration: float, level: float = 0.0) -> bytes:
    noise = np.random.default_rng(0).standard_normal((1, round(duration * 24_000))) * level
    return encoded_file(Waveform(noise.astype(np.float32), 24_000))


@pytest.mark.parametrize(
    ("clip", "error"),
    [
        (b"", EmptyClip),
        (b"dear diary, " * 999, UnreadableClip),
        (silence(0.0), EmptyClip),
        (silence(0.05), ReferenceTooShort),
        (silence(2.0), SilentClip),
        (silence(2.0, 0.1), NoSpeech),
        (silence(31.0, 0.1), ReferenceTooLong),
        (Path("/nowhere/clip.wav"), MissingClip),
        (Path("/dev/zero"), UnreadableClip),
        (Path("/tmp"), UnreadableClip),  # noqa: S108
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "clip",
)
def test_a_clip_that_cannot_be_used_is_a_sentence_and_nothing_is_written(
    studio: Studio, clip: bytes | Path, error: type[StudioError]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            studio.desk.from_file(clip, "clip.wav")
    assert studio.stored() == [0, 0, 0]
    assert studio.engine.encodes == 0
    assert not (studio.folder / "locks").exists()


def test_a_file_too_large_to_hold_is_left_to_its_decoder(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.reference.LARGEST_UPLOAD", 1000)
    (tmp_path / "large.wav").write_bytes(encoded_file(talk()))
    outcomes = [studio.desk.from_file(tmp_path / "large.wav", "large.wav").outcome for _ in range(2)]
    assert outcomes == ["fill", "hit"]
    assert studio.stored() == [1, 0, 0]


def test_a_trim_that_leaves_nothing_is_refused(studio: Studio) -> None:
    with pytest.raises(SettingError, match=r"2\.00 s long"):
        studio.desk.from_file(encoded_file(talk()), "a.wav", trim=(5.0, 6.0))


def test_where_it_was_filled_is_recorded(studio: Studio) -> None:
    before = time.time()
    provenance = studio.desk.from_clip(talk()).provenance
    assert (provenance.device, provenance.torch_version, provenance.cuda_version) == ("cpu", "0.0", None)
    assert (provenance.num_threads, provenance.codec_id, provenance.recipe) == (1, "counting", "mono-mean,floor/1")
    assert before <= provenance.filled <= time.time()
    assert provenance.encode_seconds > 0
    assert studio.desk.from_clip(talk()).provenance == provenance


def test_times_are_measured(tmp_path: Path) -> None:
    studio = Studio(tmp_path, delay=0.05)
    fill, hit = studio.desk.from_file(encoded_file(talk()), "a"), studio.desk.from_file(encoded_file(talk()), "a")
    assert fill.encode_ms == hit.encode_ms >= 50
    assert 0 < hit.lookup_ms < 50
    assert 0 < fill.lookup_ms < 50
    assert fill.identify_ms > 0


def test_callers_cannot_write_into_what_they_get(studio: Studio) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            studio.desk.from_clip(talk()).codes[:] = 0


def test_sixteen_threads_cost_one_encode_and_get_one_value(tmp_path: Path) -> None:
    studio = Studio(tmp_path, delay=0.1)
    ready = threading.Barrier(16)

    def ask(number: int):
        ready.wait(10)
        return studio.desk.from_file(encoded_file(talk(), *(("FLAC",) if number % 2 else ())), f"clip {number}")

    with ThreadPoolExecutor(16) as callers:
        references = list(callers.map(ask, range(16)))
    assert studio.engine.encodes == 1
    assert len({reference.digest for reference in references}) == 1
    assert [reference.outcome for reference in references].count("fill") == 1
    counters = studio.cache.counters()
    assert (counters["fills"], counters["misses"], counters["failures"]) == (1, 1, 0)
    assert counters["merged"] + counters["hits_memory"] + counters["hits_disk"] == 15


def test_no_lock_on_the_database_is_held_during_an_encode(studio: Studio) -> None:
    def write() -> None:
        with transaction(studio.folder / "studio.db") as db:
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("INSERT INTO counters (name, value) VALUES ('evictions', 1)")

    studio.engine.before_encode = write
    assert studio.desk.from_clip(talk()).outcome == "fill"


def test_a_failed_encode_leaves_nothing_and_the_next_one_succeeds(studio: Studio) -> None:
    def fail() -> None:
        raise StudioError("The device ran out of memory.")

    studio.engine.before_encode = fail
    for _ in range(2):
        with pytest.raises(StudioError, match="out of memory"):
            studio.desk.from_file(encoded_file(talk()), "a.wav")
    assert studio.stored() == [0, 0, 0]
    studio.engine.before_encode = lambda: None
    assert studio.desk.from_file(encoded_file(talk()), "a.wav").outcome == "fill"
    counters = studio.cache.counters()
    assert (counters["misses"], counters["failures"], counters["fills"]) == (3, 2, 1)


def test_a_failed_encode_fails_for_all_who_waited_and_for_nobody_after(studio: Studio) -> None:
    gate = threading.Event()

    def fail() -> None:
        assert gate.wait(10)
        raise RuntimeError("kernel broke")

    studio.engine.before_encode = fail
    with ThreadPoolExecutor(4) as callers:
        answers = [callers.submit(studio.desk.from_clip, talk()) for _ in range(4)]
        time.sleep(0.3)
        gate.set()
        errors = [answer.exception() for answer in answers]
    assert [str(error) for error in errors] == ["kernel broke"] * 4
    assert len({id(error) for error in errors}) == 4
    studio.engine.before_encode = lambda: None
    assert studio.desk.from_clip(talk()).outcome == "fill"


def test_who_gives_up_waiting_does_not_stop_the_encode(studio: Studio) -> None:
    gate = threading.Event()
    studio.engine.before_encode = lambda: assert_set(gate)
    with ThreadPoolExecutor(1) as callers:
        patient = callers.submit(studio.desk.from_clip, talk())
        for _ in range(2):
            with pytest.raises(TimeoutError):
                studio.desk.from_clip(talk(), timeout=0.1)
        gate.set()
        assert patient.result(10).digest
    assert studio.engine.encodes == 1
    assert studio.desk.from_clip(talk(), timeout=0.1).outcome == "hit"


def assert_set(gate: threading.Event) -> None:
    assert gate.wait(10)


def test_degenerate_codes_are_refused_and_not_stored(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(studio.engine, "codes", lambda _: np.zeros((4, 25), np.int16))
        with pytest.raises(DegenerateCodes, match="nothing was stored"):
            studio.desk.from_file(encoded_file(talk()), "a.wav")
    assert studio.stored() == [0, 0, 0]
    assert studio.desk.from_file(encoded_file(talk()), "a.wav").outcome == "fill"


def test_a_saved_voice_goes_by_its_key_alone_restart_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = Studio(tmp_path).save_voice(encoded_file(talk()))
    again = Studio(tmp_path)
    monkeypatch.setattr(files, "read", None)
    monkeypatch.setattr(again.voices, "clip_bytes", None)
    reference = again.desk.from_voice(again.voices.get("Ada"), again.voices)
    assert (reference.outcome, reference.key, reference.digest) == ("hit", voice.key, voice.codes_digest)
    assert reference.identify_ms == 0
    assert again.engine.encodes == 1


@pytest.mark.parametrize("trim", [None, (0.25, 1.75)])
def test_a_voice_whose_entry_is_lost_is_filled_from_its_kept_clip(
    tmp_path: Path, trim: tuple[float, float] | None
) -> None:
    voice = Studio(tmp_path).save_voice(encoded_file(talk(seed=4)), trim=trim)
    with transaction(tmp_path / "studio.db") as db:
        db.execute("DELETE FROM codes")
    again = Studio(tmp_path)
    reference = again.desk.from_voice(voice, again.voices)
    assert (reference.outcome, reference.key, reference.digest) == ("fill", voice.key, voice.codes_digest)


def test_a_damaged_entry_is_filled_again_and_counted_as_repaired(tmp_path: Path) -> None:
    voice = Studio(tmp_path).save_voice(encoded_file(talk()))
    with transaction(tmp_path / "studio.db") as db:
        db.execute("UPDATE codes SET codes = CAST(x'0300' || substr(codes, 3) AS BLOB)")
    again = Studio(tmp_path)
    reference = again.desk.from_voice(voice, again.voices)
    assert (reference.outcome, reference.digest) == ("fill", voice.codes_digest)
    assert again.cache.counters()["repairs"] == 1
    assert Studio(tmp_path).desk.from_file(encoded_file(talk()), "a.wav").outcome == "hit"


def test_a_new_codec_fills_voices_from_their_kept_clips_and_the_old_keys_stay(tmp_path: Path) -> None:
    old = Studio(tmp_path)
    voice = old.save_voice(encoded_file(talk()))
    new = Studio(tmp_path, codec=other_codec(digest="b" * 64))
    assert new.voices.get("Ada").key is None
    assert new.desk.from_voice(new.voices.get("Ada"), new.voices).outcome == "fill"
    renewed = new.voices.get("Ada")
    assert renewed.filled
    assert renewed.key not in (None, voice.key)
    assert new.desk.from_voice(renewed, new.voices).outcome == "hit"
    assert old.desk.from_voice(old.voices.get("Ada"), old.voices).key == voice.key


def test_a_clip_that_decodes_to_other_samples_now_is_stored_under_their_key(
    studio: Studio, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    with transaction(studio.folder / "studio.db") as db:
        db.execute("DELETE FROM codes")
    again = Studio(studio.folder)
    monkeypatch.setattr(files, "read", lambda *_, **__: talk(seed=5))
    with caplog.at_level(logging.WARNING):
        reference = again.desk.from_voice(voice, again.voices)
    assert reference.key != voice.key
    assert again.voices.get("Ada").key == reference.key
    assert "has" in caplog.text


def test_a_library_of_another_codec_is_a_bug(studio: Studio) -> None:
    voice = studio.save_voice(encoded_file(talk()))
    other = VoiceLibrary(studio.folder / "studio.db", studio.folder / "clips", codec="other")
    with pytest.raises(ValueError, match="another codec"):
        studio.desk.from_voice(voice, other)
