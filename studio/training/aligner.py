"""Which phoneme is heard when: a flat-start monophone Viterbi aligner, trained on the data it aligns.

Two states a phoneme with one Gaussian each, over principal components of log-mel and their slopes; word breaks and
pauses are silences that may be skipped. Knows nothing of torch or of files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_COMPONENTS = 24
_SILENCE = 0
_STAY, _MOVE = -0.2, -1.7
"""Log scores of staying in a state for another tick, and of leaving it."""
_PRIOR = 5.0
"""Ticks that the global mean and variance count for in every state."""
_IMPOSSIBLE = -1e9


@dataclass(frozen=True, eq=False)
class Spoken:
    """An utterance: log-mel `(ticks, bands)` every 10 ms, and its phonemes."""

    mel: np.ndarray
    phonemes: Sequence[str]


@dataclass(frozen=True, eq=False)
class Alignment:
    """The phoneme index of every tick `(ticks,)`, and the mean log likelihood of a tick."""

    phonemes: np.ndarray
    score: float


@dataclass(frozen=True, eq=False)
class _Path:
    """The chain of states of one utterance, and the phoneme each belongs to."""

    states: np.ndarray
    phonemes: np.ndarray


class Aligner:
    """Fits itself to a sample of utterances, then aligns any of the same phonemes."""

    def __init__(
        self, utterances: Sequence[Spoken], silences: frozenset[str], *, passes: int = 8, seed: int = 0
    ) -> None:
        self._silences = silences
        known = sorted({_plain(each) for one in utterances for each in one.phonemes if each not in silences})
        self._numbers = {phoneme: number for number, phoneme in enumerate(known)}
        self._fit_projection([_normalise(each.mel) for each in utterances], np.random.default_rng(seed))
        features = [self._project(each.mel) for each in utterances]
        paths = [self._path(each.phonemes) for each in utterances]
        chains = [_spread(path, len(each)) for path, each in zip(paths, features, strict=True)]
        self._estimate(features, paths, chains)
        for _ in range(passes):
            chains = [self._viterbi(each, path)[0] for each, path in zip(features, paths, strict=True)]
            self._estimate(features, paths, chains)

    def align(self, utterance: Spoken) -> Alignment:
        path = self._path(utterance.phonemes)
        chain, score = self._viterbi(self._project(utterance.mel), path)
        return Alignment(path.phonemes[chain], score)

    def _fit_projection(self, mels: list[np.ndarray], random: np.random.Generator) -> None:
        ticks = np.concatenate(mels)
        sample = ticks[random.permutation(len(ticks))[:40_000]]
        self._centre = sample.mean(0)
        self._axes = np.linalg.svd(sample - self._centre, full_matrices=False)[2][:_COMPONENTS].T

    def _project(self, mel: np.ndarray) -> np.ndarray:
        components = (_normalise(mel) - self._centre) @ self._axes
        return np.concatenate([components, np.gradient(components, axis=0) * 2], axis=1)

    def _path(self, phonemes: Sequence[str]) -> _Path:
        """A silence at both ends; two states a phoneme, one a silence."""
        states, owners = [_SILENCE], [0]
        for index, phoneme in enumerate(phonemes):
            if phoneme in self._silences:
                states.append(_SILENCE)
                owners.append(index)
            else:
                first = 1 + 2 * self._numbers[_plain(phoneme)]
                states += [first, first + 1]
                owners += [index, index]
        return _Path(np.array([*states, _SILENCE]), np.array([*owners, len(phonemes) - 1]))

    def _estimate(self, features: list[np.ndarray], paths: list[_Path], chains: list[np.ndarray]) -> None:
        """Means, variances and log determinants of all states, drawn towards the global ones."""
        ticks = np.concatenate(features)
        states = np.concatenate([path.states[chain] for path, chain in zip(paths, chains, strict=True)])
        mean, variance = ticks.mean(0), ticks.var(0)
        size = 1 + 2 * len(self._numbers)
        count = np.bincount(states, minlength=size)[:, None] + _PRIOR
        sums, squares = np.zeros((size, ticks.shape[1])), np.zeros((size, ticks.shape[1]))
        np.add.at(sums, states, ticks)
        np.add.at(squares, states, ticks**2)
        self._means = (sums + _PRIOR * mean) / count
        spread = (squares + _PRIOR * (variance + mean**2)) / count - self._means**2
        self._precisions = 1 / np.maximum(spread, variance * 0.05)

    def _log_likelihoods(self, features: np.ndarray, states: np.ndarray) -> np.ndarray:
        """`(ticks, states)`, constants left out."""
        means, precisions = self._means[states], self._precisions[states]
        squares = features**2 @ precisions.T - 2 * features @ (means * precisions).T
        return -0.5 * (squares + (means**2 * precisions - np.log(precisions)).sum(1))

    def _viterbi(self, features: np.ndarray, path: _Path) -> tuple[np.ndarray, float]:
        """The best position in the path for every tick `(ticks,)`, and the mean score of a tick."""
        scores = self._log_likelihoods(features, path.states)
        ticks, length = scores.shape
        skips = np.full(length, _IMPOSSIBLE)
        skips[2:][path.states[1:-1] == _SILENCE] = _MOVE
        best = np.full(length, _IMPOSSIBLE)
        best[:2] = scores[0, :2]
        steps = np.zeros((ticks, length), dtype=np.int8)
        options = np.full((3, length), _IMPOSSIBLE)
        for tick in range(1, ticks):
            options[0] = best + _STAY
            options[1, 1:] = best[:-1] + _MOVE
            options[2, 2:] = best[:-2] + skips[2:]
            steps[tick] = options.argmax(0)
            best = options.max(0) + scores[tick]
        position = length - 1 if best[-1] >= best[-2] else length - 2
        score = float(best[position]) / ticks
        chain = np.zeros(ticks, dtype=np.int64)
        for tick in range(ticks - 1, -1, -1):
            chain[tick] = position
            position -= int(steps[tick, position])
        return chain, score


def _plain(phoneme: str) -> str:
    """Stressed and unstressed vowels share their states."""
    return phoneme.replace("ˈ", "").replace("ˌ", "")


def _normalise(mel: np.ndarray) -> np.ndarray:
    """Without the mean of the louder ticks: what is left differs less from voice to voice."""
    energy = mel.mean(1)
    return mel - mel[energy > np.percentile(energy, 40)].mean(0)


def _spread(path: _Path, ticks: int) -> np.ndarray:
    """The flat start: all states but the silences in equal shares, silence at both ends."""
    sounding = np.flatnonzero(path.states != _SILENCE)
    edge = int(ticks * 0.02)
    inner = ticks - 2 * edge
    chain = np.zeros(ticks, dtype=np.int64)
    chain[edge : ticks - edge] = sounding[np.arange(inner) * len(sounding) // max(1, inner)]
    chain[ticks - edge :] = len(path.states) - 1
    return chain
