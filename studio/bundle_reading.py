"""Reads a bundle and believes nothing in it: types, sizes, digests, keys and codes are checked before their use."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from studio.audio import files
from studio.engine.interface import Engine
from studio.errors import DegenerateCodes
from studio.reference import LARGEST_UPLOAD
from studio.reference_check import check_codes
from studio.reference_key import cache_key, trim_to_span
from studio.store import packed_codes
from studio.store.adopted_codes import AdoptedCodes
from studio.store.archives import MANIFEST, Archive
from studio.store.code_cache import Provenance
from studio.store.strict_fields import Fields
from studio.store.voice_names import MAX_LENGTH
from studio.store.voice_records import (
    LONGEST,
    LONGEST_FILE_NAME,
    LONGEST_TAG,
    MOST_TAGS,
    NewClip,
    Usage,
    VoiceCodes,
    VoiceDetails,
)
from studio.voice_bundle import FORMAT, LARGEST_CODES, MOST_CLIPS, USAGE, VERSION

_LONGEST_WORD = 200
"""Characters of a device's, a version's or a codec's name."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle's content, all of it checked."""

    identifier: str
    details: VoiceDetails
    usage: Usage
    clips: list[NewClip]
    entries: dict[int, AdoptedCodes]
    """By the number of their clip."""
    content: dict[str, Any]
    """What must be equal for two voices of one id to be the same, as `comparable` gives it."""


def comparable(voice: dict[str, Any], clips: list[dict[str, Any]]) -> dict[str, Any]:
    """A voice's and its clips' records without their use and what follows from the rest."""
    said = {name: value for name, value in voice.items() if name not in USAGE}
    left_out = ("codes", "created", "duration")
    return {"voice": said, "clips": [{name: clip[name] for name in clip if name not in left_out} for clip in clips]}


def read_bundle(archive: Archive, engine: Engine, codec: str) -> Bundle:
    """Everything in a bundle; `codec` is the digest of the codec whose codes are taken over.

    ArchiveError where anything is missing, too large, of another type or of other content than it says; ClipError where
    a clip cannot be decoded.
    """
    manifest = archive.manifest(FORMAT, VERSION)
    fields = Fields(manifest, MANIFEST, archive.refusal)
    fields.text("format", longest=40)
    fields.whole("version", largest=VERSION)
    said = fields.object("voice")
    identifier, usage, details = said.text("id", longest=64), _usage(said), _details(said)
    clips: list[NewClip] = []
    entries: dict[int, AdoptedCodes] = {}
    for index, each in enumerate(fields.objects("clips", most=MOST_CLIPS)):
        clip, entry = _clip(archive, each, index, engine, codec)
        clips.append(clip)
        if entry is not None:
            entries[index] = entry
    fields.done()
    if not clips:
        raise archive.refusal("it has no clip")
    unnamed = archive.names - {MANIFEST} - {f"clips/{index}" for index in range(len(clips))}
    unnamed -= {f"codes/{index}" for index, each in enumerate(manifest["clips"]) if each["codes"] is not None}
    if unnamed:
        raise archive.refusal(f"{min(unnamed)} is in it, and its {MANIFEST} does not say so")
    content = comparable(manifest["voice"], manifest["clips"])
    return Bundle(identifier=identifier, details=details, usage=usage, clips=clips, entries=entries, content=content)


def _usage(said: Fields) -> Usage:
    return Usage(
        created=said.seconds("created"),
        last_used=said.optional_seconds("last_used"),
        times_used=said.whole("times_used", largest=2**53),
    )


def _details(said: Fields) -> VoiceDetails:
    texts: dict[str, Any] = {name: said.text(name, longest=LONGEST[name]) for name in LONGEST if name != "transcript"}
    tags = said.texts("tags", most=MOST_TAGS, longest=LONGEST_TAG)
    details = VoiceDetails(
        name=said.text("name", longest=MAX_LENGTH), tags=tags, colour=said.text("colour", longest=7), **texts
    )
    said.done()
    return details


def _clip(
    archive: Archive, fields: Fields, index: int, engine: Engine, codec: str
) -> tuple[NewClip, AdoptedCodes | None]:
    """One clip under the key that its audio has here, and its codes where they are of this codec."""
    member = f"clips/{index}"
    content = archive.read(member, largest=LARGEST_UPLOAD)
    if fields.whole("num_bytes", largest=LARGEST_UPLOAD) != len(content):
        raise archive.refusal(f"{member} has another size than its {MANIFEST} says")
    if fields.digest("digest") != hashlib.sha256(content).hexdigest():
        raise archive.refusal(f"{member} is damaged: its digest is another")
    clip = NewClip(
        content=content,
        name=fields.text("name", longest=LONGEST_FILE_NAME),
        trim=_trim(fields),
        transcript=fields.text("transcript", longest=LONGEST["transcript"]),
        transcript_unchecked=fields.flag("transcript_unchecked"),
        duration=fields.seconds("duration", largest=files.LONGEST_FILE),
        created=fields.seconds("created"),
    )
    said = fields.optional_object("codes")
    fields.done()
    sound = files.read(content, name=clip.name or member)
    span = trim_to_span(sound, clip.trim)
    if said is None:
        return clip, None
    entry = _entry(archive, said, index, key=cache_key(sound, span, engine.codec))
    if entry.codec != codec:
        return clip, None
    _check(archive, entry, index, engine, engine.prepare(sound.slice(*span)).num_samples)
    codes = VoiceCodes(codec=codec, key=entry.key, digest=entry.digest)
    duration = entry.codes.shape[1] / engine.codec.frame_rate
    return replace(clip, duration=duration, codes=(codes,)), entry


def _trim(fields: Fields) -> tuple[float, float] | None:
    times = fields.optional_times("trim", count=2)
    return None if times is None else (times[0], times[1])


def _entry(archive: Archive, said: Fields, index: int, *, key: str) -> AdoptedCodes:
    """The codes of a clip, whole and with the digest they say; of which codec they are is not looked at yet."""
    member = f"codes/{index}"
    said.digest("key")  # told for a person; what counts is the key that the audio has here
    shape = said.whole_numbers("shape", count=2, largest=LARGEST_CODES)
    packed = archive.read(member, largest=LARGEST_CODES)
    digest = said.digest("digest")
    try:
        codes = packed_codes.unpack(packed, *shape)
    except ValueError as error:
        raise archive.refusal(f"{member} is not of the shape its {MANIFEST} says") from error
    if packed_codes.digest(packed, *shape) != digest:
        raise archive.refusal(f"{member} is damaged: its digest is another")
    codec, provenance = said.digest("codec"), _provenance(said.object("provenance"))
    said.done()
    return AdoptedCodes(key=key, codec=codec, codes=codes, digest=digest, provenance=provenance)


def _check(archive: Archive, entry: AdoptedCodes, index: int, engine: Engine, num_samples: int) -> None:
    """Codes of our codec must be such as it could have given for this clip."""
    try:
        check_codes(entry.codes, num_samples, engine.codec)
    except DegenerateCodes as error:
        raise archive.refusal(f"codes/{index} cannot be codes of clips/{index}") from error


def _provenance(said: Fields) -> Provenance:
    known = Provenance(
        device=said.text("device", longest=_LONGEST_WORD),
        torch_version=said.text("torch_version", longest=_LONGEST_WORD),
        cuda_version=said.optional_text("cuda_version", longest=_LONGEST_WORD),
        num_threads=said.whole("num_threads", largest=2**16),
        encode_seconds=said.seconds("encode_seconds"),
        filled=said.seconds("filled"),
        codec_id=said.text("codec_id", longest=_LONGEST_WORD),
        recipe=said.text("recipe", longest=_LONGEST_WORD),
    )
    said.done()
    return known
