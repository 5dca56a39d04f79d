"""The reference desk's look at a clip before it is encoded: format, figures, verdicts and a drawing, ready to show."""

from dataclasses import dataclass

from studio.audio.findings import Findings, measure
from studio.audio.sound_format import DecodedClip, SoundFormat
from studio.audio.speech import check_length, check_not_silent
from studio.audio.verdicts import SEVERITIES, Verdict, judge
from studio.audio.waveform import Waveform, dbfs
from studio.errors import ClipError, NoSpeech, ReferenceTooLong

_CHANNELS = {
    "one": "one",
    "identical": "alike in every channel",
    "similar": "nearly alike",
    "different": "different",
    "one silent": "one is silent",
    "antiphase": "they cancel each other",
}


@dataclass(frozen=True, eq=False)
class Examination:
    """Everything the page shows of a clip; `figures` are pairs of a label and a text."""

    sound_format: SoundFormat
    findings: Findings
    verdicts: tuple[Verdict, ...]
    figures: tuple[tuple[str, str], ...]

    @property
    def severity(self) -> str:
        """The worst of the verdicts."""
        return min((verdict.severity for verdict in self.verdicts), key=SEVERITIES.index)

    @property
    def trim(self) -> tuple[float, float] | None:
        """Start and end in seconds that some verdict proposes."""
        return next((verdict.trim for verdict in self.verdicts if verdict.trim is not None), None)


def examine(clip: DecodedClip, *, span: tuple[int, int] | None = None, name: str = "The clip") -> Examination:
    """Looks at a clip, or at the samples of it from the first of `span` up to the second. Raises nothing for a clip
    that cannot be used: that is a verdict of severity "refusal", with the sentence of its ClipError."""
    whole = clip.waveform
    first, last = span or (0, whole.num_samples)
    part = whole.slice(first, last)
    findings = measure(part, start=first / whole.sample_rate)
    refusal = _refusal(part, findings, name)
    verdicts = judge(findings) if refusal is None else (refusal,)
    return Examination(clip.sound_format, findings, verdicts, _figures(clip.sound_format, findings))


def _refusal(part: Waveform, findings: Findings, name: str) -> Verdict | None:
    """What `check_reference` says of the clip, without looking for speech again."""
    try:
        check_length(part, name=name)
        check_not_silent(part)
        if not findings.speech:
            raise NoSpeech(part.duration)
    except ClipError as error:
        trim = findings.trim if isinstance(error, ReferenceTooLong) else None
        question = "" if trim is None else f" Keep {trim[0]:.2f} to {trim[1]:.2f} s?"
        sentence = f"{error}{question}"
        return Verdict(kind=type(error).__name__, severity="refusal", sentence=sentence, trim=trim)
    return None


def _figures(sound_format: SoundFormat, findings: Findings) -> tuple[tuple[str, str], ...]:
    clipping, pauses, stretches = findings.clipping, findings.pauses, len(findings.speech)
    figures = [
        ("Format", sound_format.sentence),
        ("Length", f"{findings.duration:.1f} s (3 to 10 s are best)"),
        ("Peak", f"{dbfs(findings.peak):.1f} dBFS"),
    ]
    if findings.speech:
        figures += [
            ("Speech", f"{findings.speech_duration:.1f} s in {stretches} {'part' if stretches == 1 else 'parts'}"),
            ("Speech level", f"{findings.speech_level:.0f} dBFS"),
            ("Noise", f"{findings.noise_floor:.0f} dBFS, {findings.speech_to_noise:.0f} dB under the speech"),
            ("Pauses", f"{pauses.lead:.2f} s at the start, {pauses.tail:.2f} s at the end"),
        ]
    else:
        figures.append(("Speech", "none found"))
    flat = f"{clipping.tops:,} flat peaks, {100 * clipping.share:.2g} % of the samples" if clipping.tops else "none"
    figures.append(("Clipping", flat))
    if sound_format.channels > 1:
        figures.append(("Channels", f"{sound_format.channels}, {_CHANNELS[findings.channels.relation]}"))
    return tuple(figures)
