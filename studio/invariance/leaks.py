"""Does anything leak into a clip's codes inside one fixed shape: the neighbour's content, or that of the padding."""

import numpy as np

from studio.invariance.clips import Padding, together
from studio.invariance.experiment import Found, Steps, judged
from studio.invariance.lab import Lab
from studio.invariance.tally import Tally


def neighbour(lab: Lab, steps: Steps) -> Found:
    """Two rows of one length; only the second one's content changes."""
    tally = Tally()
    rng = np.random.default_rng(lab.seed)
    for clip in steps(lab.some, "beside another clip, noise and zeros"):
        noise = (0.3 * rng.standard_normal(clip.samples.shape)).astype(np.float32)
        contents = {
            "beside noise": noise,
            "beside zeros": np.zeros_like(noise),
            "beside itself reversed": clip.samples[:, ::-1],
        }
        base = together([clip.samples, clip.samples])
        for what, content in contents.items():
            batch = together([clip.samples, content])
            tally.compare(
                clip.name, what, lambda base=base: lab.encode(base)[0], lambda batch=batch: lab.encode(batch)[0]
            )
    return judged(
        tally,
        lab,
        otherwise="broken",
        question="change with the content of the neighbour, in batches of one shape",
        figures=tally.detailed(),
    )


def padding(lab: Lab, steps: Steps) -> Found:
    """A clip beside one that is longer; only what stands behind the shorter one changes."""
    tally = Tally()
    contents: tuple[Padding, ...] = ("noise", "repeated tail")
    for clip in steps(lab.some, "behind zeros, noise and a repeated tail"):
        longer = np.concatenate([clip.samples, clip.samples[:, ::-1]], axis=1)
        base = together([clip.samples, longer])
        for content in contents:
            batch = together([clip.samples, longer], padding=content, seed=lab.seed)
            tally.compare(
                clip.name, content, lambda base=base: lab.encode(base)[0], lambda batch=batch: lab.encode(batch)[0]
            )
    return judged(
        tally, lab, otherwise="broken", question="change with the content of the padding", figures=tally.detailed()
    )
