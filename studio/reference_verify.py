"""Whether the cache still holds what an encode would give today: compared on request, replaced on request only."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from studio.errors import StudioError
from studio.reference import ReferenceDesk
from studio.store.code_cache import CachedCodes, Provenance, Refilled
from studio.store.voice_records import Clip
from studio.store.voices import Voice, VoiceCodes, VoiceLibrary

_OTHER_CODEC = "it was filled by another codec than the one that is loaded"
_NOT_KEPT = "its clip was not kept"
_NOT_FILLED = "it has no codes yet"
_OTHER_SAMPLES = "its kept clip decodes to other samples now"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """One entry against a solo encode of its kept clip."""

    key: str | None
    """None for a clip that was never filled."""
    name: str
    """Of the voice that uses it; blank for an entry that none uses."""
    damaged: bool = False
    """Whether the stored codes do not fit their digest; the next use repairs them from the clip."""
    digest: str | None = None
    """Of the stored codes."""
    digest_now: str | None = None
    """Of the codes that an encode gives here and now."""
    num_codes: int = 0
    differing: int | None = None
    """Codes that differ; None where they were not compared."""
    elsewhere: tuple[str, ...] = ()
    """How the place where it was filled differs from this one, as "torch 2.7.0, here 2.13.0"; empty: filled here."""
    not_checkable: str = ""
    """Why they were not compared."""

    @property
    def passed(self) -> bool:
        return self.differing == 0 and not self.damaged


@dataclass(frozen=True, kw_only=True)
class VoiceRefill:
    """A voice's codes before and after a refill."""

    key: str
    name: str
    digest_before: str | None
    digest: str
    encode_ms: float
    num_frames: int

    @property
    def changed(self) -> bool:
        return self.digest_before not in (None, self.digest)


def verify_voice(desk: ReferenceDesk, voices: VoiceLibrary, voice: Voice) -> Verification:
    """Encodes the voice's kept clip alone and compares; nothing is stored, replaced or counted."""
    return verify_clip(desk, voices, voices.clips.get(voice.clip_id), voice.name)


def verify_clip(desk: ReferenceDesk, voices: VoiceLibrary, clip: Clip, name: str) -> Verification:
    """As `verify_voice`, for any clip of a voice."""
    if clip.key is None or not clip.filled:
        return Verification(key=clip.key, name=name, not_checkable=_NOT_FILLED)
    entry = desk.cache.look(clip.key)
    if entry is None:
        return Verification(key=clip.key, name=name, damaged=True, not_checkable="its stored codes are damaged")
    elsewhere = filled_elsewhere(desk, entry.provenance)
    try:
        key, part = desk.identify(voices.clips.content(clip), name, clip.trim)
        if key != clip.key:
            return _unchecked(entry, name, elsewhere, _OTHER_SAMPLES)
        now = CachedCodes.of(key, desk.solo.encode(part).codes, entry.provenance)
    except StudioError as error:
        return _unchecked(entry, name, elsewhere, str(error))
    return Verification(
        key=key,
        name=name,
        digest=entry.digest,
        digest_now=now.digest,
        num_codes=entry.codes.size,
        differing=count_differing(entry.codes, now.codes),
        elsewhere=elsewhere,
    )


def verify_cache(desk: ReferenceDesk, voices: VoiceLibrary) -> Iterator[Verification]:
    """Every entry in turn, those that no kept clip stands behind as not checkable."""
    kept = {clip.key: (clip, voice) for voice in voices.list() for clip in voices.clips.list(voice.id) if clip.key}
    for key, codec in desk.cache.stored_keys():
        if key in kept:
            clip, voice = kept[key]
            yield verify_clip(desk, voices, clip, voice.name)
            continue
        reason = _NOT_KEPT if codec == desk.codec else _OTHER_CODEC
        entry = desk.cache.look(key)
        if entry is None:
            yield Verification(key=key, name="", damaged=True, not_checkable=reason)
        else:
            yield _unchecked(entry, "", filled_elsewhere(desk, entry.provenance), reason)


def refill_voice(desk: ReferenceDesk, voices: VoiceLibrary, voice: Voice) -> VoiceRefill:
    """Encodes the voice's kept clip alone and puts the codes in the place of those it has, in every process.

    Raises ClipError or StorageError where the clip cannot be used, with the old codes in place.
    """
    key, part = desk.identify(voices.clip_bytes(voice), voice.name, voice.trim)
    refilled = desk.refill(key, part, voice.name)
    entry = refilled.entry
    num_frames = entry.codes.shape[1]
    codes = VoiceCodes(codec=desk.codec, key=key, digest=entry.digest)
    voices.remember_codes(voice, codes, duration=num_frames / desk.engine.codec.frame_rate)
    return VoiceRefill(
        key=key,
        name=voice.name,
        digest_before=_before(refilled, voice, key),
        digest=entry.digest,
        encode_ms=1000 * entry.provenance.encode_seconds,
        num_frames=num_frames,
    )


def filled_elsewhere(desk: ReferenceDesk, there: Provenance) -> tuple[str, ...]:
    """How the place where an entry was filled differs from this one; it stays valid all the same."""
    here = desk.engine.environment
    fields = {"device": "device", "torch_version": "torch", "cuda_version": "CUDA", "num_threads": "threads"}
    return tuple(
        f"{word} {getattr(there, field)}, here {getattr(here, field)}"
        for field, word in fields.items()
        if getattr(there, field) != getattr(here, field)
    )


def count_differing(stored: np.ndarray, now: np.ndarray) -> int:
    """Codes `(num_codebooks, num_frames)` that differ; all of them where the shapes do."""
    return int((stored != now).sum()) if stored.shape == now.shape else max(stored.size, now.size)


def _unchecked(entry: CachedCodes, name: str, elsewhere: tuple[str, ...], reason: str) -> Verification:
    return Verification(
        key=entry.key,
        name=name,
        digest=entry.digest,
        num_codes=entry.codes.size,
        elsewhere=elsewhere,
        not_checkable=reason,
    )


def _before(refilled: Refilled, voice: Voice, key: str) -> str | None:
    """The digest in the row, else the one that the voice remembers of this key."""
    remembered = voice.codes_digest if voice.key == key else None
    return refilled.digest_before or remembered
