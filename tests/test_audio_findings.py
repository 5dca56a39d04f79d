"""What is found in a clip is what was put into it: noise, hum, clipping, cut words, pauses, channels that disagree."""

import time
from pathlib import Path

import numpy as np
import pytest

from studio.audio.examination import examine
from studio.audio.files import read, read_clip
from studio.audio.findings import LONGEST_MEASURED, Findings, measure
from studio.audio.resample import resample
from studio.audio.sound_format import DecodedClip, SoundFormat
from studio.audio.verdicts import Verdict, judge
from studio.audio.waveform import SILENCE_DBFS, Waveform, level_dbfs
from studio.settings import assets_dir

RATE = 24_000
CLIPS = sorted((Path(__file__).parent / "clips").glob("*.flac"))
"""Clips of the figures below, which stay as they are whatever clips the built-in voices have."""
WAV = SoundFormat(container="WAV", codec="PCM_16", sample_rate=RATE, channels=1, bit_depth=16)


@pytest.fixture(params=CLIPS, ids=lambda path: path.stem)
def speech(request: pytest.FixtureRequest) -> Waveform:
    return read(request.param, name=request.param.name)


@pytest.fixture
def robin() -> Waveform:
    """Two sentences, with pauses at 2.48 to 2.66 s and 4.21 to 4.43 s."""
    return read(Path(__file__).parent / "clips" / "robin.flac", name="robin")


def sound(samples: np.ndarray, rate: int = RATE) -> Waveform:
    return Waveform(np.atleast_2d(samples).astype(np.float32), rate)


def verdicts(waveform: Waveform) -> dict[str, Verdict]:
    return {verdict.kind: verdict for verdict in judge(measure(waveform))}


def with_silence(clip: Waveform, before: float, after: float) -> Waveform:
    widths = ((0, 0), (round(before * clip.sample_rate), round(after * clip.sample_rate)))
    return sound(np.pad(clip.samples, widths), clip.sample_rate)


def with_noise(clip: Waveform, below_speech: float) -> Waveform:
    """White noise so many dB under the speech, in the band up to 8 kHz that is measured."""
    speech_level = measure(clip).speech_level
    noise = np.random.default_rng(3).normal(size=clip.samples.shape) * 10 ** ((speech_level - below_speech) / 20)
    return sound(clip.samples + noise * np.sqrt(clip.sample_rate / 16_000), clip.sample_rate)


@pytest.mark.parametrize("path", sorted((assets_dir() / "voices").glob("*.flac")), ids=lambda path: path.stem)
def test_a_built_in_clip_is_good(path: Path) -> None:
    (verdict,) = judge(measure(read(path, name=path.stem)))
    assert (verdict.kind, verdict.severity) == ("good", "ok")


def test_a_good_clip_is_good(speech: Waveform) -> None:
    findings = measure(speech)
    (verdict,) = judge(findings)
    assert (verdict.kind, verdict.severity) == ("good", "ok")
    assert findings.speech_to_noise > 35
    assert findings.speech_share > 0.9


@pytest.mark.parametrize("below", [30, 20, 10])
def test_speech_to_noise_is_what_was_put_in(speech: Waveform, below: float) -> None:
    assert measure(with_noise(speech, below)).speech_to_noise == pytest.approx(below, abs=2)


def test_noise_is_a_hint_and_then_a_warning(robin: Waveform) -> None:
    assert verdicts(with_noise(robin, 25))["noisy"].severity == "hint"
    noisy = verdicts(with_noise(robin, 12))["noisy"]
    assert noisy.severity == "warning"
    assert noisy.value == pytest.approx(12, abs=2)
    assert "12 dB" in noisy.sentence or "11 dB" in noisy.sentence


def test_silence_that_was_put_in_does_not_hide_the_noise(robin: Waveform) -> None:
    muted = with_silence(with_noise(robin, 15), 0.5, 0.5)
    assert measure(muted).speech_to_noise == pytest.approx(15, abs=2)


def test_the_speech_level_does_not_count_pauses(robin: Waveform) -> None:
    assert measure(with_silence(robin, 4, 4)).speech_level == pytest.approx(measure(robin).speech_level, abs=0.5)


def test_a_clip_cut_within_a_word_is_told_where_to_end(robin: Waveform) -> None:
    verdict = verdicts(robin.slice(0, round(5.0 * RATE)))["ends in mid-word"]
    assert verdict.severity == "warning"
    assert verdict.trim is not None
    assert verdict.trim[0] == 0
    assert 4.21 < verdict.trim[1] < 4.43
    assert f"Trim to {verdict.trim[1]:.2f} s?" in verdict.sentence


def test_a_clip_that_begins_within_a_word_is_told_where_to_begin(robin: Waveform) -> None:
    verdict = verdicts(robin.slice(round(1.0 * RATE), robin.num_samples))["starts in mid-word"]
    assert verdict.trim is not None
    assert 1.48 < verdict.trim[0] < 1.66
    assert f"Begin at {verdict.trim[0]:.2f} s?" in verdict.sentence


def test_a_trim_that_was_proposed_cures_its_verdict(speech: Waveform) -> None:
    cured = 0
    for end in np.arange(3.6, speech.duration - 0.3, 0.17):
        cut = speech.slice(0, round(end * RATE))
        found = verdicts(cut).get("ends in mid-word")
        if found and found.trim:
            first, last = (round(time * RATE) for time in found.trim)
            assert "ends in mid-word" not in verdicts(cut.slice(first, min(last, cut.num_samples)))
            cured += 1
    assert cured >= 3


def test_cuts_within_words_are_found_and_cuts_in_pauses_are_not(speech: Waveform) -> None:
    """The figures that `findings` states, on the clips that are here."""
    between = measure(speech).pauses.between
    for start, end in between:
        middle = round((start + end) / 2 * RATE)
        assert not measure(speech.slice(0, middle)).ends_within_word
        assert not measure(speech.slice(middle, speech.num_samples)).starts_within_word
    vowels = [time for time in np.arange(1.5, speech.duration - 1.5, 0.05) if is_loud(speech, time)]
    assert len(vowels) >= 10
    assert np.mean([measure(speech.slice(0, round(time * RATE))).ends_within_word for time in vowels]) > 0.9
    starts = [measure(speech.slice(round(time * RATE), speech.num_samples)).starts_within_word for time in vowels]
    assert np.mean(starts) > 0.75


def is_loud(clip: Waveform, time: float) -> bool:
    """Whether 30 ms to either side are as loud as the whole."""
    sides = (clip.slice(round((time + shift) * RATE), round((time + shift + 0.03) * RATE)) for shift in (-0.03, 0))
    return all(level_dbfs(side) > level_dbfs(clip) - 5 for side in sides)


def test_pauses_at_both_ends_are_measured(robin: Waveform) -> None:
    plain, padded = measure(robin).pauses, measure(with_silence(robin, 0.7, 1.5)).pauses
    assert padded.lead == pytest.approx(plain.lead + 0.7, abs=0.03)
    assert padded.tail == pytest.approx(plain.tail + 1.5, abs=0.03)
    hint = verdicts(with_silence(robin, 0.7, 1.5))["long pauses"]
    assert hint.trim == pytest.approx((0.53, 5.2 + 0.7 + 0.2), abs=0.05)


def test_a_long_clip_is_given_the_best_part_of_3_to_10_s(robin: Waveform) -> None:
    long = sound(np.tile(robin.samples, 5))
    verdict = verdicts(long)["long"]
    assert "26.2 s long; 3 to 10 s are best" in verdict.sentence
    assert verdict.trim is not None
    start, end = verdict.trim
    assert 8 < end - start <= 10
    part = long.slice(round(start * RATE), round(end * RATE))
    assert set(verdicts(part)) == {"good"}


def test_times_are_those_of_the_whole_clip_where_a_part_is_measured(robin: Waveform) -> None:
    cut = robin.slice(0, round(5.0 * RATE))
    whole, part = measure(cut).trim, measure(cut.slice(RATE // 2, cut.num_samples), start=0.5).trim
    assert whole is not None
    assert part is not None
    assert part[1] == pytest.approx(whole[1], abs=0.02)


def test_a_short_clip_hears_that_3_to_10_s_are_best(robin: Waveform) -> None:
    assert "2.6 s long; 3 to 10 s are best" in verdicts(robin.slice(0, round(2.57 * RATE)))["short"].sentence


@pytest.mark.parametrize(("gain", "severity"), [(1.0, None), (2.0, "warning"), (5.0, "warning")])
def test_flat_tops_are_counted(speech: Waveform, gain: float, severity: str | None) -> None:
    clipped = sound(np.clip(speech.samples / speech.peak * gain, -1, 1))
    verdict = verdicts(clipped).get("clipped")
    assert (verdict and verdict.severity) == severity
    for rate in (8_000, 48_000, 192_000):
        assert measure(resample(speech, rate)).clipping.tops == 0


def test_clipping_below_full_scale_is_found(robin: Waveform) -> None:
    flat = np.clip(robin.samples / robin.peak * 3, -1, 1) * 0.3
    assert measure(sound(flat)).clipping.share > 0.005


def test_a_hot_clip_is_called_hot_and_not_refused(robin: Waveform) -> None:
    hot = verdicts(sound(robin.samples / robin.peak * 4))
    assert "12.0 dB louder than full scale" in hot["hot"].sentence
    assert hot["hot"].severity == "hint"
    assert "clipped" not in hot


@pytest.mark.parametrize(("level", "severity"), [(-45, "hint"), (-55, "warning"), (-25, None)])
def test_quiet_speech_is_called_quiet(robin: Waveform, level: float, severity: str | None) -> None:
    quiet = sound(robin.samples * 10 ** ((level - measure(robin).speech_level) / 20))
    verdict = verdicts(quiet).get("quiet")
    assert (verdict and verdict.severity) == severity
    assert "noisy" not in verdicts(quiet)
    if verdict:
        assert f"({level} dBFS)" in verdict.sentence


STEREO = {
    "identical": lambda mono: np.concatenate([mono, mono]),
    "one silent": lambda mono: np.concatenate([mono, 0 * mono]),
    "antiphase": lambda mono: np.concatenate([mono, -0.9 * mono]),
    "similar": lambda mono: np.concatenate([mono, mono * 1.1]),
    "different": lambda mono: np.concatenate([mono, np.roll(mono, 400) * 0.5]),
}


@pytest.mark.parametrize("relation", STEREO)
def test_channels_are_compared(robin: Waveform, relation: str) -> None:
    findings = measure(sound(STEREO[relation](robin.samples)))
    assert findings.channels.relation == relation
    said = {"one silent": "one channel silent", "antiphase": "antiphase", "different": "channels differ"}
    assert {verdict.kind for verdict in judge(findings)} == {said.get(relation, "good")}


def test_channels_that_cancel_to_silence_are_refused(robin: Waveform) -> None:
    assert verdicts(sound(np.concatenate([robin.samples, -robin.samples])))["antiphase"].severity == "refusal"


@pytest.mark.parametrize("rate", [8_000, 11_025])
def test_a_low_sample_rate_is_warned_of(robin: Waveform, rate: int) -> None:
    assert verdicts(resample(robin, rate))["low sample rate"].value == rate


def test_a_telephone_is_heard_at_a_high_rate_too(speech: Waveform) -> None:
    assert "telephone" in verdicts(resample(resample(speech, 8_000), 48_000))
    assert "telephone" not in verdicts(resample(speech, 48_000))


@pytest.mark.parametrize("mains", [50.0, 59.95])
def test_hum_is_found_and_a_voice_is_none(speech: Waveform, mains: float) -> None:
    times = np.arange(speech.num_samples) / RATE
    hum = np.sin(2 * np.pi * mains * times) + 0.4 * np.sin(4 * np.pi * mains * times)
    level = measure(speech).speech_level - 25
    findings = measure(sound(speech.samples + hum * 10 ** (level / 20)))
    assert findings.hum == pytest.approx(level - 2, abs=3)
    assert "hum" in {verdict.kind for verdict in judge(findings)}
    assert measure(speech).hum < measure(speech).speech_level - 50


def test_an_offset_is_found_and_disturbs_nothing_else(robin: Waveform) -> None:
    found = verdicts(sound(robin.samples + 0.1))
    assert set(found) == {"offset"}
    assert found["offset"].value == pytest.approx(0.1, abs=0.01)


def test_music_with_a_word_in_it_is_little_speech(robin: Waveform) -> None:
    word = with_silence(robin.slice(0, round(1.2 * RATE)), 2, 2)
    assert "little speech" in verdicts(word)


@pytest.mark.parametrize("count", [0, 1, 100, 1200, RATE])
@pytest.mark.parametrize("channels", [1, 2, 7])
def test_anything_can_be_measured(count: int, channels: int) -> None:
    for value in (0.0, 1.0):
        findings = measure(sound(np.full((channels, count), value)))
        assert isinstance(findings, Findings)
        assert not findings.speech
        assert findings.trim is None
        assert findings.speech_level == SILENCE_DBFS


def test_only_two_minutes_of_a_long_clip_are_looked_at(robin: Waveform) -> None:
    long = sound(np.tile(robin.samples, 60))
    findings = measure(long)
    assert findings.duration == pytest.approx(314, abs=1)
    assert findings.measured == LONGEST_MEASURED
    assert findings.speech[-1][1] <= LONGEST_MEASURED
    assert findings.overview.duration == LONGEST_MEASURED


def test_the_overview_has_the_peaks_in_their_places(robin: Waveform) -> None:
    overview = measure(with_silence(robin, robin.duration, 0)).overview
    assert len(overview.peaks) == 200
    assert max(overview.peaks[:99]) == 0
    assert max(overview.peaks[100:]) == pytest.approx(robin.peak, abs=1e-3)
    assert overview.speech[0][0] > robin.duration
    assert len(measure(sound(np.ones((1, 7)))).overview.peaks) == 7


def test_ten_seconds_of_stereo_take_far_less_than_a_second(robin: Waveform) -> None:
    """0.045 s where it was measured; a machine that runs tests may be slower."""
    twice = resample(sound(np.tile(robin.samples, 2)[:, : 10 * RATE]), 48_000)
    clip = sound(np.repeat(twice.samples, 2, axis=0), 48_000)
    measure(clip)
    started = time.thread_time()
    measure(clip)
    assert time.thread_time() - started < 0.3


def test_an_examination_has_the_format_and_figures_to_show(tmp_path: Path) -> None:
    examination = examine(read_clip(CLIPS[0], name="clip"))
    figures = dict(examination.figures)
    assert figures["Format"] == "FLAC, 16-bit, 24 kHz, 1 channel"
    assert figures["Clipping"] == "none"
    assert list(figures)[:4] == ["Format", "Length", "Peak", "Speech"]
    assert examination.severity == "ok"
    assert examination.trim is None


def test_an_examination_of_a_part_speaks_of_that_part(robin: Waveform) -> None:
    clip = DecodedClip(robin, WAV)
    whole = examine(clip, span=(0, robin.num_samples))
    part = examine(clip, span=(RATE, 5 * RATE))
    assert whole.severity == "ok"
    assert part.severity == "warning"
    assert part.findings.duration == 4
    assert part.trim is not None
    assert part.trim[0] >= 1


REFUSED = {
    "EmptyClip": np.zeros((1, 0)),
    "ReferenceTooShort": np.ones((1, 1)),
    "SilentClip": np.zeros((1, 3 * RATE)),
    "NoSpeech": np.random.default_rng(0).normal(size=(1, 3 * RATE)) * 0.1,
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_used_is_a_refusal_and_no_exception(kind: str) -> None:
    (verdict,) = examine(DecodedClip(sound(REFUSED[kind]), WAV)).verdicts
    assert (verdict.kind, verdict.severity) == (kind, "refusal")
    assert verdict.sentence.count(".") >= 2


def test_a_clip_that_is_too_long_is_refused_with_a_part_to_keep(robin: Waveform) -> None:
    examination = examine(DecodedClip(sound(np.tile(robin.samples, 7)), WAV))
    (verdict,) = examination.verdicts
    assert verdict.kind == "ReferenceTooLong"
    assert examination.trim is not None
    assert f"Keep {examination.trim[0]:.2f} to {examination.trim[1]:.2f} s?" in verdict.sentence
