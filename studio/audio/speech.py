"""Where somebody speaks in a waveform, and whether it can serve as a reference clip.

The detector is Silero VAD, computed in `silero`.
"""

from collections.abc import Iterator

import numpy as np

from studio.audio.resample import resample
from studio.audio.silero import SAMPLE_RATE, WINDOW, speech_probabilities
from studio.audio.waveform import Waveform, dbfs
from studio.errors import EmptyClip, NoSpeech, ReferenceTooLong, ReferenceTooShort, SilentClip

SHORTEST_REFERENCE = 1.0
LONGEST_REFERENCE = 30.0
SILENT_PEAK_DBFS = -80.0

WINDOW_DURATION = WINDOW / SAMPLE_RATE
SPEECH_PROBABILITY = 0.5
STILL_SPEECH_PROBABILITY = 0.35
SHORTEST_SPEECH = 0.25
LONGEST_GAP = 0.25
LOUD_LEVEL = 0.1


def check_reference(waveform: Waveform, *, name: str = "The clip") -> None:
    """Raise the first reason why no voice can be cloned from this clip: EmptyClip, ReferenceTooShort, ReferenceTooLong,
    SilentClip or NoSpeech."""
    check_length(waveform, name=name)
    check_not_silent(waveform)
    if not find_speech(waveform):
        raise NoSpeech(waveform.duration)


def check_length(waveform: Waveform, *, name: str) -> None:
    """EmptyClip, ReferenceTooShort or ReferenceTooLong, each with the length and the limit."""
    if waveform.num_samples == 0:
        raise EmptyClip(name)
    if waveform.duration < SHORTEST_REFERENCE:
        raise ReferenceTooShort(waveform.duration, SHORTEST_REFERENCE)
    if waveform.duration > LONGEST_REFERENCE:
        raise ReferenceTooLong(waveform.duration, LONGEST_REFERENCE)


def check_not_silent(waveform: Waveform) -> None:
    """SilentClip, also where there is nothing but a constant."""
    peak = dbfs(_without_offset(waveform).peak)
    if peak < SILENT_PEAK_DBFS:
        raise SilentClip(peak)


def find_speech(waveform: Waveform) -> list[tuple[float, float]]:
    """Start and end in seconds of every stretch of speech, however quiet the recording."""
    return speech_in(heard(waveform), waveform.duration)


def heard(waveform: Waveform) -> np.ndarray:
    """The one channel that is listened to, float32 `(samples,)` at SAMPLE_RATE: the loudest, its offset removed."""
    return resample(_loudest_channel(_without_offset(waveform)), SAMPLE_RATE).samples[0]


def speech_in(channel: np.ndarray, duration: float) -> list[tuple[float, float]]:
    """`find_speech` for a clip of `duration` seconds of which `heard` gave `channel`."""
    probabilities = speech_probabilities(_windows(channel))
    return [
        (first * WINDOW_DURATION, min(last * WINDOW_DURATION, duration))
        for first, last in _joined(_stretches(iter(probabilities.tolist())))
        if (last - first) * WINDOW_DURATION >= SHORTEST_SPEECH
    ]


def _without_offset(waveform: Waveform) -> Waveform:
    if waveform.num_samples == 0:
        return waveform
    offset = waveform.samples.mean(axis=1, keepdims=True, dtype=np.float64)
    return Waveform((waveform.samples - offset).astype(np.float32), waveform.sample_rate)


def _loudest_channel(waveform: Waveform) -> Waveform:
    """The channel with the most power: a mean would cancel a voice recorded in antiphase."""
    power = np.square(waveform.samples, dtype=np.float64).sum(axis=1)
    loudest = int(power.argmax())
    return Waveform(waveform.samples[loudest : loudest + 1], waveform.sample_rate)


def _windows(channel: np.ndarray) -> np.ndarray:
    """What the detector hears, float32 `(windows, WINDOW)`, its loud parts at LOUD_LEVEL."""
    windows = np.pad(channel, (0, -len(channel) % WINDOW)).reshape(-1, WINDOW)
    if len(windows) == 0:
        return windows
    levels = np.sqrt(np.mean(np.square(windows, dtype=np.float64), axis=1))
    loud = float(np.quantile(levels, 0.9))
    if loud == 0:
        loud = float(levels.max()) or 1.0
    return np.clip(windows * (LOUD_LEVEL / loud), -1, 1).astype(np.float32)


def _stretches(probabilities: Iterator[float]) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) window of each run of speech: it begins where sure, ends where doubtful."""
    start: int | None = None
    index = -1
    for index, probability in enumerate(probabilities):
        if start is None and probability >= SPEECH_PROBABILITY:
            start = index
        elif start is not None and probability < STILL_SPEECH_PROBABILITY:
            yield start, index
            start = None
    if start is not None:
        yield start, index + 1


def _joined(stretches: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs with only a short gap between them as one."""
    whole: tuple[int, int] | None = None
    for start, end in stretches:
        if whole and (start - whole[1]) * WINDOW_DURATION < LONGEST_GAP:
            whole = (whole[0], end)
            continue
        if whole:
            yield whole
        whole = (start, end)
    if whole:
        yield whole
