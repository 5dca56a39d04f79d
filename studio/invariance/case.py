"""One shape in which a clip's codes differ, as a file that shows it again in another process or on another machine."""

import base64
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studio.engine.probe import CodecProbe, PaddedBatch, ProbeFactory, ProbeSetting
from studio.errors import SettingError
from studio.invariance.clips import together
from studio.invariance.encoding import encode_alone, encode_rows

FORMAT = 1
_CURE = "give a file that the lab's search has kept."


@dataclass(frozen=True, kw_only=True, eq=False)
class FailingCase:
    """A prepared clip `(channels, samples)`, alone and as `rows` copies of itself padded with zeros to `longest`."""

    engine: str
    codec_digest: str
    device: str
    setting: ProbeSetting
    clip: str
    samples: np.ndarray
    rows: int
    longest: int
    """Samples of each row."""
    solo: np.ndarray
    """Codes `(num_codebooks, num_frames)` found alone."""
    batch: np.ndarray
    """Codes found in the first row of the batch."""

    @property
    def differ(self) -> int:
        return int((self.solo != self.batch).sum())

    @property
    def size(self) -> tuple[int, int, int]:
        """What makes a case small: samples in the batch, then its clip's, then its rows."""
        return self.rows * self.longest, self.samples.shape[1], self.rows

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        packed = base64.b64encode(np.ascontiguousarray(self.samples, dtype="<f4").tobytes()).decode()
        return {
            "format": FORMAT,
            "what": "a clip's codes alone, and as the first of equal rows of one batch",
            "engine": self.engine,
            "codec_digest": self.codec_digest,
            "device": self.device,
            "setting": asdict(self.setting),
            "clip": self.clip,
            "channels": len(self.samples),
            "samples": packed,
            "rows": self.rows,
            "longest": self.longest,
            "solo": self.solo.tolist(),
            "batch": self.batch.tolist(),
        }


def load_case(path: Path) -> FailingCase:
    """Raises SettingError where the file is not there or none of ours."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT:
            raise SettingError("The file", str(path), f"its format is {fields['format']}, this studio reads {FORMAT}.")
        samples = np.frombuffer(base64.b64decode(fields["samples"]), dtype="<f4").astype(np.float32)
        return FailingCase(
            engine=fields["engine"],
            codec_digest=fields["codec_digest"],
            device=fields["device"],
            setting=ProbeSetting(**fields["setting"]),
            clip=fields["clip"],
            samples=samples.reshape(fields["channels"], -1),
            rows=fields["rows"],
            longest=fields["longest"],
            solo=np.array(fields["solo"], dtype=np.int16),
            batch=np.array(fields["batch"], dtype=np.int16),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError("The file", str(path), _CURE) from error


def run_case(probe: CodecProbe, samples: np.ndarray, rows: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a clip alone, and in the first of `rows` equal rows."""
    return encode_alone(probe, samples), encode_rows(probe, batch_of(samples, rows, longest))[0]


def batch_of(samples: np.ndarray, rows: int, longest: int) -> PaddedBatch:
    return together([samples] * rows, longest=longest)


def reproduce(case: FailingCase, probes: ProbeFactory) -> dict[str, Any]:
    """Encodes the case again; says how many codes differ here and now, beside how many did when it was kept."""
    probe = probes(case.setting)
    solo, batch = run_case(probe, case.samples, case.rows, case.longest)
    differ = int((solo != batch).sum())
    return {
        "reproduced": differ > 0,
        "differ": differ,
        "codes": int(solo.size),
        "kept_differ": case.differ,
        "same_codes": bool(np.array_equal(solo, case.solo) and np.array_equal(batch, case.batch)),
        "same_codec": probe.codec.digest == case.codec_digest,
        "engine": case.engine,
        "setting": asdict(case.setting),
        "clip": case.clip,
        "frames": int(solo.shape[1]),
        "rows": case.rows,
        "device": probe.device,
    }
