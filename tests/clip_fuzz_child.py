"""The program of a child of clip_fuzz: takes inputs as the reference desk takes clips, a line of JSON for each.

clip_fuzz_child.py FIRST LAST MEMORY SECONDS
"""

import json
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
from clip_mutations import generated, valid_files
from toy_voice import toy_voice

from studio.audio.examination import examine
from studio.audio.files import read_clip
from studio.audio.speech import check_reference
from studio.audio.waveform import Waveform
from studio.engine.embedded import EmbeddedEngine
from studio.errors import ClipError

try:
    import resource
except ImportError:  # Windows has no such limits; there the parent's patience is the only one
    resource = None


def main(first: int, last: int, memory: int, seconds: int) -> None:
    engine = EmbeddedEngine(toy_voice())
    valid_files()
    if resource is not None:
        limit = _virtual_memory() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    report({})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.wav"
        for seed in range(first, last):
            content = generated(seed)
            path.write_bytes(content)
            allow(seconds)
            started = time.process_time()
            outcome, reason = take(path if seed % 2 else content, engine)
            report({"seed": seed, "outcome": outcome, "reason": reason, "seconds": time.process_time() - started})


def take(source: Path | bytes, engine: EmbeddedEngine) -> tuple[str, str]:
    """What becomes of an input: "used", the name of a ClipError, or "traceback" with it."""
    try:
        clip = read_clip(source, name="clip.wav")
        error = refusal(clip.waveform, engine)
        refused = examine(clip).severity == "refusal"
        assert refused == (error is not None), f"the examination and the desk disagree: {error}"
    except ClipError as unreadable:
        error = unreadable
    except Exception:  # noqa: BLE001 - it is what this program looks for
        return "traceback", traceback.format_exc()
    return (type(error).__name__, str(error)) if error else ("used", "")


def refusal(clip: Waveform, engine: EmbeddedEngine) -> ClipError | None:
    """What the desk says against encoding the clip."""
    try:
        check_reference(clip)
        prepared = engine.prepare(clip)
    except ClipError as error:
        return error
    assert np.isfinite(prepared.samples).all()
    assert 0 < prepared.peak <= 1
    return None


def allow(seconds: int) -> None:
    """So much more processor time, else SIGXCPU."""
    if resource is not None:
        limit = int(time.process_time()) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _virtual_memory() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:")), 2**40)


def report(fields: dict[str, object]) -> None:
    memory = 0
    if resource is not None:
        unit = 1 if sys.platform == "darwin" else 1024
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    sys.stdout.write(json.dumps(fields | {"memory": memory}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
