"""A run as one HTML file: it opens offline in any browser, and carries the whole JSON for whoever reads on from it."""

import json
from dataclasses import asdict
from html import escape

from studio.invariance.headline import headlines
from studio.invariance.record import LabRun, Record, worst
from studio.invariance.report_drawings import table
from studio.invariance.report_sections import section
from studio.settings import assets_dir

_CLASSES = {"holds": "holds", "differs": "differs", "broken": "broken", "not checkable": "unknown"}
_WORDS = (
    ("holds", "equal, or as promised"),
    ("differs", "batches of other shapes gave other codes, which they may; the cached value is that of the clip alone"),
    ("broken", "something differs that must be equal"),
    ("not checkable", "nothing can be said here"),
)


def report_page(run: LabRun) -> str:
    """The whole page."""
    style = (assets_dir() / "lab_report.css").read_text(encoding="utf-8")
    title = f"Does a codec's batch change its codes? {run.environment.codec_id} on {run.environment.processor}"
    grouped: dict[str, list[Record]] = {}
    for record in run.records:
        grouped.setdefault(record.experiment, []).append(record)
    body = "".join(_experiment(records) for records in grouped.values())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head><body><main>'
        f"<h1>{escape(title)}</h1>{_headlines(run)}{_summary(grouped)}{_environment(run)}{body}</main>{_embedded(run)}</body></html>\n"
    )


def _headlines(run: LabRun) -> str:
    """Alone and in batches, in one line for each setting."""
    return "".join(
        f"<p><strong>Alone: {escape(each.solo or 'not asked')}. In batches: {escape(each.batched or 'not asked')}."
        f'</strong> <span class="note">{escape(each.note)} {escape(each.dtype)}, {each.threads} thr.</span></p>'
        for each in headlines(run.records)
    )


def _environment(run: LabRun) -> str:
    known = asdict(run.environment)
    clips = known.pop("clips")
    rows = [[name.replace("_", " "), _plain(value)] for name, value in known.items()]
    names = table(["clip", "SHA-256 of its prepared samples"], [[name, digest] for name, digest in clips.items()])
    return f"<details open><summary>Where this was measured</summary>{table(['', ''], rows)}{names}</details>"


def _plain(value: object) -> object:
    return str(value) if isinstance(value, int | float) else value


def _summary(grouped: dict[str, list[Record]]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{name}">{name}</a></td><td>{escape(records[0].question)}</td>'
        f"<td>{_verdict(worst(record.verdict for record in records))}</td></tr>"
        for name, records in grouped.items()
    )
    words = "".join(f"<p>{_verdict(name)}: {escape(text)}</p>" for name, text in _WORDS)
    return (
        '<div class="wide"><table><thead><tr><th>experiment</th><th>question</th><th>verdict</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div><div class='note'>{words}</div>"
    )


def _experiment(records: list[Record]) -> str:
    first = records[0]
    told = "".join(_record(record) for record in records)
    return f'<section id="{first.experiment}"><h2>{escape(first.question)}</h2>{told}</section>'


def _record(record: Record) -> str:
    setting = record.setting
    threads = setting["threads"]
    where = f"{setting['dtype']}, {threads} thread{'s' if threads != 1 else ''}, seed {setting['seed']}"
    return (
        f"<p>{_verdict(record.verdict)}: {escape(record.sentence)}</p>"
        f'<p class="setting">{record.experiment}; {escape(where)}; {record.seconds:.1f} s</p>{section(record)}'
    )


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {_CLASSES[verdict]}">{verdict}</span>'


def _embedded(run: LabRun) -> str:
    """The records themselves. No tag can end the block early, for no `<` stands in it."""
    content = json.dumps(run.to_json()).replace("<", "\\u003c")
    return f'<script type="application/json" id="lab-run">{content}</script>'
