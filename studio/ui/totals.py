"""What the reference cache has done since the library was made, as one section of the page."""

from collections.abc import Mapping
from html import escape


def totals_section(counters: Mapping[str, float]) -> str:
    """HTML; `counters` as `cache stats` has them."""
    hits = int(counters["hits_memory"] + counters["hits_disk"] + counters["merged"])
    figures = [
        ("hits", f"{hits:,}", "codes that were there already: in memory, on disk, or being made for somebody else"),
        ("misses", f"{counters['misses']:,.0f}", "clips that were not known"),
        ("fills", f"{counters['fills']:,.0f}", "encodes, each of one clip alone"),
        ("merged", f"{counters['merged']:,.0f}", "requests that waited for the encode of another"),
        ("repairs", f"{counters['repairs']:,.0f}", "damaged entries that were made again and came out the same"),
        ("changes", f"{counters['changes']:,.0f}", "entries that came out otherwise than before"),
        ("evictions", f"{counters['evictions']:,.0f}", "entries that went because the bound was passed"),
        ("kept", f"{counters['entries']:,.0f} ({_size(counters['bytes'])})", "entries, and the size of their codes"),
        ("saved", _duration(counters["saved_seconds"]), "time that encoding again would have taken"),
    ]
    rows = "".join(
        f'<div title="{escape(meaning)}"><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value, meaning in figures
    )
    return (
        '<section aria-labelledby="totals-title"><h2 id="totals-title">Reference cache</h2>'
        '<p class="hint">One clip, one value: the codes of the clip encoded alone, whatever ran beside it.</p>'
        f'<dl class="totals">{rows}</dl></section>'
    )


def _size(num_bytes: float) -> str:
    return f"{num_bytes:,.0f} bytes" if num_bytes < 10_000 else f"{num_bytes / 1000:,.0f} kB"


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
