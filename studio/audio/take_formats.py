"""A take in the formats people ask for: WAV as it is, FLAC without loss, MP3 and Ogg Vorbis at their best quality.

MP3 is written at a variable rate: at a constant one libsndfile makes 24 kHz speech 0.45 dB softer.
"""

from pathlib import Path
from typing import Any

import soundfile

from studio.errors import SettingError, StorageError

FORMATS: dict[str, dict[str, Any]] = {
    ".wav": {"format": "WAV", "subtype": "PCM_16"},
    ".flac": {"format": "FLAC", "subtype": "PCM_16"},
    ".mp3": {"format": "MP3", "subtype": "MPEG_LAYER_III", "bitrate_mode": "VARIABLE", "compression_level": 0.0},
    ".ogg": {"format": "OGG", "subtype": "VORBIS", "compression_level": 0.0},
}
MP3_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
MEDIA_TYPES = {".wav": "audio/wav", ".flac": "audio/flac", ".mp3": "audio/mpeg", ".ogg": "audio/ogg"}

_BLOCK = 1 << 14
"""Samples at a time: Vorbis needs stack for all it is given at once."""
_LARGEST_WAV = 0xFFFFFFFF - 128


def check_format(suffix: str) -> None:
    """SettingError for an ending that is none of FORMATS."""
    if suffix.lower() not in FORMATS:
        raise SettingError("The format", suffix or "none", f"choose one of {', '.join(FORMATS)}.")


def convert(take: Path, target: Path) -> None:
    """Writes a take's 16-bit WAV in the format of the target's ending, which is new or replaced.

    SettingError for another ending, or a sample rate that MP3 has not; StorageError where reading or writing fails.
    """
    check_format(target.suffix)
    how = dict(FORMATS[target.suffix.lower()])
    try:
        with take.open("rb") as file, soundfile.SoundFile(file) as source:
            if how["format"] == "MP3" and source.samplerate not in MP3_RATES:
                raise SettingError("The format", target.suffix, f"MP3 has no {source.samplerate:,} Hz; choose .ogg.")
            if how["format"] == "WAV" and source.frames * source.channels * 2 > _LARGEST_WAV:
                how["format"] = "RF64"
            with soundfile.SoundFile(target, "w", source.samplerate, source.channels, **how) as written:
                for block in source.blocks(_BLOCK, dtype="int16", always_2d=True):
                    written.write(block)
    except (OSError, soundfile.LibsndfileError) as error:
        raise StorageError(str(target.parent), f"{target.name} could not be written: {error}") from error
