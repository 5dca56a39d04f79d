"""How each family wants the clip that it clones: pure functions, each with an id that goes into the cache key.

Neither trims, and neither cuts the tail: the codec gives no frame for what is shorter than one.
"""

import numpy as np

from studio.audio.resample import resample
from studio.audio.waveform import Waveform
from studio.errors import TooManyChannels

SAMPLE_RATE = 48_000
LOCAL_RECIPE = "stereo-first-two,sinc6-48k,level-20db-within-3db,whole/1"
NANO_RECIPE = "sinc6-48k,stereo-at-most-two,whole/1"
_LEVEL = -20.0
_LARGEST_GAIN = 3.0
_FLOOR = 1e-9


def prepare_for_local(clip: Waveform) -> Waveform:
    """Stereo at 48 kHz, as Local v1.5 wants it: one channel is doubled, more than two are cut to the first two, then
    the rate, then the level.

    The level is 10 log10(mean square over both channels + 1e-9); a gain brings it to -20 dB, and is never more than
    3 dB up or down. Nothing is clipped, so silence stays silent and a loud clip may exceed full scale.
    """
    stereo = _stereo(Waveform(clip.samples[:2], clip.sample_rate))
    return _levelled(resample(stereo, SAMPLE_RATE))


def prepare_for_nano(clip: Waveform) -> Waveform:
    """Stereo at 48 kHz, as Nano wants it: first the rate, then one channel is doubled; the level stays.

    Raises TooManyChannels for more than two, as the released code refuses them too.
    """
    if clip.channels > 2:
        raise TooManyChannels(clip.channels, 2)
    return _stereo(resample(clip, SAMPLE_RATE))


def _stereo(clip: Waveform) -> Waveform:
    if clip.channels == 2:
        return clip
    return Waveform(np.repeat(clip.samples, 2, axis=0), clip.sample_rate)


def _levelled(clip: Waveform) -> Waveform:
    if clip.num_samples == 0:
        return clip
    level = 10 * np.log10(np.mean(np.square(clip.samples, dtype=np.float64)) + _FLOOR)
    gain = 10 ** (np.clip(_LEVEL - level, -_LARGEST_GAIN, _LARGEST_GAIN) / 20)
    return Waveform(clip.samples * np.float32(gain), clip.sample_rate)
