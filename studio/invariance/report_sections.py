"""What a report shows below the sentence of each experiment: its drawings and its tables."""

from collections.abc import Callable
from html import escape
from typing import Any

from studio.invariance.record import Record
from studio.invariance.report_drawings import bars, curve, heat_map, histogram, table
from studio.invariance.tally import share

Figures = dict[str, Any]
_MOST_MAPS = 8
_MOST_FLIPS = 40


def section(record: Record) -> str:
    """Blank where there is nothing to show beside the sentence."""
    draw = _SECTIONS.get(record.experiment)
    return draw(record.figures) if draw is not None and record.figures else ""


def _comparisons(figures: Figures) -> str:
    found: dict[str, list[int]] = {}
    for each in figures.get("comparisons", ()):
        sums = found.setdefault(each["against"], [0, 0])
        sums[0] += each["codes"]
        sums[1] += each["differ"]
    return table(["against", "codes", "differ"], [[against, *sums] for against, sums in found.items()])


def _solo_batch(figures: Figures) -> str:
    groups = [figures[group] for group in ("ordinary", "boundary")]
    rows = [(row["rows"], row["group"], row["codes"], row["differ"], share(row["rate"])) for row in figures["by_batch"]]
    maps = [each for each in figures["heat_maps"] if any(map(any, each["counts"]))]
    drawn = "".join(
        f"<h3>{escape(each['clip'])}</h3>{heat_map(each['counts'], each['comparisons'])}" for each in maps[:_MOST_MAPS]
    )
    books = [(f"codebook {row['codebook']}", row["rate"], share(row["rate"])) for row in figures["by_codebook"]]
    published = figures["published"]
    note = f"Published: {escape(published['what'])}, {share(published['rate'])}."
    return (
        table(
            ["clips", "codes", "differ", "frames", "frames with a difference"],
            [
                [name, *(each[key] for key in ("codes", "differ", "frames", "differing_frames"))]
                for name, each in zip(("ordinary", "at a boundary"), groups, strict=True)
            ],
        )
        + table(["rows", "clips", "codes", "differ", "rate"], rows)
        + f"<h3>By codebook</h3>{bars(books)}{drawn}"
        + (f'<p class="note">{len(maps) - _MOST_MAPS} more clips differ.</p>' if len(maps) > _MOST_MAPS else "")
        + f'<p class="note">{note}</p>'
    )


def _rows(figures: Figures) -> str:
    sums: dict[tuple[str, str], list[int]] = {}
    for pair in figures["pairs"]:
        found = sums.setdefault((pair["one"], pair["other"]), [0, 0])
        found[0] += pair["codes"]
        found[1] += pair["differ"]
    return table(["one", "other", "codes", "differ"], [[*names, *found] for names, found in sums.items()])


def _lengths(figures: Figures) -> str:
    points = [(point["gap_frames"], 100 * point["rate"]) for point in figures["points"]]
    rows = [[point["gap_frames"], point["codes"], point["differ"]] for point in figures["points"]]
    return curve(points, "frames longer", "% of codes") + table(["frames longer", "codes", "differ"], rows)


def _trace(figures: Figures) -> str:
    if "modules" not in figures:
        return ""
    modules = figures["modules"]
    drawn = bars(
        [
            (f"{each['module']} ({each['kind']})", each["differing"] / each["elements"], f"{each['max_abs']:.1e}")
            for each in modules
        ]
    )
    rows = [
        [each["module"], each["kind"], each["elements"], each["differing"], each["max_abs"], each["mean_abs"],
         "other" if each["input_differs"] else "equal", each["digest_solo"], each["digest_batch"]]
        for each in modules
    ]  # fmt: skip
    header = ["module", "kind", "elements", "differing", "largest", "mean", "input", "alone", "in the batch"]
    return (
        f"<h3>Share of elements that differ, and the largest difference</h3>{drawn}"
        f"<details><summary>All modules</summary>{table(header, rows)}</details>"
    )


def _replay(figures: Figures) -> str:
    if "module" not in figures:
        return ""
    names = ("module", "kind", "elements", "differing", "max_abs", "mean_abs", "digest_solo", "digest_batch")
    return table(["", ""], [[name.replace("_", " "), figures[name]] for name in names])


def _margins(figures: Figures) -> str:
    if "bins" not in figures:
        return ""
    drawn = histogram([(each["low"], each["high"], each["codes"], each["flipped"]) for each in figures["bins"]])
    rows = [
        [each["clip"], each["frame"], each["codebook"], each["margin"], share(each["percentile"]),
         "follows" if each["follows"] else "first"]
        for each in figures["flips"][:_MOST_FLIPS]
    ]  # fmt: skip
    flips = table(["clip", "frame", "codebook", "margin", "among the smallest", ""], rows) if rows else ""
    return f"{drawn}<details><summary>Codes that flipped</summary>{flips}</details>" if flips else drawn


def _audible(figures: Figures) -> str:
    rows = [
        [each["clip"], each["frames"], each["codes"], each["differ"], each["snr_db"], each["words_solo"],
         each["words_batch"]]
        for each in figures.get("clips", ())
    ]  # fmt: skip
    return table(["clip", "frames", "codes", "differ", "SNR in dB", "words alone", "words in a batch"], rows)


def _settings(figures: Figures) -> str:
    rows = [
        [each["dtype"], each["threads"], each["codes"], each["differ"], each["boundary_codes"], each["boundary_differ"]]
        for each in figures["rows"]
    ]
    return table(["dtype", "threads", "codes", "differ", "codes at a boundary", "differ"], rows)


def _search(figures: Figures) -> str:
    names = ["dtype", "threads", "material", "frames", "row_frames", "rows", "codes", "differ", "latents_differ"]
    header = ["dtype", "threads", "clips", "frames", "frames a row", "rows", "codes", "differ", "other numbers before"]
    told = table(header, [[each[name] for name in names] for each in figures["covered"]])
    small = figures["smallest"]
    first = "" if small is None else table(["smallest case", ""], [[key, value] for key, value in small.items()])
    return f"{first}<details><summary>Everything that was tried</summary>{told}</details>"


def _cost(figures: Figures) -> str:
    return bars(
        [(f"{bar['name']}: {bar['detail']}", bar["seconds_a_clip"], f"{bar['seconds_a_clip']:.4f} s a clip")
         for bar in figures.get("bars", ())]
    )  # fmt: skip


def _cache(figures: Figures) -> str:
    rows = [
        [each["clip"], each["requests"], len(each["digests"]), each["digests"][0][:16], each["canonical"][:16]]
        for each in figures.get("clips", ())
    ]
    return table(["clip", "requests", "digests", "first", "canonical"], rows)


def _slots(figures: Figures) -> str:
    rows = [
        [each["take"], each["place"], each["neighbours"], each["samples"], each["differ"]] for each in figures["takes"]
    ]
    return table(["take", "place", "neighbours", "samples", "differ"], rows)


def _chunks(figures: Figures) -> str:
    rows = [
        [row["clip"], *(each["differ"] for each in row["chunkings"]), row["whole_max_abs"]] for row in figures["clips"]
    ]
    sizes = [f"{each['frames_a_chunk']} a chunk" for row in figures["clips"][:1] for each in row["chunkings"]]
    return table(["clip", *sizes, "whole decode, largest"], rows)


def _library(figures: Figures) -> str:
    rows = [
        [each["name"], (each["key"] or "")[:16], each["codes"], each["differing"], "; ".join(each["elsewhere"]),
         each["not_checkable"]]
        for each in figures["rows"]
    ]  # fmt: skip
    return table(["voice", "key", "codes", "differ", "filled elsewhere", "not checkable"], rows)


_SECTIONS: dict[str, Callable[[Figures], str]] = {
    "repeat-solo": _comparisons,
    "repeat-batch": _comparisons,
    "history": _comparisons,
    "solo-batch": _solo_batch,
    "neighbour": _comparisons,
    "rows": _rows,
    "lengths": _lengths,
    "padding": _comparisons,
    "trace": _trace,
    "replay": _replay,
    "margins": _margins,
    "audible": _audible,
    "settings": _settings,
    "search": _search,
    "cost": _cost,
    "cache": _cache,
    "slots": _slots,
    "chunks": _chunks,
    "library": _library,
}
