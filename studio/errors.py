"""Every mistake a user can make, as a sentence that names what was wrong and what to do about it.

StudioError
├── ClipError                   the reference clip cannot be used
│   ├── MissingClip
│   ├── UnreadableClip
│   ├── EmptyClip
│   ├── SilentClip
│   ├── NoSpeech
│   ├── ReferenceTooShort
│   ├── ReferenceTooLong
│   ├── ClipTooLarge
│   ├── TooManyChannels
│   └── DegenerateCodes
├── ScriptError                 the text cannot be spoken
│   ├── NothingToSpeak
│   ├── UnspeakableScript
│   ├── ScriptTooLong
│   └── BadPauseTag
├── NotFound                    there is no such thing in the library
│   ├── UnknownVoice
│   ├── UnknownClip
│   ├── UnknownTake
│   ├── UnknownEngine
│   └── UnknownModel
├── SettingError                an option has a value that cannot be used
├── NameTaken
├── BuiltInVoice                a built-in voice cannot be changed or removed
├── ReferenceClip               the clip a voice speaks after cannot be removed
├── OtherEngine                 a take cannot be made again, because what made it is not here
├── ArchiveError                a bundle or a backup is not one of ours, or is damaged
├── LibraryInUse                the library cannot be replaced while a program has it open
├── LanesDiffer                 encodes that run at once would not be canonical on this device
├── StudioBusy                  as many speeches as the studio takes are under way
├── NoTranscriber               what a clip says cannot be written down here
├── WeightsError                the model's files are missing or damaged
│   └── CheckpointError         those of a model that was downloaded
├── ModelError                  a model cannot be downloaded, kept or loaded; its kinds are in engine/model_errors.py
└── StorageError                the data folder cannot be read or written

Only the borders (page, server, command line) catch StudioError; anything else is a bug and surfaces as a traceback.
"""


class StudioError(Exception):
    """A user's mistake; its text is one or two plain sentences, cure included."""


class ClipError(StudioError):
    """The reference clip cannot be used."""


class MissingClip(ClipError):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no file {name!r}. Check the path, or drop the clip on the page.")


class UnreadableClip(ClipError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name!r} cannot be read as audio ({reason}). Use wav, flac, mp3, ogg, m4a or webm.")


class EmptyClip(ClipError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} holds no samples. Record or export the clip again.")


class SilentClip(ClipError):
    def __init__(self, peak: float) -> None:
        super().__init__(f"The clip is silent (peak {peak:.0f} dBFS). Record again closer to the microphone.")


class NoSpeech(ClipError):
    def __init__(self, duration: float) -> None:
        super().__init__(f"No speech was found in this clip of {duration:.1f} s. Use 3 to 10 s of one person speaking.")


class ReferenceTooShort(ClipError):
    def __init__(self, duration: float, minimum: float) -> None:
        super().__init__(f"The reference is {duration:.2f} s long; {minimum:g} s or more is needed, 3 to 10 s is best.")


class ReferenceTooLong(ClipError):
    def __init__(self, duration: float, maximum: float) -> None:
        super().__init__(
            f"The reference is {duration:.1f} s long; at most {maximum:g} s can be used. Trim it to its best 3 to 10 s."
        )


class ClipTooLarge(ClipError):
    def __init__(self, channels: int, sample_rate: int, maximum: int) -> None:
        super().__init__(
            f"The clip has more than {maximum // 1_000_000} million samples in {channels} channel(s) at "
            f"{sample_rate / 1000:g} kHz, too many to read. Trim it to its best 3 to 10 s, or export it as mono."
        )


class TooManyChannels(ClipError):
    def __init__(self, channels: int, maximum: int) -> None:
        super().__init__(
            f"The clip has {channels} channels; this voice model takes at most {maximum}. Export it as mono or stereo."
        )


class DegenerateCodes(ClipError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"The clip's codes are not usable ({reason}), so nothing was stored. Try another clip.")


class ScriptError(StudioError):
    """The text cannot be spoken."""


class NothingToSpeak(ScriptError):
    def __init__(self) -> None:
        super().__init__("There is nothing to speak: the text has no words. Type a sentence.")


class UnspeakableScript(ScriptError):
    def __init__(self, sample: str, languages: str) -> None:
        super().__init__(
            f"This voice model speaks {languages}; it cannot speak {sample!r}. Write the text in {languages}."
        )


class ScriptTooLong(ScriptError):
    def __init__(self, length: int, maximum: int) -> None:
        super().__init__(f"The text has {length:,} characters; at most {maximum:,} are spoken at once. Split it.")


class BadPauseTag(ScriptError):
    def __init__(self, tag: str, maximum: float) -> None:
        super().__init__(f"{tag!r} is not a pause. Write for example [pause 0.5s]; at most {maximum:g} s.")


class NotFound(StudioError):
    """There is no such thing in the library."""


class UnknownVoice(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no voice {name!r}. `voices list` shows the voices there are.")


class UnknownClip(NotFound):
    def __init__(self, identifier: str) -> None:
        super().__init__(f"There is no clip {identifier!r}. `voices show` lists the clips of a voice.")


class UnknownTake(NotFound):
    def __init__(self, identifier: str) -> None:
        super().__init__(f"There is no take {identifier!r}. It may have been removed; reload the page.")


class UnknownEngine(NotFound):
    def __init__(self, name: str, known: str) -> None:
        super().__init__(f"There is no engine {name!r}. Choose one of: {known}.")


class UnknownModel(NotFound):
    def __init__(self, name: str, known: str) -> None:
        super().__init__(f"There is no model {name!r}. Choose one of: {known}.")


class SettingError(StudioError):
    def __init__(self, setting: str, value: object, cure: str) -> None:
        super().__init__(f"{setting} cannot be {value!r}: {cure}")


class NameTaken(StudioError):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is already a voice named {name!r}. Choose another name, or remove that voice first.")


class BuiltInVoice(StudioError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is a built-in voice and stays. Duplicate it, or add your own clip instead.")


class ReferenceClip(StudioError):
    def __init__(self, name: str) -> None:
        super().__init__(f"The clip {name!r} is the one its voice speaks after. Choose another one first.")


class OtherEngine(StudioError):
    def __init__(self, made_by: str, here: str) -> None:
        super().__init__(
            f"This take was made by {made_by}, and {here} is loaded, which would make other samples of it. "
            "Its sound is kept. Load that voice model first (Models, on the page), or speak its text for a new take."
        )


class ArchiveError(StudioError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name!r} cannot be taken in: {reason}. Nothing was changed; export it again.")


class LibraryInUse(StudioError):
    def __init__(self, path: str) -> None:
        super().__init__(f"Another program has the library {path} open. Close the studio everywhere, then restore.")


class LanesDiffer(StudioError):
    def __init__(self, device: str, lanes: int, others: int) -> None:
        super().__init__(
            f"On this device ({device}) {others} of {lanes} encodes that run at once have other codes than one alone, "
            "and a voice must not depend on that. Use --lanes 1."
        )


class StudioBusy(StudioError):
    def __init__(self, maximum: int) -> None:
        super().__init__(f"The studio already speaks {maximum} texts at once. Wait until one has ended, or stop one.")


class NoTranscriber(StudioError):
    def __init__(self, reason: str, cure: str) -> None:
        super().__init__(f"What the clip says cannot be filled in ({reason}): {cure}, or type it.")


class WeightsError(StudioError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"The voice model at {path} cannot be loaded ({reason}). Install the studio again.")


class CheckpointError(WeightsError):
    """Like its parent, for files that did not come with the studio, so that the cure is another one."""

    def __init__(self, path: str, reason: str) -> None:
        StudioError.__init__(
            self, f"The model at {path} cannot be loaded ({reason}). Download it again, or choose another folder."
        )


class ModelError(StudioError):
    """A model cannot be downloaded, kept or loaded."""


class StorageError(StudioError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"The data folder {path} cannot be used ({reason}). Free space, or choose one with --data-dir."
        )
