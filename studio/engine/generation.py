"""The lane that advances every running stream in turn, in one thread."""

import atexit
import threading
from collections import deque
from collections.abc import Generator

import numpy as np

from studio.engine.lanes import LANE_THREADS, set_lane_threads

Producer = Generator[np.ndarray, None, None]


class Stream:
    """The consumer's end of one running generation: an iterator of PCM chunks that may be closed at any time."""

    def __init__(self, producer: Producer, lane: "GenerationLane") -> None:
        self._producer = producer
        self._lane = lane
        self._chunks: deque[np.ndarray] = deque()
        self._error: BaseException | None = None
        self._closed = False
        self._complete = False
        self.stopped = threading.Event()
        """Set once the model does no more work for this stream."""

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> np.ndarray:
        """Waits for the next chunk; raises what the producer raised."""
        with self._lane.changed:
            self._lane.changed.wait_for(lambda: self._chunks or self.stopped.is_set() or self._closed)
            if self._closed:
                raise StopIteration
            if self._chunks:
                self._lane.changed.notify_all()
                return self._chunks.popleft()
        if self._error is not None:
            raise self._error
        raise StopIteration

    @property
    def exhausted(self) -> bool:
        """Whether the producer came to its end and every chunk was taken."""
        with self._lane.changed:
            return self._complete and not self._chunks and not self._closed

    def close(self) -> None:
        """Asks the lane to stop: the step that is running is the last one. Does not wait for it."""
        with self._lane.changed:
            self._closed = self._closed or not self._complete or bool(self._chunks)
            self._chunks.clear()
            self._lane.changed.notify_all()

    def _runnable(self, capacity: int) -> bool:
        return self._closed or len(self._chunks) < capacity

    def _advance(self) -> bool:
        """One step of the producer, in the lane; false when there is nothing more to do."""
        if self._closed:
            self._producer.close()
            return False
        try:
            chunk = next(self._producer)
        except StopIteration:
            self._complete = True
            return False
        except Exception as error:  # noqa: BLE001  handed to the consumer's thread, where it surfaces
            self._error = error
            return False
        with self._lane.changed:
            if chunk.size and not self._closed:
                self._chunks.append(chunk)
                self._lane.changed.notify_all()
        return True


class GenerationLane:
    """Advances all running streams in turn, one step each, in one thread.

    A step is one frame and always has the shape it has alone, so neighbours change the time a take needs and never its
    sound. A stream whose consumer lags `capacity` chunks behind rests until it has caught up.
    """

    def __init__(self, capacity: int = 64, threads: int = LANE_THREADS) -> None:
        self.changed = threading.Condition()
        self._capacity = capacity
        self._threads = threads
        self._waiting: deque[Stream] = deque()
        self._thread: threading.Thread | None = None
        self._ending = False

    def open(self, producer: Producer) -> Stream:
        """Starts a stream. Chunks without samples are steps that made no sound yet; they are not handed out."""
        stream = Stream(producer, self)
        with self.changed:
            self._waiting.append(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="generation-lane", daemon=True)
                self._thread.start()
                atexit.register(self.shut)
            self.changed.notify_all()
        return stream

    def shut(self) -> None:
        """Ends the lane after the step that runs. At exit the interpreter must not be taken down under a step."""
        with self.changed:
            self._ending = True
            self.changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            atexit.unregister(self.shut)

    def _run(self) -> None:
        set_lane_threads(self._threads)
        while (stream := self._next()) is not None:
            if stream._advance():
                with self.changed:
                    self._waiting.append(stream)
            else:
                with self.changed:
                    stream.stopped.set()
                    self.changed.notify_all()

    def _next(self) -> Stream | None:
        """The stream that has waited longest and may run; None once the lane is to end."""
        with self.changed:
            self.changed.wait_for(
                lambda: self._ending or any(stream._runnable(self._capacity) for stream in self._waiting)
            )
            if self._ending:
                return None
            while not self._waiting[0]._runnable(self._capacity):
                self._waiting.rotate(-1)
            return self._waiting.popleft()
