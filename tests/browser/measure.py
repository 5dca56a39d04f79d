"""Measures a running page: `python tests/browser/measure.py URL [TAKES]` prints one object on one line.

First audio is from the click to the first sample above -50 dBFS at the loudspeaker, output latency included.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from driving import StudioPage, chromium

SCRIPT = "The harbour was quiet before sunrise. Then the gulls began, one by one."


def measure(url: str, takes: int = 20, script: str = SCRIPT) -> dict[str, Any]:
    """The page's first audio in milliseconds over `takes` takes, and how many gaps they had; one take goes before."""
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as context:
        page = StudioPage(context.pages[0], url).open()
        page.write(script)
        page.speak()
        runs = [page.speak() for _ in range(takes)]
    first = [run["firstAudioMs"] for run in runs]
    return {
        "takes": takes,
        "page_first_audio_ms": statistics.median(first),
        "page_first_audio_ms_max": max(first),
        "model_first_audio_ms": statistics.median(run["status"]["first_audio_ms"] for run in runs),
        "realtime_speed": statistics.median(run["status"]["realtime_speed"] for run in runs),
        "underruns": sum(run["underruns"] for run in runs),
        "bit_exact": all(run["sha256"] == run["status"]["sha256"] for run in runs),
    }


if __name__ == "__main__":
    url, takes = [*sys.argv[1:], "20"][:2]
    sys.stdout.write(json.dumps(measure(url, int(takes))) + "\n")
