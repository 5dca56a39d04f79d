"""Pitch and envelopes to sound: whole for training, hop by hop over an explicit state for streaming."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from studio.engine.harmonic_signal import (
    HARMONIC_BANDS,
    HOP,
    NOISE_BANDS,
    SAMPLE_RATE,
    TAPS,
    WINDOW,
    Shaper,
    interpolate_pitch,
    limit,
    overlap_add,
    pulses,
)

Noise = Callable[[int, int], Tensor]
"""Gives white noise `(1, count)` for `count` samples from the absolute sample `start` on."""
_HELD = (TAPS - 1) * HOP
"""Samples that later windows still add to."""


@dataclass(frozen=True)
class Envelopes:
    """What the decoder says of each 10 ms hop; `(batch, hops)`, and `(batch, hops, bands)` for the log envelopes."""

    log_pitch: Tensor
    voicing_logit: Tensor
    harmonic: Tensor
    noise: Tensor

    @property
    def pitch(self) -> Tensor:
        """Hertz, within 55 to 524."""
        return torch.exp(self.log_pitch.clamp(-2, 2.5) / 2) * 150

    def rows(self) -> Tensor:
        """One row a hop, `(batch, hops, 2 + bands)`: pitch, log gain of the voice, harmonic and noise envelope."""
        gain = torch.log(torch.sigmoid(self.voicing_logit * 4) + 1e-3)
        return torch.cat([self.pitch[..., None], gain[..., None], self.harmonic, self.noise], dim=-1)


class SynthesisState:
    """One stream's unfinished sound.

    A hop's pitch is interpolated and its envelopes are smoothed towards the next hop, and its envelopes shape a window
    that begins three hops earlier: four hops (40 ms) are held back.
    """

    def __init__(self, noise: Noise, device: torch.device) -> None:
        self.noise = noise
        self.hop = 0
        self.phase = torch.zeros(1, 1, dtype=torch.float64, device=device)
        self.recent: Tensor | None = None
        """Rows of the hop before the pending one and of the pending one, `(1, 2, 2 + bands)`."""
        self.sources = torch.zeros(2, 1, _HELD, device=device)
        """The newest pulses and noise."""
        self.tail = torch.zeros(1, _HELD, device=device)
        """Shaped windows so far, where later ones overlap them."""


class HarmonicSynthesis(nn.Module):
    """A pulse train and white noise, shaped by the decoder's envelopes."""

    def __init__(self) -> None:
        super().__init__()
        self.shaper = Shaper()

    def forward(self, envelopes: Envelopes, white: Tensor, pitch: Tensor | None = None) -> Tensor:
        """All hops at once, to `(batch, hops * 240)`. `white` `(batch, hops * 240)`; a `pitch` `(batch, hops)` in hertz
        replaces the predicted one (training)."""
        rows = envelopes.rows()
        if pitch is not None:
            rows = torch.cat([pitch[..., None], rows[..., 1:]], dim=-1)
        padded = torch.cat([rows[:, :1], rows, rows[:, -1:]], dim=1)
        pulse, _ = self._pulses(interpolate_pitch(padded[..., 0]), torch.zeros(len(rows), 1, dtype=torch.float64))
        windows = [nn.functional.pad(source, (_HELD, _HELD)).unfold(-1, WINDOW, HOP) for source in (pulse, white)]
        extended = [_repeat_last(each, TAPS - 1) for each in _smoothed(padded)]
        sound = overlap_add(self.shaper(*windows, *extended))
        return limit(sound[:, _HELD : _HELD + white.shape[1]])

    def step(self, envelopes: Envelopes, state: SynthesisState) -> Tensor:
        """The samples `(1, samples)` that these hops complete."""
        rows = envelopes.rows()
        known = torch.cat([rows[:, :1] if state.recent is None else state.recent, rows], dim=1)
        state.recent = known[:, -2:]
        first = state.hop
        sources = torch.stack(self._sources(known[..., 0], state))
        return self._shape(sources, *_smoothed(known), first, state)

    def finish(self, state: SynthesisState) -> Tensor:
        """The four hops held back: the last envelope rings out over silence."""
        assert state.recent is not None, "finish comes after the first step"
        known = torch.cat([state.recent, state.recent[:, -1:]], dim=1)
        harmonic, noise = (each.expand(-1, TAPS, -1) for each in _smoothed(known))
        first = state.hop
        pulse, white = self._sources(known[..., 0], state)
        silence = torch.zeros(1, _HELD, device=pulse.device)
        sources = torch.stack([torch.cat([pulse, silence], dim=1), torch.cat([white, silence], dim=1)])
        return self._shape(sources, harmonic, noise, first, state)

    def _sources(self, known_pitch: Tensor, state: SynthesisState) -> tuple[Tensor, Tensor]:
        """Pulses and noise for the inner hops of `known_pitch`, each `(1, samples)`."""
        hops = known_pitch.shape[1] - 2
        pulse, state.phase = self._pulses(interpolate_pitch(known_pitch), state.phase)
        white = state.noise(state.hop * HOP, hops * HOP)
        state.hop += hops
        return pulse, white

    def _pulses(self, pitch: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        turns = start + torch.cumsum(pitch.double() / SAMPLE_RATE, dim=-1)
        phase = turns - turns.floor()
        return pulses(pitch, phase.float()), phase[:, -1:]

    def _shape(self, sources: Tensor, harmonic: Tensor, noise: Tensor, first: int, state: SynthesisState) -> Tensor:
        """Windows from hop `first` on, added to what earlier ones left; the first window begins before the sound."""
        joined = torch.cat([state.sources, sources], dim=-1)
        state.sources = joined[..., -_HELD:]
        pulse_windows, noise_windows = joined.unfold(-1, WINDOW, HOP)
        sound = overlap_add(self.shaper(pulse_windows, noise_windows, harmonic, noise))
        sound[:, :_HELD] += state.tail
        state.tail = sound[:, -_HELD:]
        return limit(sound[:, max(0, _HELD - first * HOP) : -_HELD])


def _repeat_last(hops: Tensor, count: int) -> Tensor:
    return torch.cat([hops, hops[:, -1:].expand(-1, count, -1)], dim=1)


def _smoothed(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Harmonic and noise log envelopes of the inner hops of `rows`, the harmonic one lowered where there is no voice.

    Each is drawn a quarter towards either neighbour: what jitters from hop to hop is heard as roughness (measured: 0.1
    to 0.4 of DNSMOS). The voice's gain is not smoothed, so that its onsets stay sharp.
    """
    bands = rows[..., 2:]
    smooth = 0.25 * bands[:, :-2] + 0.5 * bands[:, 1:-1] + 0.25 * bands[:, 2:]
    harmonic, noise = smooth.split([HARMONIC_BANDS, NOISE_BANDS], dim=-1)
    return harmonic + rows[:, 1:-1, 1:2], noise
