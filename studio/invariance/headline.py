"""A run in one line: how many values a clip has when it is encoded alone, and how many in batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from studio.invariance.record import Record
from studio.invariance.tally import share


@dataclass(frozen=True, kw_only=True)
class Headline:
    """Of the records of one setting. A part is blank where no experiment has asked for it."""

    dtype: str
    threads: int
    solo: str
    """ "1 value per clip"."""
    batched: str
    """ "up to 3 values per clip, 7.8 % of codes"."""
    note: str
    """What must be said beside them, so that they mean no more than they do."""


def headlines(records: Sequence[Record]) -> list[Headline]:
    """One for each setting, in the order of the records."""
    settings = list(dict.fromkeys((record.setting["dtype"], record.setting["threads"]) for record in records))
    once = {record.experiment: record for record in records if record.experiment == "cache"}
    return [
        _headline(dtype, threads, once | {each.experiment: each for each in records if _is_of(each, dtype, threads)})
        for dtype, threads in settings
    ]


def _headline(dtype: str, threads: int, records: dict[str, Record]) -> Headline:
    figures = _figures(records, "solo-batch")
    return Headline(
        dtype=dtype,
        threads=threads,
        solo=_solo(records),
        batched=_batched(figures) if figures else "",
        note=_note(figures, records) if figures else "",
    )


def _solo(records: dict[str, Record]) -> str:
    """What the cache gave to whoever asked, else what repeated encodes gave."""
    cache, repeat = _figures(records, "cache"), _figures(records, "repeat-solo")
    if cache:
        return _values(max(len(clip["digests"]) for clip in cache["clips"]))
    if repeat:
        return _values(1) if not repeat["differ"] else "not the same twice"
    return ""


def _batched(figures: dict[str, Any]) -> str:
    values = _values(max(clip["values"] for clip in figures["by_clip"]))
    if values == _values(1):
        return f"{values} too"
    if figures["ordinary"]["differ"]:
        return f"up to {values}, {share(figures['ordinary']['rate'])} of codes"
    return f"up to {values}, {share(figures['boundary']['rate'])} of codes at a boundary"


def _note(figures: dict[str, Any], records: dict[str, Record]) -> str:
    """Ordinary clips and those made for the purpose, told apart, and what must not be read into the figures."""
    ordinary, boundary = figures["ordinary"], figures["boundary"]
    said = []
    if ordinary["codes"]:
        said.append(f"{ordinary['differ']:,} of {ordinary['codes']:,} codes of ordinary clips differ")
    if boundary["codes"]:
        said.append(
            f"{boundary['differ']:,} of {boundary['codes']:,} ({share(boundary['rate'])}) of clips made to lie where a "
            "last bit decides"
        )
    note = f"{'; '.join(said)}."
    lengths = _figures(records, "lengths")
    if not ordinary["differ"] and lengths and lengths["differ"]:
        note += f" Beside longer clips {share(lengths['rate'])} differ."
    elif not ordinary["differ"] + boundary["differ"]:
        note += " On this machine, with these clips, batches do no harm; that is no promise for others."
    return note


def _values(count: int) -> str:
    return f"{count} value{'s' if count > 1 else ''} per clip"


def _is_of(record: Record, dtype: str, threads: int) -> bool:
    return (record.setting["dtype"], record.setting["threads"]) == (dtype, threads)


def _figures(records: dict[str, Record], experiment: str) -> dict[str, Any]:
    """Nothing where it was not asked, or could not be answered."""
    record = records.get(experiment)
    return {} if record is None or record.verdict == "not checkable" else record.figures
