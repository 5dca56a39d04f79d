"""The name of a clip's canonical codes: a digest of the clip's content and of all that decides how it is encoded.

Record 1 is the text below, then one line of canonical JSON, then the decoded samples as little-endian float32, channel
after channel. The JSON states the number of samples, so no two records have the same bytes. Whatever is not here (file
name, time, transcript, voice, batch, device, library versions) cannot change a key.
"""

import hashlib
import json

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.interface import CodecIdentity
from studio.errors import SettingError

RECORD = b"solo-studio reference key 1\n"


def cache_key(clip: Waveform, span: tuple[int, int], codec: CodecIdentity) -> str:
    """SHA-256 over the record of the whole decoded clip, of which the samples of `span` are the reference.

    The samples enter as they were decoded, before any arithmetic of ours, because a resampler's last bits move with a
    library.
    """
    start, end = span
    fields = _codec_fields(codec) | {
        "sample_rate": clip.sample_rate,
        "channels": clip.channels,
        "num_samples": clip.num_samples,
        "trim_start": start,
        "trim_end": end,
    }
    record = hashlib.sha256(RECORD + _canonical(fields))
    # Zero is added, because a float file may hold -0.0, which is the same sample as 0.0 in other bits.
    record.update(np.ascontiguousarray(clip.samples + np.float32(0.0), dtype="<f4").data)
    return record.hexdigest()


def codec_key(codec: CodecIdentity) -> str:
    """SHA-256 over every key field that is not the clip's: it names what a clip's codes depend on beside the clip."""
    return hashlib.sha256(RECORD + _canonical(_codec_fields(codec))).hexdigest()


def trim_to_span(clip: Waveform, trim: tuple[float, float] | None) -> tuple[int, int]:
    """First and last (exclusive) sample of the part between two times in seconds; the whole clip where there is none.

    An end after the clip's means the clip's end. SettingError where nothing is left.
    """
    if trim is None:
        return 0, clip.num_samples
    start, end = trim
    if not 0.0 <= start < end:
        raise SettingError("The trim", f"{start:g} to {end:g} s", "its end must come after its start, from 0 s on.")
    first, last = round(start * clip.sample_rate), round(min(end, clip.duration) * clip.sample_rate)
    if first >= last:
        raise SettingError("The trim", f"{start:g} to {end:g} s", f"the clip is {clip.duration:.2f} s long.")
    return first, last


def _codec_fields(codec: CodecIdentity) -> dict[str, str | int]:
    return {
        "recipe": codec.recipe,
        "codec_id": codec.codec_id,
        "codec_digest": codec.digest,
        "num_codebooks": codec.num_codebooks,
        "compute_dtype": codec.compute_dtype,
        "attention_backend": codec.attention_backend,
    }


def _canonical(fields: dict[str, str | int]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"
