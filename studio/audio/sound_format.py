"""What a sound file said of itself when it was decoded, and the same in words."""

from dataclasses import dataclass

from studio.audio.waveform import Waveform

CONTAINERS = {
    "WAV": "WAV",
    "WAVEX": "WAV",
    "RF64": "WAV (RF64)",
    "MPEG": "MP3",
    "OGG": "Ogg",
    "mov": "MP4",
    "matroska": "WebM or Matroska",
    "mp3": "MP3",
    "aac": "AAC",
    "ogg": "Ogg",
    "wav": "WAV",
}
DEPTHS = {"PCM_S8": 8, "PCM_U8": 8, "PCM_16": 16, "PCM_24": 24, "PCM_32": 32, "FLOAT": 32, "DOUBLE": 64}
FLOATING = ("FLOAT", "DOUBLE", "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be")


@dataclass(frozen=True, kw_only=True)
class SoundFormat:
    """Container and codec by the names of the library that decoded them; `bit_depth` is None where the codec has none,
    as mp3."""

    container: str
    codec: str
    sample_rate: int
    channels: int
    bit_depth: int | None

    @property
    def sentence(self) -> str:
        """For example "WAV, 24-bit, 48 kHz, 2 channels"."""
        container = CONTAINERS.get(self.container.partition(",")[0], self.container)
        channels = "1 channel" if self.channels == 1 else f"{self.channels} channels"
        return f"{container}, {self._codec(container)}{self.sample_rate / 1000:g} kHz, {channels}"

    def _codec(self, container: str) -> str:
        if self.bit_depth is not None:
            floating = " float" if self.codec in FLOATING else ""
            return f"{self.bit_depth}-bit{floating}, "
        name = self.codec.replace("_", " ").lower()
        return "" if container.lower() in name or name.startswith("mpeg layer") else f"{name}, "


@dataclass(frozen=True)
class DecodedClip:
    """A sound file's samples and what it was."""

    waveform: Waveform
    sound_format: SoundFormat
