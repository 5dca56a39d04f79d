"""A voice in one file: its fields as JSON, the original bytes of every clip, and codes with shape and digest.

Version 1 is a zip of `manifest.json`, `clips/0`, `clips/1`, … (the first is the reference) and `codes/0`, … (int16,
little-endian, row by row). Nothing in it is executable, and nothing is named by what a person typed.
"""

import json
import re
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from studio.store.adopted_codes import AdoptedCodes
from studio.store.archives import MANIFEST, Archive, ArchiveWriter
from studio.store.packed_codes import pack
from studio.store.voice_records import Clip, Voice
from studio.store.voices import VoiceLibrary

FORMAT, VERSION = "solo-studio voice", 1
MOST_CLIPS = 64
LARGEST_CODES = 4 * 2**20
LARGEST_BUNDLE = 512 * 2**20
"""Bytes of all members, unpacked."""
USAGE = ("created", "last_used", "times_used")
SAID = ("name", "description", "sex", "notes", "tags", "language", "consent", "colour")

_MEMBER = re.compile(rf"{re.escape(MANIFEST)}|(clips|codes)/(0|[1-9][0-9]?)")


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What went into a bundle."""

    voice: Voice
    num_clips: int
    unfilled: tuple[str, ...]
    """Names of the clips whose codes are not here, so that they are not in it either."""


def write_bundle(voices: VoiceLibrary, voice: Voice, file: BinaryIO) -> Exported:
    """Writes a voice with all its clips and their codes under the library's codec; StorageError for a lost clip."""
    clips = in_order(voices, voice)
    records: list[dict[str, Any]] = []
    with closing(ArchiveWriter(file)) as archive:
        for index, clip in enumerate(clips):
            content, codes = voices.clips.content(clip), voices.clips.codes(clip)
            archive.add(f"clips/{index}", content)
            if codes is not None:
                archive.add(f"codes/{index}", pack(codes.codes))
            records.append(clip_record(clip, len(content)) | {"codes": None if codes is None else _codes_record(codes)})
        manifest = {"format": FORMAT, "version": VERSION, "voice": voice_record(voice), "clips": records}
        archive.add(MANIFEST, json.dumps(manifest, indent=1).encode(), squeeze=True)
    unfilled = tuple(clip.name for clip, record in zip(clips, records, strict=True) if record["codes"] is None)
    return Exported(voice=voice, num_clips=len(clips), unfilled=unfilled)


def open_bundle(path: Path) -> Archive:
    """ArchiveError where the file is no zip or holds anything that a bundle does not."""
    most = 1 + 2 * MOST_CLIPS
    return Archive(path, may_hold=lambda name: bool(_MEMBER.fullmatch(name)), largest=LARGEST_BUNDLE, most=most)


def in_order(voices: VoiceLibrary, voice: Voice) -> list[Clip]:
    """The clips of a voice, its reference first."""
    return sorted(voices.clips.list(voice.id), key=lambda clip: not clip.is_reference)


def voice_record(voice: Voice) -> dict[str, Any]:
    record = {name: getattr(voice, name) for name in ("id", *SAID, *USAGE)}
    return record | {"tags": list(voice.tags)}


def clip_record(clip: Clip, num_bytes: int) -> dict[str, Any]:
    kept = ("name", "digest", "transcript", "transcript_unchecked", "duration", "created")
    record = {name: getattr(clip, name) for name in kept}
    return record | {"num_bytes": num_bytes, "trim": None if clip.trim is None else list(clip.trim)}


def _codes_record(entry: AdoptedCodes) -> dict[str, Any]:
    return {
        "key": entry.key,
        "codec": entry.codec,
        "shape": list(entry.codes.shape),
        "digest": entry.digest,
        "provenance": asdict(entry.provenance),
    }
