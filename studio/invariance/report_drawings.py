"""The drawings of a report: plain SVG and HTML, coloured by its style sheet, readable without a script."""

import math
from collections.abc import Sequence
from html import escape

_CELL = 12
_BAR = 18
_LABEL = 300
_WIDTH = 680


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Numbers stand to the right; None is a dash."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{escape('-' if value is None else str(value))}</td>"
    return f'<td class="number">{number(value)}</td>'


def number(value: float) -> str:
    """Whole numbers with separators, others with three digits."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}"


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Label, length and what is written behind each bar."""
    longest = max((length for _, length, _ in rows), default=0.0) or 1.0
    room = _WIDTH - _LABEL - 130
    drawn = []
    for place, (label, length, text) in enumerate(rows):
        top, width = place * _BAR, room * length / longest
        drawn.append(
            f'<text x="{_LABEL - 8}" y="{top + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{top + 3}" width="{max(width, 0.5):.1f}" height="{_BAR - 6}"/>'
            f'<text x="{_LABEL + width + 6:.1f}" y="{top + 12}">{escape(text)}</text>'
        )
    return _svg(_WIDTH, len(rows) * _BAR + 4, "".join(drawn), "bars")


def heat_map(counts: Sequence[Sequence[int]], comparisons: int) -> str:
    """One row a codebook and one column a frame; the darker, the more often the code differed."""
    left, top = 24, 4
    drawn = []
    for codebook, row in enumerate(counts):
        y = top + codebook * _CELL
        drawn.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{codebook}</text>')
        drawn += [
            f'<rect class="cell" x="{left + frame * _CELL}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" '
            f'fill-opacity="{0.25 + 0.75 * count / comparisons:.2f}"><title>frame {frame}, codebook {codebook}: '
            f"{count} of {comparisons}</title></rect>"
            for frame, count in enumerate(row)
            if count
        ]
    frames, height = max(len(row) for row in counts), len(counts) * _CELL
    drawn.append(f'<rect class="frame" x="{left}" y="{top}" width="{frames * _CELL}" height="{height}"/>')
    drawn.append(f'<text x="{left}" y="{top + height + 13}">frames 0 to {frames - 1}</text>')
    return _svg(left + max(frames * _CELL, 90) + 4, top + height + 20, "".join(drawn), "codes that differ")


def curve(points: Sequence[tuple[float, float]], across: str, up: str) -> str:
    """Values above zero over `across`."""
    width, height, left, bottom = 520, 160, 48, 28
    furthest = max((x for x, _ in points), default=1) or 1
    highest = max((y for _, y in points), default=0) or 1
    places = [
        (left + (width - left - 12) * x / furthest, height - bottom - (height - bottom - 12) * y / highest)
        for x, y in points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
    words = (
        f'<text x="{left}" y="{height - 6}">{escape(across)}: 0 to {number(furthest)}</text>'
        f'<text x="{left - 6}" y="16" text-anchor="end">{highest:.3g}</text>'
        f'<text x="{left + 6}" y="12">{escape(up)}</text>'
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">0</text>'
    )
    return _svg(width, height, f'<polyline class="curve" points="{line}"/>{dots}{words}', f"{up} over {across}")


def histogram(bins: Sequence[tuple[float, float, int, int]]) -> str:
    """Lower and upper end, how many codes, and how many of them flipped; heights are logarithmic."""
    width, height, bottom, step = 24, 150, 36, 26
    tallest = max((math.log10(1 + count) for _, _, count, _ in bins), default=1) or 1
    drawn = []
    for place, (low, high, count, flipped) in enumerate(bins):
        for kind, many in (("other", count), ("flipped", flipped)):
            tall = (height - bottom - 10) * math.log10(1 + many) / tallest
            drawn.append(
                f'<rect class="{kind}" x="{8 + place * step}" y="{height - bottom - tall:.1f}" width="{width}" height='
                f'"{tall:.1f}"><title>margin {low:.2g} to {high:.2g}: {flipped} of {count} flipped</title></rect>'
            )
        if place % 2 == 0:
            x = 8 + place * step
            drawn.append(f'<text x="{x}" y="{height - bottom + 14}">{low:.0e}</text>')
    drawn.append(f'<text x="8" y="{height - 4}">margin; grey all codes, red those that flipped, logarithmic</text>')
    return _svg(max(36 + len(bins) * step, 380), height, "".join(drawn), "codes by margin")


def _svg(width: float, height: float, inside: str, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{escape(title)}">{inside}</svg>'
    )
