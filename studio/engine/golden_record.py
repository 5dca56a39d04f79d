"""What a loaded MOSS model computes for inputs that are always the same, as arrays that can be kept and compared.

Made for machines that have the released weights: one writes the file (with this studio, or by the published code, which
finds all inputs in it), another checks it. The parts are independent: each has an input of its own, so that a fault in
one does not spread to the others.
"""

import platform
from dataclasses import dataclass

import numpy as np
import torch

from studio.audio.waveform import Waveform
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.lanes import EncoderLanes
from studio.engine.moss_engine import MossEngine
from studio.engine.moss_family import MossParts

SENTENCES = (
    "The ferry leaves at noon, and the captain never waits for anyone.",
    " Two  spaces,\nand a new line ",
    "Straße, naïve, 42 % of $3.50",
    "今天天气很好，我们去公园吧。",
    "<|audio_start|>",
)
_FRAMES = 4
_SECONDS = 3


@dataclass(frozen=True, kw_only=True)
class GoldenRecord:
    """`arrays` by name: inputs `clip` (int16 `(channels, samples)`) and `frames` (int16 `(num_codebooks, 4)`), outputs
    `codes` of the prepared clip, `tokens_N` of each sentence, `prompt` (rows that clone `frames` saying the first
    sentence), `stop_logits` and `code_logits` of the frame after that prompt when its codes are the first of `frames`,
    and `decoded`, the sound of `frames`. `made` says with what and where."""

    arrays: dict[str, np.ndarray]
    made: dict[str, str]


def golden_record(engine: MossEngine, clip: np.ndarray | None = None) -> GoldenRecord:
    """All of it, computed now; `clip` in place of the one that is made here, where another machine's is compared with.

    A clip of sines has other last bits elsewhere, so who compares takes it from the file.
    """
    parts = engine.parts
    clip = made_clip(engine.sample_rate) if clip is None else clip
    frames = made_frames(parts)
    waveform = Waveform(clip.astype(np.float32) / np.float32(32_768), engine.sample_rate)
    prompt = parts.prompts.clone(SENTENCES[0], [frames])
    stop_logits, code_logits = EncoderLanes().run(lambda: first_frame(parts, prompt, frames[:, 0]))
    tokens = {
        f"tokens_{number}": np.array(parts.tokenizer.encode(sentence), dtype=np.int64)
        for number, sentence in enumerate(SENTENCES)
    }
    outputs = {
        "codes": engine.encode(engine.prepare(waveform)).codes,
        "prompt": prompt,
        "stop_logits": stop_logits,
        "code_logits": code_logits,
        "decoded": EncoderLanes().run(lambda: _decoded(parts, frames)),
    }
    return GoldenRecord(arrays={"clip": clip, "frames": frames} | tokens | outputs, made=_made(engine))


def made_clip(sample_rate: int) -> np.ndarray:
    """A gliding buzz in noise, wandering from left to right; int16 `(2, samples)`."""
    time_axis = np.arange(_SECONDS * sample_rate) / sample_rate
    phase = 2 * np.pi * np.cumsum(110 + 40 * np.sin(3 * time_axis)) / sample_rate
    buzz = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 24))
    noise = np.random.default_rng(0).standard_normal((2, time_axis.size))
    share = 0.5 + 0.4 * np.sin(2 * time_axis)
    sound = 0.08 * (1 + np.sin(25 * time_axis)) * buzz * np.stack([share, 1 - share]) + 0.01 * noise
    return np.rint(sound.clip(-0.99, 0.99) * 32_767).astype(np.int16)


def made_frames(parts: MossParts) -> np.ndarray:
    """Codes by a rule that any program can follow: 31 times the frame + 17 times the codebook + 7, modulo the size."""
    config = parts.model.config
    codebooks, frames = np.indices((config.num_codebooks, _FRAMES))
    return ((31 * frames + 17 * codebooks + 7) % config.codebook_size).astype(np.int16)


@torch.inference_mode()
def first_frame(parts: MossParts, prompt: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Float32 logits of the first frame after a prompt: `(2,)` of going on and stopping, and `(num_codebooks,
    codebook_size)`, each codebook's given the `codes` of those before it."""
    model = parts.model
    given = torch.from_numpy(codes.astype(np.int64)).to(parts.device)
    with fixed_arithmetic():
        rows = model.embed_rows(torch.from_numpy(prompt).to(parts.device))
        hidden = model.transformer.prefill(rows, model.transformer.start(1, len(prompt)), 0)[-1:]
        depth = model.start_depth(1)
        state = model.local_transformer.step(hidden, 0, depth)
        stop, state = model.stop_logits(state), model.first_code_state(state, depth)
        logits = [model.code_logits(state, 0)]
        for codebook in range(len(codes) - 1):
            state = model.next_code_state(given[codebook : codebook + 1], codebook, depth)
            logits.append(model.code_logits(state, codebook + 1))
    return stop[0].float().cpu().numpy(), torch.cat(logits).float().cpu().numpy()


@torch.inference_mode()
def _decoded(parts: MossParts, frames: np.ndarray) -> np.ndarray:
    with fixed_arithmetic():
        return parts.decoder.decode(torch.from_numpy(frames.astype(np.int64)).to(parts.device)).cpu().numpy()


def _made(engine: MossEngine) -> dict[str, str]:
    here = engine.environment
    return {
        "model": engine.name,
        "revision": engine.revision,
        "codec_digest": engine.codec.digest,
        "device": here.device,
        "dtype": engine.parts.dtype,
        "torch": here.torch_version,
        "cuda": here.cuda_version or "",
        "threads": str(here.num_threads),
        "machine": f"{platform.system()} {platform.machine()}",
    }
