"""From a clip to its canonical codes: those that the codec gives for this clip alone, encoded once, kept for ever."""

import hashlib
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.audio import files
from studio.audio.speech import LONGEST_REFERENCE, check_reference
from studio.audio.waveform import Waveform
from studio.engine.interface import Engine
from studio.errors import ClipError
from studio.reference_fill import SoloFill
from studio.reference_key import cache_key, trim_to_span
from studio.single_flight import SingleFlight
from studio.store.code_cache import CachedCodes, CodeCache, Provenance, Refilled
from studio.store.voices import Voice, VoiceCodes, VoiceLibrary

LARGEST_UPLOAD = 256 * 2**20
"""Bytes of a file that are read at once to be known again; a larger one is left to its decoder, which reads the header
first and refuses what is too long."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """A clip's canonical codes as stored: int16 `(num_codebooks, num_frames)`, read-only."""

    key: str
    codes: np.ndarray
    digest: str
    """SHA-256 over shape and codes."""
    outcome: str
    """"fill" where this call paid for the encode, else "hit", also where it waited for the encode of another."""
    identify_ms: float
    """Finding the key: hashing, and decoding where the bytes were new; 0 for a saved voice."""
    lookup_ms: float
    """From key to codes, digest check included; for a fill the look that found nothing."""
    encode_ms: float
    """What the fill took, whenever it was."""
    duration: float
    """Seconds of sound the codes stand for."""
    provenance: Provenance


@dataclass(frozen=True)
class _Landed:
    """What a flight brought: the stored entry, and whether it was encoded in it or found at the second look."""

    entry: CachedCodes
    encoded: bool


class ReferenceDesk:
    """Takes clips and saved voices, gives references; one solo encode a clip, however many ask, across processes."""

    def __init__(self, engine: Engine, cache: CodeCache, locks_dir: Path) -> None:
        self.engine = engine
        self.cache = cache
        self.solo = SoloFill(engine, cache)
        self._flights: SingleFlight[_Landed] = SingleFlight(locks_dir)
        self.codec = self.solo.codec
        """Names all that codes depend on beside the clip; voices keep their keys under it."""

    def from_file(
        self,
        source: Path | bytes,
        name: str,
        *,
        trim: tuple[float, float] | None = None,
        timeout: float | None = None,
    ) -> Reference:
        """The codes of a sound file, or of its part between two times in seconds.

        Bytes that were seen before are neither decoded nor checked again. Raises ClipError where the clip cannot be
        used, with nothing stored, and TimeoutError after `timeout` seconds of waiting, while the encode goes on.
        """
        started = time.perf_counter()
        content = _content(source)
        digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else None
        times = "" if trim is None else f"{float(trim[0])!r}:{float(trim[1])!r}"
        known = self.cache.find_source(digest, codec=self.codec, trim=times) if digest else None
        if known is not None and (found := self._look_up(known, _since(started))):
            return found
        longest = LONGEST_REFERENCE if trim is None else files.LONGEST_FILE
        clip = files.read(content, name=name, max_duration=longest)
        reference = self._from_samples(clip, trim, name, started, timeout)
        if digest and reference.key != known:
            self.cache.add_source(digest, reference.key, codec=self.codec, trim=times)
        return reference

    def from_clip(
        self,
        clip: Waveform,
        *,
        trim: tuple[float, float] | None = None,
        name: str = "The clip",
        timeout: float | None = None,
    ) -> Reference:
        """The codes of decoded sound, as `from_file` would give them for a file of these samples."""
        return self._from_samples(clip, trim, name, time.perf_counter(), timeout)

    def from_key(
        self,
        key: str,
        original: Callable[[], bytes],
        name: str,
        *,
        trim: tuple[float, float] | None = None,
        timeout: float | None = None,
    ) -> Reference:
        """The codes of a clip whose key is known; `original` is asked for its bytes only where the entry is gone.

        Where these decode to other samples than before, the codes are stored under the key that names those.
        """

        def refill() -> _Landed:
            clip = files.read(original(), name=name)
            span = trim_to_span(clip, trim)
            found = cache_key(clip, span, self.engine.codec)
            if found != key:
                _log.warning("the clip of %r had the key %s and has %s now", name, key, found)
            return self._fill(found, clip, span, name)

        return self._obtain(key, refill, 0.0, timeout)

    def from_voice(self, voice: Voice, voices: VoiceLibrary, *, timeout: float | None = None) -> Reference:
        """The codes of a saved voice, by its key alone; after a change of codec they are filled from its kept clip.

        What is found is noted with the voice where it did not know it yet.
        """
        if voices.codec != self.codec:
            raise ValueError("the library keeps its keys under another codec than the desk's")
        if voice.key is None:
            clip = voices.clip_bytes(voice)
            reference = self.from_file(clip, voice.name, trim=voice.trim, timeout=timeout)
        else:
            reference = self.from_key(
                voice.key, lambda: voices.clip_bytes(voice), voice.name, trim=voice.trim, timeout=timeout
            )
        if (reference.key, reference.digest) != (voice.key, voice.codes_digest):
            if reference.key == voice.key:
                _log.warning("the voice %r had codes %s; they are %s", voice.name, voice.codes_digest, reference.digest)
            codes = VoiceCodes(codec=self.codec, key=reference.key, digest=reference.digest)
            voices.remember_codes(voice, codes, duration=reference.duration)
        return reference

    def identify(self, content: bytes, name: str, trim: tuple[float, float] | None) -> tuple[str, Waveform]:
        """The key that a sound file's bytes have now, and the part of the clip that it names. Nothing is stored."""
        clip = files.read(content, name=name)
        span = trim_to_span(clip, trim)
        return cache_key(clip, span, self.engine.codec), clip.slice(*span)

    def refill(self, key: str, clip: Waveform, name: str) -> Refilled:
        """Encodes a clip again and puts the codes in the place of its key's, in every process from the next look on.

        Only where a user asked for it. Raises ClipError where the clip cannot be used, with the old codes in place.
        """
        check_reference(clip, name=name)
        with self._flights.alone(key), ExitStack() as unless_stored:
            unless_stored.callback(self.cache.count, "failures")
            refilled = self.solo.refill(key, clip)
            unless_stored.pop_all()
        return refilled

    def _from_samples(
        self, clip: Waveform, trim: tuple[float, float] | None, name: str, started: float, timeout: float | None
    ) -> Reference:
        span = trim_to_span(clip, trim)
        key = cache_key(clip, span, self.engine.codec)
        return self._obtain(key, lambda: self._fill(key, clip, span, name), _since(started), timeout)

    def _obtain(self, key: str, work: Callable[[], _Landed], identify_ms: float, timeout: float | None) -> Reference:
        """The stored codes of a key, else those that its flight brings. Who started it paid if it had to encode."""
        started = time.perf_counter()
        found = self._look_up(key, identify_ms)
        if found is not None:
            return found
        looked_ms = _since(started)
        landed, first = self._flights.run(key, work, timeout=timeout)
        if first and landed.encoded:
            return self._reference(landed.entry, "fill", identify_ms, looked_ms)
        self.cache.count_use("merged", landed.entry)
        return self._reference(landed.entry, "hit", identify_ms, _since(started))

    def _look_up(self, key: str, identify_ms: float) -> Reference | None:
        started = time.perf_counter()
        entry = self.cache.get(key)
        return None if entry is None else self._reference(entry, "hit", identify_ms, _since(started))

    def _fill(self, key: str, clip: Waveform, span: tuple[int, int], name: str) -> _Landed:
        """Looks again with other processes kept out, and encodes and stores where there is still nothing."""
        reference = clip.slice(*span)
        self._check(reference, name)
        with self._flights.alone(key):
            entry = self.cache.look(key)
            if entry is not None:
                return _Landed(entry, encoded=False)
            self.cache.count("misses")
            with ExitStack() as unless_stored:
                unless_stored.callback(self.cache.count, "failures")
                entry = self.solo.fill(key, reference)
                unless_stored.pop_all()
            return _Landed(entry, encoded=True)

    def _check(self, clip: Waveform, name: str) -> None:
        """Before the lock is taken, so that a clip that cannot be used leaves no file behind, not even an empty one."""
        try:
            check_reference(clip, name=name)
        except ClipError:
            self.cache.count("misses")
            self.cache.count("failures")
            raise

    def _reference(self, entry: CachedCodes, outcome: str, identify_ms: float, lookup_ms: float) -> Reference:
        return Reference(
            key=entry.key,
            codes=entry.codes,
            digest=entry.digest,
            outcome=outcome,
            identify_ms=identify_ms,
            lookup_ms=lookup_ms,
            encode_ms=1000 * entry.provenance.encode_seconds,
            duration=entry.codes.shape[1] / self.engine.codec.frame_rate,
            provenance=entry.provenance,
        )


def _content(source: Path | bytes) -> bytes | Path:
    """The bytes of a file; the path where only its decoder should touch it, also to say what is wrong with it."""
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes() if source.is_file() and source.stat().st_size <= LARGEST_UPLOAD else source
    except OSError:
        return source


def _since(started: float) -> float:
    """Milliseconds."""
    return 1000 * (time.perf_counter() - started)
