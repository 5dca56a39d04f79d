"""The signal side of the embedded codec: what the encoder hears of a waveform, how pitch and envelopes become sound.

Phase comes from signal processing, not from training: a pulse train at the pitch and white noise are shaped, hop by
hop, by spectral envelopes and overlap-added.
"""

import math

import torch
from torch import Tensor, nn

SAMPLE_RATE = 24_000
HOP = 240
"""Samples between two envelopes: 10 ms."""
WINDOW = 960
TAPS = WINDOW // HOP
"""Hops that one shaped window spreads over."""
HARMONIC_BANDS = 80
NOISE_BANDS = 48
_FEATURE_WINDOW = 1024
_MEL_BANDS = 80
_LAGS = 48
FEATURES = _MEL_BANDS + _LAGS


def _mel(frequency: Tensor) -> Tensor:
    return 2595 * torch.log10(1 + frequency / 700)


def mel_filters(window: int, bands: int) -> Tensor:
    """Triangular filters `(bands, window / 2 + 1)` evenly spaced on the mel scale, peak 1."""
    frequencies = torch.linspace(0, SAMPLE_RATE / 2, window // 2 + 1)
    marks = torch.linspace(0, 2595 * math.log10(1 + SAMPLE_RATE / 2 / 700), bands + 2)
    edges = 700 * (10 ** (marks / 2595) - 1)
    rising = (frequencies[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies[None]) / (edges[2:] - edges[1:-1])[:, None]
    return torch.clamp(torch.minimum(rising, falling), min=0)


def band_interpolation(window: int, bands: int) -> Tensor:
    """Weights `(window / 2 + 1, bands)` that spread values at mel-spaced points linearly over a spectrum."""
    position = _mel(torch.linspace(0, SAMPLE_RATE / 2, window // 2 + 1))
    position = position / (_mel(torch.tensor(SAMPLE_RATE / 2.0)).item() / (bands - 1))
    lower = position.floor().clamp(max=bands - 2).long()
    share = position - lower
    weights = torch.zeros(len(position), bands)
    rows = torch.arange(len(position))
    weights[rows, lower] = 1 - share
    weights[rows, lower + 1] += share
    return weights


class Features(nn.Module):
    """Log-mel energies and normalised autocorrelation of a waveform, every 10 ms, looking back only."""

    filters: Tensor
    window: Tensor
    lags: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", mel_filters(_FEATURE_WINDOW, _MEL_BANDS), persistent=False)
        self.register_buffer("window", torch.hann_window(_FEATURE_WINDOW), persistent=False)
        lags = torch.logspace(math.log10(48), math.log10(400), _LAGS).round().long()
        self.register_buffer("lags", lags, persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        """`samples` `(batch, samples)`, a multiple of 240, to features `(batch, samples / 240, 128)`."""
        padded = nn.functional.pad(samples, (_FEATURE_WINDOW - HOP, 0))
        frames = padded.unfold(-1, _FEATURE_WINDOW, HOP) * self.window
        power = torch.fft.rfft(frames, 2 * _FEATURE_WINDOW).abs().pow(2)
        mel = torch.log((power[..., ::2].clamp(min=1e-10).sqrt() @ self.filters.T).clamp(min=1e-4)) * 0.4 + 2
        correlation = torch.fft.irfft(power, 2 * _FEATURE_WINDOW)
        periodicity = correlation[..., self.lags] / correlation[..., :1].clamp(min=1e-5)
        return torch.cat([mel, periodicity * 2 - 0.5], dim=-1)


def pulses(pitch: Tensor, phase: Tensor) -> Tensor:
    """A band-limited pulse train of unit power at every `phase` (turns, in [0, 1)) for `pitch` in hertz, elementwise.

    The closed form of a sum of cosines (Dirichlet kernel). The number of harmonics below 0.95 of the Nyquist frequency
    is not rounded: the highest one fades in, so that the last bit of a pitch cannot switch a harmonic.
    """
    count = SAMPLE_RATE / 2 * 0.95 / pitch.clamp(min=50.0)
    whole = count.floor()
    angle = math.pi * phase
    sine = torch.sin(angle)
    near_pulse = sine.abs() < 1e-4
    safe = torch.where(near_pulse, torch.ones_like(sine), sine)
    kernel = torch.where(near_pulse, 2 * whole + 1, torch.sin((2 * whole + 1) * angle) / safe) - 1
    highest = 2 * torch.cos(2 * (whole + 1) * angle) * (count - whole)
    return (kernel + highest) / (2 * count).clamp(min=1).sqrt()


def interpolate_pitch(pitch: Tensor) -> Tensor:
    """`pitch` `(batch, hops)` with one neighbour hop on each side, to one value a sample for the inner hops,
    `(batch, (hops - 2) * 240)`: linear between the middles of the hops."""
    offsets = (torch.arange(HOP, device=pitch.device) + 0.5) / HOP - 0.5
    before, here, after = pitch[:, :-2, None], pitch[:, 1:-1, None], pitch[:, 2:, None]
    earlier = here + (here - before) * offsets
    later = here + (after - here) * offsets
    return torch.where(offsets < 0, earlier, later).flatten(1)


def limit(samples: Tensor) -> Tensor:
    """A soft limiter without memory: unchanged up to 0.8, smoothly below 1.0 above."""
    size = samples.abs()
    return torch.where(size <= 0.8, samples, samples.sign() * (0.8 + 0.2 * torch.tanh((size - 0.8) / 0.2)))


class Shaper(nn.Module):
    """Filters windows of pulses and noise by their envelopes: window, spectrum, envelope, back, window."""

    window: Tensor
    harmonic_bands: Tensor
    noise_bands: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("harmonic_bands", band_interpolation(WINDOW, HARMONIC_BANDS), persistent=False)
        self.register_buffer("noise_bands", band_interpolation(WINDOW, NOISE_BANDS), persistent=False)

    def forward(self, pulse_windows: Tensor, noise_windows: Tensor, harmonic: Tensor, noise: Tensor) -> Tensor:
        """Windows `(batch, hops, 960)` and log envelopes `(batch, hops, bands)` to shaped windows `(batch, hops, 960)`,
        ready to be overlap-added every 240 samples."""
        sources = torch.stack([pulse_windows, noise_windows], dim=1)
        envelopes = torch.stack([harmonic @ self.harmonic_bands.T, noise @ self.noise_bands.T], dim=1)
        spectra = torch.fft.rfft(sources * self.window, WINDOW) * envelopes.clamp(-12, 6).exp()
        return torch.fft.irfft(spectra, WINDOW).sum(1) * self.window / 1.5


def overlap_add(windows: Tensor) -> Tensor:
    """Sums windows `(batch, hops, 960)` at a distance of 240 samples: `(batch, (hops + 3) * 240)`."""
    length = (windows.shape[1] + TAPS - 1) * HOP
    folded = nn.functional.fold(windows.transpose(1, 2), (1, length), (1, WINDOW), stride=(1, HOP))
    return folded[:, 0, 0]
