"""Can it be heard: the sound of a clip's codes alone and of those a batch gave it."""

from pathlib import Path
from typing import Any

import numpy as np

from studio.audio import files
from studio.audio.speech import SHORTEST_REFERENCE
from studio.audio.waveform import Waveform
from studio.invariance.clips import LabClip
from studio.invariance.experiment import Found, Steps, unsteady
from studio.invariance.lab import Compared, Lab
from studio.invariance.shapes import compared, tally

PUBLISHED_SNR = 20.2
_MOST = 4


def audible(lab: Lab, steps: Steps) -> Found:
    """Both sounds of the longest clips whose codes differ, else of ordinary ones, which are then equal."""
    counts = tally(compared(lab, steps))
    if counts.unsteady:
        return unsteady(counts, counts.figures())
    clips = [_heard(lab, each.clip, each.solo, each.batch) for each in steps(_pairs(lab, steps), "decoding both")]
    rate = lab.probe.codec.sample_rate
    figures: dict[str, Any] = {
        "clips": clips,
        "sample_rate": rate,
        "recogniser": None if lab.parts.transcribe is None else "as set up",
        "published_snr_db": PUBLISHED_SNR,
    }
    apart = [clip["snr_db"] for clip in clips if clip["snr_db"] is not None]
    if not apart:
        sentence = f"The sounds of {len(clips)} clips are equal to the last sample, for their codes are, {lab.here}."
        return Found(figures=figures, verdict="holds", sentence=sentence)
    longest = max(clip["frames"] for clip in clips if clip["snr_db"] is not None)
    return Found(
        figures=figures,
        verdict="differs",
        sentence=f"Decoded, a clip alone and in a batch are {np.median(apart):.1f} dB apart (median of {len(apart)} "
        f"clips of at most {longest} frames; {PUBLISHED_SNR} dB was published for the MOSS v2 codec), {lab.here}.",
    )


def _pairs(lab: Lab, steps: Steps) -> list[Compared]:
    """The batch that differs most, for the longest clips of which one does."""
    found = compared(lab, steps)
    worst = [
        max((each for each in found if each.clip is clip), key=lambda each: int(each.apart.sum())) for clip in lab.clips
    ]
    worst.sort(key=lambda each: -each.clip.samples.shape[1])
    return ([each for each in worst if each.apart.any()] or worst)[:_MOST]


def _heard(lab: Lab, clip: LabClip, solo: np.ndarray, batch: np.ndarray) -> dict[str, Any]:
    sounds = {"solo": lab.probe.decode(solo), "batch": lab.probe.decode(batch)}
    words = {name: _words(lab, samples) for name, samples in sounds.items()}
    return {
        "clip": clip.name,
        "group": clip.group,
        "frames": solo.shape[1],
        "codes": int(solo.size),
        "differ": int((solo != batch).sum()),
        "snr_db": signal_to_noise(sounds["solo"], sounds["batch"]),
        "words_solo": words["solo"],
        "words_batch": words["batch"],
        "sounds": {
            name: _kept(lab, f"{clip.digest[:12]}-{_setting(lab)}-{name}.wav", sound) for name, sound in sounds.items()
        },
    }


def signal_to_noise(one: np.ndarray, other: np.ndarray) -> float | None:
    """Decibels of the first sound over what the second adds to it; None where they are equal."""
    noise = np.square(one.astype(np.float64) - other).sum()
    if noise == 0.0:
        return None
    return float(10 * np.log10(max(np.square(one, dtype=np.float64).sum(), 1e-20) / noise))


def _words(lab: Lab, samples: np.ndarray) -> str | None:
    """What a recogniser understands, where one is set up and the sound is long enough for it."""
    sound, transcribe = Waveform(samples, lab.probe.codec.sample_rate), lab.parts.transcribe
    return None if transcribe is None or sound.duration < SHORTEST_REFERENCE else transcribe(sound)


def _setting(lab: Lab) -> str:
    """For file names: another setting may give another sound."""
    return f"{lab.probe.setting.dtype}-{lab.probe.setting.num_threads}"


def _kept(lab: Lab, name: str, samples: np.ndarray) -> str | None:
    folder: Path | None = lab.parts.sounds
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / name, Waveform(samples, lab.probe.codec.sample_rate))
    return name
