"""Where a run was made: read once, so that two reports can be told apart."""

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from studio.engine.interface import Engine
from studio.invariance.clips import LabClip
from studio.invariance.record import LabEnvironment


def lab_environment(engine: Engine, clips: Iterable[LabClip], seed: int) -> LabEnvironment:
    """Of this process, this machine and this engine."""
    where, codec = engine.environment, engine.codec
    return LabEnvironment(
        engine=engine.name,
        codec_id=codec.codec_id,
        codec_digest=codec.digest,
        device=engine.device,
        processor=_processor() if engine.device == "cpu" else where.device,
        cores=os.cpu_count() or 1,
        system=platform.platform(),
        python_version=sys.version.split()[0],
        torch_version=where.torch_version,
        cuda_version=where.cuda_version,
        canonical_dtype=codec.compute_dtype,
        canonical_threads=where.num_threads,
        num_codebooks=codec.num_codebooks,
        codebook_size=codec.codebook_size,
        frame_rate=codec.frame_rate,
        clips={clip.name: clip.digest for clip in clips},
        seed=seed,
    )


def _processor() -> str:
    """The maker's name where the system tells it in a file, else what Python knows."""
    told = Path("/proc/cpuinfo")
    if told.is_file():
        for line in told.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
