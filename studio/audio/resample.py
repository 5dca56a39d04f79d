"""Change the sample rate of a waveform by a Hann-windowed sinc filter.

The filter is ours because the MOSS models need exactly this formula (torchaudio's `sinc_interp_hann`, width 6,
rolloff 0.99, kernel built in float32: another filter would change a clip's codes), and because torchaudio, whose
file reading is the commonest install failure there is, would be a heavy dependency for one page of arithmetic.

With the ratio reduced to `new` output samples for `old` input samples, output sample `p` of each period lies at `p
/ new` of the period and reads the inputs within six zero crossings of the lower rate's sinc. A period is the
product of a stretch of input and a kernel; where the ratio is big (44,101 to 24,000) the period is cut into groups
of output samples, so that neither the kernel nor the work grows with it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from studio.audio.waveform import Waveform

ZERO_CROSSINGS = 6
ROLLOFF = 0.99
LARGEST_GROUP = 160
BLOCK_VALUES = 1 << 20


@dataclass(frozen=True)
class _Ratio:
    """Input and output samples of one period, without a common factor."""

    old: int
    new: int

    @property
    def cutoff(self) -> float:
        """Zero crossings of the filter in one period."""
        return min(self.old, self.new) * ROLLOFF

    @property
    def width(self) -> int:
        """Input samples that the filter reaches to either side."""
        return math.ceil(ZERO_CROSSINGS * self.old / self.cutoff)


def resample(waveform: Waveform, sample_rate: int) -> Waveform:
    """The same sound at another rate, `ceil(samples * new / old)` samples long; itself where the rate fits already."""
    if sample_rate <= 0:
        raise ValueError(f"the sample rate must be above 0, not {sample_rate}")
    if sample_rate == waveform.sample_rate:
        return waveform
    common = math.gcd(sample_rate, waveform.sample_rate)
    ratio = _Ratio(waveform.sample_rate // common, sample_rate // common)
    length = -(-ratio.new * waveform.num_samples // ratio.old)
    padded = np.pad(waveform.samples, ((0, 0), (ratio.width, ratio.width + ratio.old)))
    output = np.empty((waveform.channels, -(-length // ratio.new), ratio.new), dtype=np.float32)
    for first, last in _groups(ratio.new):
        offset, kernel = _kernel(ratio, first, last)
        for channel in range(waveform.channels):
            _filter(padded[channel, offset:], kernel, ratio.old, output[channel, :, first:last])
    samples = output.reshape(waveform.channels, -1)[:, :length]
    return Waveform(np.ascontiguousarray(samples), sample_rate)


def _groups(new: int) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) output sample of each group of a period."""
    for first in range(0, new, LARGEST_GROUP):
        yield first, min(first + LARGEST_GROUP, new)


def _kernel(ratio: _Ratio, first: int, last: int) -> tuple[int, np.ndarray]:
    """Where in the padded period the group begins to read, and its weights `(inputs, outputs)`; float32 throughout."""
    begin = first * ratio.old // ratio.new
    end = (last - 1) * ratio.old // ratio.new + 1 + 2 * ratio.width
    inputs = np.arange(begin - ratio.width, end - ratio.width, dtype=np.float32) / np.float32(ratio.old)
    outputs = np.arange(-first, -last, -1, dtype=np.float32) / np.float32(ratio.new)
    crossings = (outputs[None, :] + inputs[:, None]) * np.float32(ratio.cutoff)
    crossings = np.clip(crossings, -ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = np.square(np.cos(crossings * np.float32(math.pi / ZERO_CROSSINGS / 2)))
    angle = crossings * np.float32(math.pi)
    at_centre = angle == 0
    sinc = np.where(at_centre, np.float32(1), np.sin(angle) / np.where(at_centre, np.float32(1), angle))
    return begin, sinc * window * np.float32(ratio.cutoff / ratio.old)


def _filter(padded: np.ndarray, kernel: np.ndarray, step: int, output: np.ndarray) -> None:
    """Fill `output` `(periods, outputs)` from one channel, a block of periods at a time."""
    periods = len(output)
    if periods == 0:
        return
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel))[::step][:periods]
    block = max(1, BLOCK_VALUES // len(kernel))
    for start in range(0, periods, block):
        # Copied, because BLAS takes no overlapping rows and numpy's own loop is many times slower.
        output[start : start + block] = np.ascontiguousarray(windows[start : start + block]) @ kernel
