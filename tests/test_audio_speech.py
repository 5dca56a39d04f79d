from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from studio.audio.files import read
from studio.audio.resample import resample
from studio.audio.speech import check_reference, find_speech
from studio.audio.waveform import Waveform, dbfs, from_pcm, to_pcm
from studio.errors import EmptyClip, NoSpeech, ReferenceTooLong, ReferenceTooShort, SilentClip
from studio.settings import assets_dir

RATE = 24_000
CLIPS = sorted((assets_dir() / "voices").glob("*.flac"))


@pytest.fixture(params=CLIPS, ids=lambda path: path.stem)
def speech(request: pytest.FixtureRequest) -> Waveform:
    whole = read(request.param, name=request.param.name)
    return whole.slice(0, 3 * RATE)


@pytest.fixture
def one_voice() -> Waveform:
    return read(CLIPS[0], name=CLIPS[0].name)


def sound(samples: np.ndarray) -> Waveform:
    return Waveform(np.atleast_2d(samples).astype(np.float32), RATE)


def at_level(waveform: Waveform, dbfs_rms: float) -> Waveform:
    samples = waveform.samples / np.sqrt(np.mean(waveform.samples**2)) * 10 ** (dbfs_rms / 20)
    return Waveform(samples.astype(np.float32), waveform.sample_rate)


def noise(duration: float, seed: int, colour: float = 0) -> np.ndarray:
    """Noise with power falling as frequency to the minus `colour`, root mean square 1."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).normal(size=round(duration * RATE)))
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (colour / 2)
    samples = np.fft.irfft(spectrum)
    return samples / samples.std()


TIMES = np.arange(RATE * 4) / RATE


def saw(frequency: float) -> np.ndarray:
    return 2 * ((frequency * TIMES) % 1) - 1


def plucked(*frequencies: float) -> np.ndarray:
    """Notes one after another, four a second, each dying away."""
    note = TIMES[: RATE // 4]
    notes = [np.sin(2 * np.pi * frequency * note) * np.exp(-8 * note) for frequency in frequencies]
    return np.tile(np.concatenate(notes), 16)[: len(TIMES)]


NOT_SPEECH = {
    "sine": np.sin(2 * np.pi * 220 * TIMES),
    "low sine": np.sin(2 * np.pi * 60 * TIMES),
    "major chord": sum(np.sin(2 * np.pi * f * TIMES) for f in (220, 277.2, 329.6)),
    "minor chord of saws": saw(220) + saw(261.6) + saw(329.6),
    "saw": saw(150),
    "vibrato": np.sin(2 * np.pi * 220 * TIMES + 3 * np.sin(2 * np.pi * 5 * TIMES)),
    "plucked melody": plucked(262, 330, 392, 523),
    "clicks": (np.arange(len(TIMES)) % (RATE // 2) == 0) * 1.0,
    "mains hum": sum(np.sin(2 * np.pi * 50 * k * TIMES) / k for k in range(1, 20)),
    "pink noise": noise(4, 1, colour=1),
    "brown noise": noise(4, 2, colour=2),
    "noise in bursts": noise(4, 3) * (np.sin(2 * np.pi * 4 * TIMES) > 0),
}


@pytest.mark.parametrize("path", CLIPS, ids=lambda path: path.stem)
def test_every_built_in_clip_is_a_good_reference(path: Path) -> None:
    clip = read(path, name=path.name)
    check_reference(clip)
    assert sum(end - start for start, end in find_speech(clip)) > 0.7 * clip.duration


def test_stretches_are_in_order_apart_and_inside_the_clip(speech: Waveform) -> None:
    stretches = find_speech(speech)
    assert all(0 <= start < end <= speech.duration for start, end in stretches)
    assert all(end < start for (_, end), (start, _) in pairwise(stretches))


def test_speech_between_silences_is_found_where_it_is(one_voice: Waveform) -> None:
    silence = np.zeros((1, 2 * RATE), np.float32)
    padded = sound(np.concatenate([silence, one_voice.samples, silence, one_voice.samples, silence], axis=1))
    stretches = find_speech(padded)
    first_end, second_begin = 2 + one_voice.duration, 4 + one_voice.duration
    assert stretches[0][0] == pytest.approx(2, abs=0.25)
    assert stretches[-1][1] == pytest.approx(second_begin + one_voice.duration, abs=0.4)
    assert not any(start < second_begin - 0.1 and end > first_end + 0.4 for start, end in stretches)


@pytest.mark.parametrize("level", [-55, -40, -20, -10])
def test_quiet_and_loud_speech_is_found(speech: Waveform, level: float) -> None:
    stored = from_pcm(to_pcm(at_level(speech, level).samples))
    quiet = Waveform(stored, speech.sample_rate)
    assert sum(end - start for start, end in find_speech(quiet)) > 0.6 * speech.duration


def test_clipped_speech_is_accepted(speech: Waveform) -> None:
    check_reference(Waveform(np.clip(speech.samples * 10, -1, 1), speech.sample_rate))


def test_speech_louder_than_full_scale_is_accepted(speech: Waveform) -> None:
    check_reference(Waveform(speech.samples * 8, speech.sample_rate))


def test_one_loud_click_does_not_hide_quiet_speech(speech: Waveform) -> None:
    samples = at_level(speech, -50).samples.copy()
    samples[0, 5000:5010] = 1
    check_reference(Waveform(samples, speech.sample_rate))


def test_speech_beside_a_constant_offset_is_found(speech: Waveform) -> None:
    check_reference(Waveform(at_level(speech, -40).samples + np.float32(0.4), speech.sample_rate))


@pytest.mark.parametrize("colour", [0, 1])
def test_speech_in_noise_of_10_db_less_is_found(speech: Waveform, colour: float) -> None:
    hiss = noise(speech.duration + 1, 5, colour)[: speech.num_samples] * 0.1 * 10 ** (-10 / 20)
    noisy = Waveform(at_level(speech, -20).samples + hiss.astype(np.float32), speech.sample_rate)
    assert sum(end - start for start, end in find_speech(noisy)) > 0.6 * speech.duration


def test_antiphase_stereo_is_found(one_voice: Waveform) -> None:
    check_reference(sound(np.concatenate([one_voice.samples, -one_voice.samples])))


def test_speech_on_one_channel_only_is_found(one_voice: Waveform) -> None:
    check_reference(sound(np.concatenate([np.zeros_like(one_voice.samples), one_voice.samples])))


@pytest.mark.parametrize("level", [-70, -50, -30, -10, 0])
def test_white_noise_is_no_speech_at_any_level(level: float) -> None:
    for seed in range(4):
        with pytest.raises(NoSpeech, match=r"No speech was found in this clip of 3\.0 s"):
            check_reference(sound(np.clip(noise(3, seed) * 10 ** (level / 20), -1, 1)))


@pytest.mark.parametrize("samples", NOT_SPEECH.values(), ids=NOT_SPEECH.keys())
@pytest.mark.parametrize("peak", [0.01, 0.5])
def test_tones_music_and_hum_are_no_speech(samples: np.ndarray, peak: float) -> None:
    with pytest.raises(NoSpeech):
        check_reference(sound(samples / np.abs(samples).max() * peak))


@pytest.mark.parametrize("value", [0.0, 0.5, 2**-15])
def test_silence_and_a_constant_are_called_silent_with_their_peak(value: float) -> None:
    with pytest.raises(SilentClip, match=r"silent \(peak -\d+ dBFS\)"):
        check_reference(sound(np.full(3 * RATE, value)))


def test_the_last_bit_of_dither_is_silence() -> None:
    dither = np.random.default_rng(0).integers(-1, 2, size=3 * RATE) / 2**15
    assert dbfs(np.abs(dither).max()) > -91
    with pytest.raises(SilentClip):
        check_reference(sound(dither))


def test_no_samples_at_all_is_empty() -> None:
    with pytest.raises(EmptyClip, match=r"'mine\.wav' holds no samples"):
        check_reference(sound(np.zeros((1, 0))), name="mine.wav")
    assert find_speech(sound(np.zeros((1, 0)))) == []


@pytest.mark.parametrize(("count", "said"), [(1, r"0\.00 s"), (RATE // 20, r"0\.05 s"), (RATE - 1, r"1\.00 s")])
def test_less_than_a_second_names_the_length_and_the_limit(one_voice: Waveform, count: int, said: str) -> None:
    with pytest.raises(ReferenceTooShort, match=f"{said} long; 1 s or more"):
        check_reference(one_voice.slice(0, count))


def test_a_second_of_speech_is_enough(speech: Waveform) -> None:
    start = round(find_speech(speech)[0][0] * RATE)
    check_reference(speech.slice(start, start + RATE))


def test_thirty_seconds_are_the_most(one_voice: Waveform) -> None:
    many = np.tile(one_voice.samples, 10)
    check_reference(sound(many[:, : 30 * RATE]))
    with pytest.raises(ReferenceTooLong, match=r"30\.1 s long; at most 30 s"):
        check_reference(sound(many[:, : 30 * RATE + RATE // 10]))


def test_thirty_minutes_are_refused_at_once() -> None:
    with pytest.raises(ReferenceTooLong, match=r"1800\.0 s"):
        check_reference(Waveform(np.zeros((1, 8000 * 1800), np.float32), 8000))


@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000])
def test_the_rate_of_the_recording_does_not_matter(one_voice: Waveform, rate: int) -> None:
    other = resample(one_voice, rate)
    check_reference(other)
    assert find_speech(other)[0][0] == pytest.approx(find_speech(one_voice)[0][0], abs=0.1)


def test_the_same_clip_gives_the_same_stretches_every_time(one_voice: Waveform) -> None:
    assert find_speech(one_voice) == find_speech(one_voice)


def test_there_are_clips_to_test_with() -> None:
    assert len(CLIPS) >= 4
    assert all(soundfile.info(path).samplerate == RATE for path in CLIPS)
