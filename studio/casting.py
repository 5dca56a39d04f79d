"""From clips to saved voices: what needs the codes of a clip before the library can keep it."""

from dataclasses import dataclass
from pathlib import Path

from studio.audio.files import read
from studio.audio.transcribe import Transcriber
from studio.errors import BuiltInVoice, MissingClip, UnreadableClip
from studio.reference import LARGEST_UPLOAD, Reference, ReferenceDesk
from studio.reference_key import trim_to_span
from studio.store.voice_records import Clip, NewClip, Voice, VoiceCodes, VoiceDetails
from studio.store.voices import VoiceLibrary


@dataclass(frozen=True, kw_only=True)
class AddedVoice:
    """A voice that was just made, and how its codes were got."""

    voice: Voice
    reference: Reference


@dataclass(frozen=True, kw_only=True)
class AddedClip:
    """A clip that was just added or trimmed, and how its codes were got."""

    clip: Clip
    reference: Reference


def add_voice(desk: ReferenceDesk, voices: VoiceLibrary, source: Path | bytes, details: VoiceDetails) -> AddedVoice:
    """Makes a saved voice of a clip's bytes or file, codes filled.

    Raises ClipError, NameTaken or SettingError, with nothing saved.
    """
    voices.check_name(details.name)
    called = details.clip_name or details.name
    content = clip_content(source, called)
    reference = desk.from_file(content, called, trim=details.trim)
    voice = voices.add(details, content, codes=_codes(desk, reference), duration=reference.duration)
    return AddedVoice(voice=voice, reference=reference)


def add_clip(
    desk: ReferenceDesk,
    voices: VoiceLibrary,
    voice: Voice,
    source: Path | bytes,
    *,
    name: str,
    trim: tuple[float, float] | None = None,
    transcript: str = "",
) -> AddedClip:
    """Gives a voice one more clip, codes filled, which is its reference once it is chosen. Raises as `add_voice`."""
    _refuse_builtin(voice)
    content = clip_content(source, name)
    reference = desk.from_file(content, name, trim=trim)
    clip = NewClip(
        content=content,
        name=name,
        trim=trim,
        transcript=transcript,
        duration=reference.duration,
        codes=(_codes(desk, reference),),
    )
    return AddedClip(clip=voices.clips.add(voice.id, clip), reference=reference)


def trim_clip(
    desk: ReferenceDesk,
    voices: VoiceLibrary,
    clip: Clip,
    trim: tuple[float, float] | None,
    *,
    transcript: str | None = None,
) -> AddedClip:
    """Uses another part of a clip, in seconds, or all of it for None; its codes are filled before anything changes.

    Without a transcript of that part the present one is marked as unchecked. Raises ClipError where that part cannot be
    used, SettingError where there is no such part, with nothing changed.
    """
    _refuse_builtin(voices.get(clip.voice_id))
    reference = desk.from_file(voices.clips.content(clip), clip.name, trim=trim)
    codes, duration = _codes(desk, reference), reference.duration
    trimmed = voices.clips.trim(clip.id, trim, transcript=transcript, codes=codes, duration=duration)
    return AddedClip(clip=trimmed, reference=reference)


def write_down(transcriber: Transcriber, source: Path, trim: tuple[float, float] | None) -> str:
    """What is said in a sound file, or in its part between two times in seconds. Raises NoTranscriber or ClipError."""
    transcriber.check()
    clip = read(source, name=source.name)
    return transcriber.transcribe(clip.slice(*trim_to_span(clip, trim)))


def clip_content(source: Path | bytes, name: str) -> bytes:
    """The bytes that are kept with a voice; ClipError where there are none or too many to keep."""
    if isinstance(source, bytes):
        return source
    try:
        if not source.exists():
            raise MissingClip(name)
        if not source.is_file():
            raise UnreadableClip(name, "it is a folder or a device, not a file")
        if (size := source.stat().st_size) > LARGEST_UPLOAD:
            limit = f"it has {size / 2**20:,.0f} MB, and at most {LARGEST_UPLOAD / 2**20:.0f} MB are kept with a voice"
            raise UnreadableClip(name, limit)
        return source.read_bytes()
    except OSError as error:
        raise UnreadableClip(name, (error.strerror or str(error)).lower()) from error


def _codes(desk: ReferenceDesk, reference: Reference) -> VoiceCodes:
    return VoiceCodes(codec=desk.codec, key=reference.key, digest=reference.digest)


def _refuse_builtin(voice: Voice) -> None:
    """Before an encode; the library refuses it too."""
    if voice.builtin:
        raise BuiltInVoice(voice.name)
