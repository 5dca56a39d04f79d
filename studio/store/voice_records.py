"""What a saved voice and its clips are, as plain values; and what an owner may say about them, checked."""

import hashlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from studio.errors import SettingError
from studio.store.code_cache import Provenance
from studio.store.voice_names import clean_name, fold, storable

COLOURS = ("#b4552d", "#8a6d1f", "#5c7a29", "#2f7d5b", "#2b7a8c", "#3d68a8", "#6a58b0", "#94509c", "#b04a6f", "#7a6a5d")
"""One of them, by the voice's id, is the picture colour of a voice whose owner chose none."""
LONGEST = {"transcript": 10_000, "notes": 10_000, "consent": 2_000, "description": 500, "language": 64, "sex": 64}
"""Characters of each text beside the name."""
MOST_TAGS, LONGEST_TAG = 32, 64
LONGEST_FILE_NAME = 1_000

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, kw_only=True)
class VoiceCodes:
    """The cache entry of a clip under one codec: `codec` is the digest of all key fields that are not the clip's."""

    codec: str
    key: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class VoiceDetails:
    """What its owner says about a voice, and about the clip that is its reference."""

    name: str
    transcript: str = ""
    description: str = ""
    sex: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    language: str = ""
    consent: str = ""
    colour: str = ""
    """#rrggbb; blank for one that the voice's id chooses."""
    clip_name: str = ""
    """What the clip's file was called; shown, and never used as a path."""
    trim: tuple[float, float] | None = None
    """Start and end in seconds of the part that is the reference; None for the whole clip."""


@dataclass(frozen=True, kw_only=True)
class VoiceChanges:
    """What is to change in a voice; None stays as it is. The transcript is that of its reference clip."""

    name: str | None = None
    transcript: str | None = None
    description: str | None = None
    sex: str | None = None
    notes: str | None = None
    tags: tuple[str, ...] | None = None
    language: str | None = None
    consent: str | None = None
    colour: str | None = None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """When a voice was made and how often it spoke; seconds since 1970."""

    created: float = field(default_factory=time.time)
    last_used: float | None = None
    times_used: int = 0


@dataclass(frozen=True, kw_only=True)
class NewClip:
    """A recording on its way into the library, with its codes under each codec that has them."""

    content: bytes
    """The original bytes."""
    name: str = ""
    trim: tuple[float, float] | None = None
    transcript: str = ""
    transcript_unchecked: bool = False
    duration: float = 0.0
    created: float = field(default_factory=time.time)
    codes: tuple[VoiceCodes, ...] = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Clip:
    """One recording of a voice; `key` and `codes_digest` are the library's codec's, None before its first fill."""

    id: str
    voice_id: str
    name: str
    digest: str
    """SHA-256 of the original bytes."""
    trim: tuple[float, float] | None
    transcript: str
    transcript_unchecked: bool
    """Whether the clip was trimmed after its transcript was written, so that it may say too much."""
    duration: float
    """Seconds of the part that is used; 0 before the first fill."""
    created: float
    key: str | None
    codes_digest: str | None
    filled: bool
    is_reference: bool


@dataclass(frozen=True, kw_only=True)
class Voice:
    """A saved, named voice and the clip that is its reference; `key` and `codes_digest` as in `Clip`."""

    id: str
    name: str
    key: str | None
    codes_digest: str | None
    filled: bool
    """Whether the cache holds the codes of `key` now."""
    num_codebooks: int | None
    num_frames: int | None
    """Shape of those codes; None while they are not filled."""
    provenance: Provenance | None
    """Where they were filled; None while they are not."""
    transcript: str
    transcript_unchecked: bool
    description: str
    sex: str
    notes: str
    tags: tuple[str, ...]
    language: str
    consent: str
    colour: str
    builtin: bool
    clip_id: str
    clip_name: str
    clip_digest: str
    num_clips: int
    trim: tuple[float, float] | None
    duration: float
    """Seconds of the reference; 0 before the first fill."""
    created: float
    last_used: float | None
    times_used: int

    @property
    def num_bytes(self) -> int:
        """Bytes of its codes in the cache."""
        return 2 * (self.num_codebooks or 0) * (self.num_frames or 0)


def checked(details: VoiceDetails) -> VoiceDetails:
    """The details as they are stored; SettingError where one of them cannot be."""
    texts: dict[str, Any] = {name: clean_text(name, getattr(details, name)) for name in LONGEST}
    name, tags, colour = clean_name(details.name), clean_tags(details.tags), clean_colour(details.colour)
    clip_name = clean_file_name(details.clip_name)
    return replace(details, **texts, name=name, tags=tags, colour=colour, clip_name=clip_name)


def clean_file_name(name: str) -> str:
    """What a clip's file was called, its end where it is too long to keep."""
    return storable(name).replace("\0", "")[-LONGEST_FILE_NAME:]


def clean_text(field: str, text: str) -> str:
    """One of the texts in LONGEST without space at its ends."""
    cleaned = storable(text).replace("\0", "").strip()
    if len(cleaned) > LONGEST[field]:
        raise SettingError(f"The voice's {field}", f"{cleaned[:40]}…", f"use at most {LONGEST[field]:,} characters.")
    return cleaned


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in the order given, each once whatever its case."""
    kept: dict[str, str] = {}
    for tag in tags:
        cleaned = " ".join(storable(tag).replace("\0", "").split())
        if len(cleaned) > LONGEST_TAG:
            raise SettingError("A tag", f"{cleaned[:40]}…", f"use at most {LONGEST_TAG} characters.")
        if cleaned:
            kept.setdefault(fold(cleaned), cleaned)
    if len(kept) > MOST_TAGS:
        raise SettingError("The tags", f"{len(kept)} of them", f"use at most {MOST_TAGS}.")
    return tuple(kept.values())


def clean_colour(colour: str) -> str:
    if colour and not _COLOUR.fullmatch(colour):
        raise SettingError("The colour", colour[:40], "write it as #rrggbb, for example #2b7a8c.")
    return colour.lower()


def colour_of(identifier: str) -> str:
    """The picture colour of a voice without a chosen one: always the same for the same id."""
    return COLOURS[hashlib.sha256(identifier.encode()).digest()[0] % len(COLOURS)]
