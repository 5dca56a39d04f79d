"""Voices and takes as rows of HTML, every word of a user escaped.

The rows are made here and not in a template of gr.HTML: gradio evaluates the filled-in template as JavaScript, so that
a voice named `${...}` would run in the page of whoever sees it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from studio.audio.take_formats import FORMATS
from studio.store.takes import Take
from studio.store.voices import Voice

Row = dict[str, str]
_BARS = 16


def voice_list(voices: Sequence[Voice], *, selected: str | None, sorted_by_user: bool = False) -> dict[str, Any]:
    """What the list of voices shows: in the order somebody asked for, else the user's own first, newest at the top,
    then the built-in ones."""
    if not sorted_by_user:
        own = sorted((voice for voice in voices if not voice.builtin), key=lambda voice: -voice.created)
        voices = [*own, *(voice for voice in voices if voice.builtin)]
    return {"items": [voice_row(voice) for voice in voices], "selected": selected}


def take_list(takes: Sequence[Take], *, total: int) -> dict[str, Any]:
    """What the list of takes shows: these, newest first, and whether there are more."""
    return {"items": [take_row(take) for take in takes], "more": len(takes) < total}


def seal(digest: str | None) -> str:
    """A small drawing of a digest: equal codes look equal, other codes look different."""
    heights = [int(character, 16) for character in (digest or "0" * _BARS)[:_BARS]]
    bars = "".join(
        f'<rect x="{3 * index}" y="{15 - (2 + height)}" width="2" height="{2 * (2 + height)}" rx="1"/>'
        for index, height in enumerate(heights)
    )
    return f'<svg class="seal" viewBox="0 -3 47 36" aria-hidden="true" focusable="false">{bars}</svg>'


def voice_row(voice: Voice) -> Row:
    name, identifier = escape(voice.name), escape(voice.id)
    remove = "" if voice.builtin else _remove(voice.id, f"Remove {voice.name}", _question(voice))
    markup = f"""<li class="voice" style="--mark: {escape(voice.colour)}">
      <input type="radio" name="voice" id="voice-{identifier}" value="{identifier}"
        aria-describedby="about-{identifier}">
      <label for="voice-{identifier}">
        {seal(voice.codes_digest)}
        <span class="name" dir="auto">{name}</span>
        <span class="about" id="about-{identifier}">{escape(_about(voice))}
          <span class="codes">{escape(_codes(voice))}</span></span>
      </label>
      <button type="button" class="play" data-play="/voices/{identifier}/clip" aria-pressed="false"
        aria-label="Play the clip of {name}" title="Play the clip"></button>
      <button type="button" class="details" data-details="{identifier}" aria-label="Details of {name}"
        title="Details: words, tags, clips, codes">⋯</button>
      {remove}
    </li>"""
    return {"id": voice.id, "html": markup}


def _about(voice: Voice) -> str:
    said = voice.description or (f"Your clip of {voice.duration:.1f} s" if voice.duration else "Your clip")
    return " · ".join([said, *voice.tags])


def _codes(voice: Voice) -> str:
    if not voice.filled or voice.codes_digest is None:
        return "not encoded yet"
    used = f" · used {voice.times_used}×" if voice.times_used else ""
    return f"filled · {voice.num_frames} frames · {voice.num_bytes:,} bytes · digest {voice.codes_digest[:6]}{used}"


def _question(voice: Voice) -> str:
    return f"Remove the voice “{voice.name}” and its clip? Takes made with it stay."


def take_row(take: Take) -> Row:
    identifier, voice = escape(take.id), escape(take.voice_name or "a clip")
    created = datetime.fromtimestamp(take.created, UTC).isoformat()
    marks = "".join(f'<span class="mark {kind}">{escape(text)}</span>' for kind, text in _marks(take))
    sound = (
        '<p class="lost">The file of this take is missing. Remove the take, or put its file back.</p>'
        if take.missing
        else f'<audio controls preload="none" data-src="/takes/{identifier}/audio" aria-label="By {voice}"></audio>'
    )
    error = f'<p class="lost">{escape(take.error)}</p>' if take.error else ""
    markup = f"""<li class="take">
      {seal(take.codes_digest)}
      <p class="who"><span class="name" dir="auto">{voice}</span> <time datetime="{created}"></time>{marks}</p>
      <p class="script" dir="auto">{escape(take.script)}</p>
      {error}{sound}
      <p class="figures">{escape(_figures(take))}</p>
      <input class="note" data-note="{identifier}" value="{escape(take.note)}" maxlength="2000" dir="auto"
        placeholder="A note" aria-label="Note on this take by {voice}">
      <div class="tools">{_star(take)}{_downloads(take)}
        <button type="button" class="quiet-button" data-again="{identifier}"
          title="Speak it once more, with its own codes and seed: the same samples">Again</button>
        {_remove(take.id, "Remove", "Remove this take and its file?", text="Remove")}</div>
    </li>"""
    return {"id": take.id, "html": markup}


def _star(take: Take) -> str:
    pressed = "true" if take.favourite else "false"
    return (
        f'<button type="button" class="quiet-button star" data-star="{escape(take.id)}" aria-pressed="{pressed}" '
        f'aria-label="Favourite" title="A favourite never goes by itself"></button>'
    )


def _downloads(take: Take) -> str:
    """A link for each kind of file, behind one button."""
    if take.missing:
        return ""
    links = "".join(
        f'<a download data-href="/takes/{escape(take.id)}/download?as={kind[1:]}">{kind[1:]}</a>' for kind in FORMATS
    )
    return f'<details class="downloads"><summary class="quiet-button">Download</summary><p>{links}</p></details>'


def _marks(take: Take) -> list[tuple[str, str]]:
    kept = {"hit": "codes from cache", "kept": "codes kept with an earlier take"}
    cache = kept.get(take.cache, f"encoded, {take.encode_ms:.0f} ms")
    return [*([("partial", "partial")] if take.partial else []), ("cache", cache)]


def _figures(take: Take) -> str:
    speed = take.options.get("speed", 1.0)
    parts = [
        f"{take.duration:.1f} s",
        take.first_audio_ms is not None and f"first audio {take.first_audio_ms:.0f} ms",
        take.realtime_speed is not None and f"{take.realtime_speed:.1f}\u00d7 real time",
        f"{take.engine} on {take.device}",
        f"seed {take.seed}",
        speed != 1.0 and f"speed {speed:g}",
    ]
    return " · ".join(str(part) for part in parts if part)


def _remove(identifier: str, label: str, question: str, *, text: str = "") -> str:
    kind = "quiet-button" if text else "remove"
    return (
        f'<button type="button" class="{kind}" data-remove="{escape(identifier)}" data-question="{escape(question)}" '
        f'aria-label="{escape(label)}" title="{escape(label)}">{escape(text)}</button>'
    )
