"""A bundle into the library: everything in it is checked first, then it is saved whole or not at all."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from studio.bundle_reading import Bundle, comparable, read_bundle
from studio.engine.interface import Engine
from studio.errors import NameTaken, UnknownVoice
from studio.store.voices import Voice, VoiceLibrary
from studio.voice_bundle import clip_record, in_order, open_bundle, voice_record

_OURS = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A clip whose codes in the bundle are not those that this library has under the same key, which stay."""

    clip: str
    key: str
    digest_here: str
    digest_in_bundle: str


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did; `voice` is the one it made, or the same one that was there already."""

    voice: Voice
    already_there: bool
    name_in_bundle: str
    """Another than the voice's where that was taken."""
    differences: tuple[Difference, ...]
    to_fill: tuple[str, ...]
    """Clips whose codes are made here at their first use: the bundle has none for this codec."""


def import_voice(engine: Engine, voices: VoiceLibrary, path: Path) -> Imported:
    """Saves the voice of a bundle under the keys that its audio has here; its codes are taken over, nothing is encoded.

    Codes that the cache has already stay, and a difference is told. A name that is taken becomes a free one. Raises
    ArchiveError or ClipError with nothing written.
    """
    with open_bundle(path) as archive:
        bundle = read_bundle(archive, engine, voices.codec)
    present = _present(voices, bundle)
    voice = present or _save(voices, bundle)
    own = in_order(voices, voice)
    differences = tuple(
        Difference(clip=clip.name, key=entry.key, digest_here=clip.codes_digest, digest_in_bundle=entry.digest)
        for clip, entry in ((own[index], entry) for index, entry in bundle.entries.items())
        if clip.key == entry.key and clip.codes_digest not in (None, entry.digest)
    )
    return Imported(
        voice=voice,
        already_there=present is not None,
        name_in_bundle=bundle.details.name,
        differences=differences,
        to_fill=tuple(clip.name for clip in own if not clip.filled),
    )


def _present(voices: VoiceLibrary, bundle: Bundle) -> Voice | None:
    """The voice of this id where it says and holds the same."""
    try:
        voice = voices.get(bundle.identifier)
    except UnknownVoice:
        return None
    clips = [clip_record(clip, len(voices.clips.content(clip))) for clip in in_order(voices, voice)]
    return voice if comparable(voice_record(voice), clips) == bundle.content else None


def _save(voices: VoiceLibrary, bundle: Bundle) -> Voice:
    """Under the bundle's id where it is one of ours and free, and under a free name."""
    identifier = bundle.identifier if _OURS.fullmatch(bundle.identifier) else None
    while True:
        details = replace(bundle.details, name=voices.free_name(bundle.details.name))
        try:
            return voices.add_whole(
                details,
                bundle.clips,
                usage=bundle.usage,
                identifier=identifier,
                adopted=list(bundle.entries.values()),
            )
        except NameTaken:  # somebody took it between the look and the write
            continue
