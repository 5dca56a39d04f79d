"""One saved voice as its sheet on the page shows it: what its owner said, its clips, and what is known of its codes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from studio.reference_verify import Verification, VoiceRefill
from studio.store.voice_records import Clip, Voice

_SAID = (
    "id",
    "name",
    "builtin",
    "transcript",
    "transcript_unchecked",
    "notes",
    "tags",
    "language",
    "consent",
    "colour",
)
_OF_A_CLIP = ("id", "name", "trim", "transcript", "transcript_unchecked", "is_reference")


def sheet(voice: Voice, clips: Sequence[Clip], elsewhere: Sequence[str]) -> dict[str, Any]:
    """As JSON can hold it; `elsewhere` says how the place where its codes were filled differs from this one."""
    return {
        **{name: getattr(voice, name) for name in _SAID},
        "clips": [{name: getattr(clip, name) for name in _OF_A_CLIP} | {"about": _about(clip)} for clip in clips],
        "facts": [*_codes(voice, elsewhere), ("made", _moment(voice.created)), ("used", _used(voice))],
    }


def verified(found: Verification) -> str:
    """What a comparison came to, as a sentence."""
    if found.damaged:
        return "The stored codes are damaged. They are made again from the clip when the voice speaks next."
    if found.differing is None:
        return f"Not checkable: {found.not_checkable}."
    where = f" They were filled elsewhere ({'; '.join(found.elsewhere)})." if found.elsewhere else ""
    if found.differing == 0:
        return f"All {found.num_codes:,} codes are those that an encode gives here and now.{where}"
    return (
        f"{found.differing:,} of {found.num_codes:,} codes would come out otherwise here. Nothing was changed.{where}"
    )


def refilled(made: VoiceRefill) -> str:
    if made.changed:
        return f"Encoded in {made.encode_ms:.0f} ms: the codes are others now ({made.digest[:6]}). Takes keep theirs."
    return f"Encoded in {made.encode_ms:.0f} ms: the same codes as before."


def _about(clip: Clip) -> str:
    used = f"{clip.duration:.2f} s used" if clip.duration else "not encoded yet"
    return f"{used} · reference" if clip.is_reference else used


def _codes(voice: Voice, elsewhere: Sequence[str]) -> list[tuple[str, str]]:
    provenance = voice.provenance
    if not voice.filled or provenance is None:
        return [("state", "not encoded yet: done once, when it first speaks")]
    threads = f"{provenance.num_threads} thread{'' if provenance.num_threads == 1 else 's'}"
    where = f"{provenance.device}, torch {provenance.torch_version}, {threads}"
    return [
        ("state", f"filled elsewhere: {'; '.join(elsewhere)}" if elsewhere else "filled, kept for ever"),
        ("size", f"{voice.num_frames} frames of {voice.num_codebooks} codes, {voice.num_bytes:,} bytes"),
        ("sound", f"{voice.duration:.2f} s"),
        ("digest", voice.codes_digest or ""),
        ("key", voice.key or ""),
        ("filled", f"{_moment(provenance.filled)} in {1000 * provenance.encode_seconds:.0f} ms on {where}"),
    ]


def _used(voice: Voice) -> str:
    last = f", last {_moment(voice.last_used)}" if voice.last_used else ""
    return f"{voice.times_used} time{'' if voice.times_used == 1 else 's'}{last}"


def _moment(seconds: float) -> str:
    """Date and minute where the studio runs."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
