"""What the findings of a clip mean for cloning it: sentences with their cures, the worst first.

Thresholds were set on 24 clips of two synthetic voices in four pitches, changed on purpose. Speech over noise comes out
within half a decibel of the noise put in from 10 to 30 dB under the speech; the clean clips have 37 to 70 dB. A clip
made 1.5 times as loud as full scale has 0.07 % of its samples in flat tops, twice as loud 0.3 %, five times 5.6 %,
and none of the clean ones has one, at any sample rate. The upper band lies at -16 to -25 dB, and at -37 to -46 dB
after a telephone's 8 kHz. Hum from 40 dB under the speech is found, and none in clean clips.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from studio.audio.findings import Findings
from studio.audio.speech import SILENT_PEAK_DBFS
from studio.audio.trims import GOOD_LENGTH
from studio.audio.waveform import dbfs

SEVERITIES = ("refusal", "warning", "hint", "ok")
"""The worst first."""

_NOISY, _BIT_NOISY = 20.0, 30.0
_CLIPPED_SHARE = 0.001
_VERY_QUIET, _QUIET = -50.0, -38.0
_HUM_BELOW_SPEECH = -40.0
_LARGE_OFFSET = 0.01
_TELEPHONE_RATE = 16_000
_TELEPHONE_BAND = -33.0
_LONG_PAUSE = 1.0
_LITTLE_SPEECH = 0.5
_NO_CUT = 0.05
"""Seconds that a proposed trim may leave away at an end without that being said."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One thing to know about a clip, for people."""

    kind: str
    """Such as "ends in mid-word"; stable, for the page and tests."""
    severity: str
    """One of SEVERITIES; a clip with a refusal is not encoded."""
    sentence: str
    value: float | None = None
    """What was measured, in the unit that the sentence names."""
    trim: tuple[float, float] | None = None
    """Start and end in seconds that would cure it."""


def judge(findings: Findings) -> tuple[Verdict, ...]:
    """All verdicts on a clip that has speech, the worst first; a single "ok" where there is nothing to say."""
    rules = (_length, _edges, _noise, _clipping, _level, _channels, _telephone, _hum, _offset, _silences, _share)
    verdicts = [verdict for rule in rules for verdict in rule(findings)]
    if not verdicts:
        sentence = f"A good reference: {findings.duration:.1f} s of clear speech between pauses."
        return (Verdict(kind="good", severity="ok", sentence=sentence, value=findings.duration),)
    return tuple(sorted(verdicts, key=lambda verdict: SEVERITIES.index(verdict.severity)))


def _length(findings: Findings) -> Iterator[Verdict]:
    shortest, longest = GOOD_LENGTH
    said = f"This clip is {findings.duration:.1f} s long; {shortest:g} to {longest:g} s are best."
    if findings.duration < shortest:
        yield Verdict(kind="short", severity="hint", sentence=f"{said} Record more.", value=findings.duration)
    elif findings.duration > longest:
        sentence = f"{said} {_cure(findings, 'Cut it to its clearest sentence.')}"
        yield Verdict(kind="long", severity="hint", sentence=sentence, value=findings.duration, trim=findings.trim)


def _edges(findings: Findings) -> Iterator[Verdict]:
    if findings.ends_within_word:
        cure = _cure(findings, "Record it again with a pause after the last word.")
        yield Verdict(
            kind="ends in mid-word",
            severity="warning",
            sentence=f"The clip ends in mid-word, and that syllable can leak into what is spoken. {cure}",
            value=findings.pauses.tail,
            trim=findings.trim,
        )
    if findings.starts_within_word:
        cure = _cure(findings, "Record it again with a pause before the first word.")
        yield Verdict(
            kind="starts in mid-word",
            severity="warning",
            sentence=f"The clip starts in mid-word. {cure}",
            value=findings.pauses.lead,
            trim=findings.trim,
        )


def _noise(findings: Findings) -> Iterator[Verdict]:
    distance = findings.speech_to_noise
    if distance >= _BIT_NOISY:
        return
    severity = "warning" if distance < _NOISY else "hint"
    very = "noisy" if distance < _NOISY else "a little noisy"
    sentence = (
        f"The clip is {very}: speech is {distance:.0f} dB above the noise, and 30 dB or more is good. The noise is "
        "cloned with the voice; record in a quieter room, closer to the microphone."
    )
    yield Verdict(kind="noisy", severity=severity, sentence=sentence, value=distance)


def _clipping(findings: Findings) -> Iterator[Verdict]:
    clipping = findings.clipping
    if not clipping.tops:
        return
    severity = "warning" if clipping.share >= _CLIPPED_SHARE else "hint"
    sentence = (
        f"The clip is clipped: {clipping.tops:,} peaks are cut flat ({100 * clipping.share:.2g} % of the samples). "
        "The harshness is cloned with the voice; record again with less gain."
    )
    yield Verdict(kind="clipped", severity=severity, sentence=sentence, value=clipping.share)


def _level(findings: Findings) -> Iterator[Verdict]:
    if findings.peak > 1.0:
        peak = dbfs(findings.peak)
        sentence = f"The clip is {peak:.1f} dB louder than full scale. It is made quieter before it is encoded."
        yield Verdict(kind="hot", severity="hint", sentence=sentence, value=peak)
    level = findings.speech_level
    if level < _QUIET:
        severity = "warning" if level < _VERY_QUIET else "hint"
        sentence = (
            f"The speech is quiet ({level:.0f} dBFS). It is made louder before it is encoded, and the noise with it; "
            "record closer to the microphone if you can."
        )
        yield Verdict(kind="quiet", severity=severity, sentence=sentence, value=level)


def _channels(findings: Findings) -> Iterator[Verdict]:
    relation, loss = findings.channels.relation, findings.channels.mean_loss
    if relation == "antiphase":
        sentence = (
            f"The channels cancel each other: their mix is {loss:.0f} dB quieter than one alone. Export a single "
            "channel and use that."
        )
        severity = "refusal" if findings.speech_level - loss < SILENT_PEAK_DBFS else "warning"
        yield Verdict(kind="antiphase", severity=severity, sentence=sentence, value=loss)
    elif relation == "different":
        sentence = "The channels differ; their mix is used. Where one has the clearer voice, export that one alone."
        yield Verdict(kind="channels differ", severity="hint", sentence=sentence, value=loss)
    elif relation == "one silent":
        sentence = "One channel is silent; the mix of all is used, made as loud as needed."
        yield Verdict(kind="one channel silent", severity="hint", sentence=sentence, value=loss)


def _telephone(findings: Findings) -> Iterator[Verdict]:
    rate = findings.sample_rate
    cure = "The voice will sound dull; use a recording of 24 kHz or more that was not made over the telephone."
    if rate < _TELEPHONE_RATE:
        sentence = f"The clip has a sample rate of {rate / 1000:g} kHz, so its highs are missing. {cure}"
        yield Verdict(kind="low sample rate", severity="warning", sentence=sentence, value=rate)
    elif findings.upper_band < _TELEPHONE_BAND:
        sentence = f"The clip has nearly nothing above 4 kHz, as after a telephone. {cure}"
        yield Verdict(kind="telephone", severity="warning", sentence=sentence, value=findings.upper_band)


def _hum(findings: Findings) -> Iterator[Verdict]:
    if findings.hum - findings.speech_level > _HUM_BELOW_SPEECH:
        sentence = (
            f"There is mains hum in the clip ({findings.hum:.0f} dBFS). Record away from power supplies, or with the "
            "laptop on its battery."
        )
        yield Verdict(kind="hum", severity="hint", sentence=sentence, value=findings.hum)


def _offset(findings: Findings) -> Iterator[Verdict]:
    if findings.offset > _LARGE_OFFSET:
        percent = 100 * findings.offset
        sentence = f"The clip has a constant offset of {percent:.0f} % of full scale. It is removed before encoding."
        yield Verdict(kind="offset", severity="hint", sentence=sentence, value=findings.offset)


def _silences(findings: Findings) -> Iterator[Verdict]:
    lead, tail = findings.pauses.lead, findings.pauses.tail
    if max(lead, tail) <= _LONG_PAUSE or findings.duration > findings.measured or findings.trim is None:
        return
    sentence = (
        f"There is quiet at the ends: {lead:.1f} s before the first word, {tail:.1f} s after the last. "
        f"{_cure(findings, '')}"
    )
    yield Verdict(kind="long pauses", severity="hint", sentence=sentence, value=max(lead, tail), trim=findings.trim)


def _share(findings: Findings) -> Iterator[Verdict]:
    if findings.speech_share < _LITTLE_SPEECH and findings.speech_duration < GOOD_LENGTH[0]:
        sentence = (
            f"Only {findings.speech_duration:.1f} s of the {findings.measured:.1f} s are speech. Use a clip with "
            f"{GOOD_LENGTH[0]:g} s or more of one person speaking, without music."
        )
        yield Verdict(kind="little speech", severity="warning", sentence=sentence, value=findings.speech_duration)


def _cure(findings: Findings, otherwise: str) -> str:
    """The question whether to trim, or what to do where no part would serve."""
    if findings.trim is None:
        return otherwise
    start, end = findings.trim
    if start - findings.start < _NO_CUT:
        return f"Trim to {end:.2f} s?"
    if findings.start + findings.duration - end < _NO_CUT:
        return f"Begin at {start:.2f} s?"
    return f"Keep {start:.2f} to {end:.2f} s?"
