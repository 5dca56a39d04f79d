"""Speech jobs: one request to speak each, from the asking to the last byte; bounded, and forgotten after a while."""

import hashlib
import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any, Literal

import anyio
import numpy as np
from anyio import to_thread

from studio.errors import StudioBusy, StudioError
from studio.synthesis import Speech

BROKEN = "Something broke inside the studio while it spoke. The terminal it runs in says what; try once more."

_PATIENCE = 30.0
"""Seconds to wait for the model's last step; a step takes milliseconds."""


class SpeechJob:
    """One speech on its way to one page. The stream may be taken once."""

    def __init__(self, speech: Speech, held: ExitStack | None = None) -> None:
        """`held` is let go once the model does no more work for this."""
        self.id = secrets.token_urlsafe(16)
        self.speech = speech
        self.state: Literal["waiting", "speaking", "done", "stopped", "failed"] = "waiting"
        self.error: str | None = None
        self.touched = time.monotonic()
        self._held = held or ExitStack()
        self._chunks = iter(speech)
        self._digest = hashlib.sha256()
        self._sent = 0
        self._stop_asked = False
        self._pulling = threading.Lock()
        self._ended_at: float | None = None

    @property
    def over(self) -> bool:
        return self.state in ("done", "stopped", "failed")

    async def stream(self) -> AsyncIterator[bytes]:
        """Interleaved little-endian int16 samples as they are made. Whoever ends this early stops the model."""
        self.state = "speaking"
        outcome: Literal["done", "stopped", "failed"] = "failed"
        try:
            while (block := await to_thread.run_sync(self._pull, abandon_on_cancel=True)) is not None:
                self._digest.update(block)
                self._sent += len(block)
                yield block
            outcome = "stopped" if self._stop_asked else "done"
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            outcome = "stopped"
            raise
        except StudioError as error:
            self.error = str(error)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._end, outcome)

    def stop(self) -> None:
        """Stops the model, whether or not the stream was taken; returns once it has let go."""
        self._stop_asked = True
        self._end("stopped")

    def _pull(self) -> bytes | None:
        with self._pulling:
            chunk = next(self._chunks, None)
        return None if chunk is None else np.ascontiguousarray(chunk.T, dtype="<i2").tobytes()

    def _end(self, outcome: Literal["done", "stopped", "failed"]) -> None:
        self.speech.close()
        self.speech.stopped.wait(_PATIENCE)
        self._held.close()
        with self._pulling:
            if not self.over:
                self.state, self._ended_at = outcome, time.time()
        self.touched = time.monotonic()
        if outcome == "failed" and self.error is None:
            self.error = BROKEN

    def status(self) -> dict[str, Any]:
        """What the page may know: how the codes were got, how fast it went, what was sent, and the take once saved."""
        reference, take = self.speech.reference, self.speech.take if self.over else None
        return {
            "job": self.id,
            "state": self.state,
            "error": self.error,
            "engine": self.speech.engine,
            "seed": self.speech.seed,
            "sample_rate": self.speech.sample_rate,
            "channels": self.speech.channels,
            "cache": reference.outcome,
            "lookup_ms": reference.lookup_ms,
            "encode_ms": reference.encode_ms,
            "samples": self._sent // (2 * self.speech.channels),
            "bytes": self._sent,
            "sha256": self._digest.hexdigest(),
            "ended_at": self._ended_at,
            "take": take and take.id,
            "first_audio_ms": take and take.first_audio_ms,
            "realtime_speed": take and take.realtime_speed,
            "duration": take and take.duration,
            "device": take and take.device,
            "partial": take and take.partial,
        }


class SpeechJobs:
    """The jobs that are under way and those a page may still ask about."""

    def __init__(self, *, max_active: int = 8, max_kept: int = 200, waiting: float = 60.0, kept: float = 600.0) -> None:
        self._jobs: dict[str, SpeechJob] = {}
        self._max_active, self._max_kept = max_active, max_kept
        self._waiting, self._kept = waiting, kept

    def get(self, identifier: str) -> SpeechJob | None:
        return self._jobs.get(identifier)

    def check_room(self) -> None:
        """Forgets old jobs; raises StudioBusy where as many as this studio takes are still under way."""
        self.tidy()
        if sum(not job.over for job in self._jobs.values()) >= self._max_active:
            raise StudioBusy(self._max_active)

    def tidy(self) -> None:
        """Stops jobs that nobody came for, and forgets old ones."""
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if job.state == "waiting" and now - job.touched > self._waiting:
                job.stop()
            if job.over and now - job.touched > self._kept:
                del self._jobs[job.id]
        over = [job.id for job in self._jobs.values() if job.over]
        for identifier in over[: max(0, len(self._jobs) - self._max_kept)]:
            del self._jobs[identifier]

    def add(self, speech: Speech, held: ExitStack | None = None) -> SpeechJob:
        job = SpeechJob(speech, held)
        self._jobs[job.id] = job
        return job

    def close(self) -> None:
        """Stops every job that is under way."""
        for job in list(self._jobs.values()):
            if not job.over:
                job.stop()
