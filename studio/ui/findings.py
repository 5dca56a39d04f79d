"""What the reference desk found in a clip, as HTML for the form that makes a voice of it."""

import math
from html import escape
from pathlib import Path
from typing import Any

from studio.audio.examination import Examination, examine
from studio.audio.files import read_clip
from studio.audio.overview import Overview
from studio.audio.verdicts import Verdict

NOTHING_FOUND = {"html": ""}
_HEIGHT = 46


def findings_card(clip: str | None) -> dict[str, Any]:
    """The value of the findings component: a drawing, the figures and the verdicts; empty without a clip.

    ClipError where the file cannot be read at all.
    """
    if not clip:
        return NOTHING_FOUND
    path = Path(clip)
    return {"html": render(examine(read_clip(path, name=path.name), name=path.name))}


def render(examination: Examination) -> str:
    """Every word escaped: a file's name may be in a sentence."""
    figures = " · ".join(f"{label.lower()} {text}" for label, text in examination.figures)
    verdicts = "".join(_verdict(verdict) for verdict in examination.verdicts)
    drawing = _drawing(examination.findings.overview)
    return f'{drawing}<p class="measured">{escape(figures)}</p><ul>{verdicts}</ul>'


def _verdict(verdict: Verdict) -> str:
    button = ""
    if verdict.trim is not None:
        start, end = verdict.trim
        button = (
            f'<button type="button" class="quiet-button" data-start="{start:.2f}" data-end="{end:.2f}">Use '
            f"{start:.2f} to {end:.2f} s</button>"
        )
    return f'<li class="{escape(verdict.severity)}"><span>{escape(verdict.sentence)}{button}</span></li>'


def _drawing(overview: Overview) -> str:
    """Peaks as bars, those in speech marked."""
    if not overview.peaks:
        return ""
    count = len(overview.peaks)
    bars = "".join(
        f'<rect x="{index * 2}" y="{(_HEIGHT - height) / 2:.1f}" width="1.4" height="{height:.1f}"{mark}/>'
        for index, (height, mark) in enumerate(
            (max(1.0, min(1.0, math.sqrt(peak)) * _HEIGHT), _mark(overview, (index + 0.5) / count))
            for index, peak in enumerate(overview.peaks)
        )
    )
    return (
        f'<svg viewBox="0 0 {2 * count} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="The clip, speech marked">{bars}</svg>'
    )


def _mark(overview: Overview, place: float) -> str:
    time = place * overview.duration
    return ' class="speech"' if any(start <= time < end for start, end in overview.speech) else ""
