"""What the tests of the MOSS language models share: toy tokenizers, drawing in the published order, and checkpoints
that are changed on purpose."""

import shutil
from pathlib import Path

import numpy as np
import torch
from moss_golden import GoldenFolder
from safetensors.torch import load_file, save_file
from torch import Tensor

from studio.engine.frame_sampling import HeadSampling, SpeechSampling, choose
from studio.engine.sampling import CounterDraws
from studio.engine.speech_frames import speech_frames
from studio.engine.speech_model import SpeechModel, load_speech_model

DRAWS = CounterDraws(0, 0)


class PairTokenizer:
    """The toy tokenizer of `local_v1_5`: bytes two at a time, so that it shows where a call begins."""

    control_ids: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        data = text.encode() + (b"\0" if len(text.encode()) % 2 else b"")
        return [16 + (3 * first + 5 * second) % 96 for first, second in zip(data[::2], data[1::2], strict=True)]

    def spell(self, control_id: int) -> list[int]:
        raise AssertionError(f"{control_id} is no control token here")


class PrefixTokenizer:
    """The toy tokenizer of `nano_lm`: one id ahead of each call that is not empty, then one for each byte."""

    control_ids: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        return [10, *(11 + byte % 53 for byte in text.encode())] if text else []

    def spell(self, control_id: int) -> list[int]:
        raise AssertionError(f"{control_id} is no control token here")


def frames(model: SpeechModel, rows: Tensor, sampling: SpeechSampling, budget: int = 24, **options) -> Tensor:
    """All frames of one request, `(num_frames, num_codebooks)`."""
    made = list(speech_frames(model, rows.numpy(), budget=budget, sampling=sampling, draws=DRAWS, **options))
    return torch.stack(made)


def greedy(penalty: float = 1.0) -> SpeechSampling:
    best = HeadSampling(temperature=0.0)
    return SpeechSampling(stop=best, codes=HeadSampling(temperature=0.0, repetition_penalty=penalty))


def multinomial(chances: Tensor, _uniforms: Tensor) -> Tensor:
    """Draws as the published code does, from torch's own generator."""
    return torch.multinomial(chances, 1)[:, 0]


def sampled(settings: dict[str, float], text_top_k: int | None = None) -> SpeechSampling:
    """The sampling that a golden folder's info.json states; its stop head with another top-k where one is given."""
    stop = HeadSampling(
        temperature=settings["text_temperature"],
        top_p=settings["text_top_p"],
        top_k=int(text_top_k or settings["text_top_k"]),
    )
    codes = HeadSampling(
        temperature=settings["audio_temperature"],
        top_p=settings["audio_top_p"],
        top_k=int(settings["audio_top_k"]),
        repetition_penalty=settings["audio_repetition_penalty"],
    )
    return SpeechSampling(stop=stop, codes=codes)


@torch.inference_mode()
def hidden_states(model: SpeechModel, rows: Tensor) -> Tensor:
    """The backbone's output for a whole prompt, in one pass."""
    cache = model.transformer.start(1, len(rows))
    return model.transformer.prefill(model.embed_rows(rows), cache, 0)


@torch.inference_mode()
def taught_frame(model: SpeechModel, hidden: Tensor, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A frame for every state of `hidden` `(slots, width)` with the codes that `codes` `(slots, num_codebooks)` says:
    outputs of the depth positions, stop logits, and logits `(slots, num_codebooks, codebook_size)`."""
    cache = model.start_depth(len(hidden))
    state = model.local_transformer.step(hidden, 0, cache)
    stops, states = model.stop_logits(state), [state]
    state = model.first_code_state(state, cache)
    if model.first_position:
        states.append(state)
    logits = [model.code_logits(state, 0)]
    for codebook in range(model.config.num_codebooks - 1):
        state = model.next_code_state(codes[:, codebook], codebook, cache)
        states.append(state)
        logits.append(model.code_logits(state, codebook + 1))
    return torch.stack(states, dim=1), stops, torch.stack(logits, dim=1)


def sampled_frames(model: SpeechModel, golden: GoldenFolder, run: dict) -> Tensor:
    """One run of those that info.json lists, drawn in the published order from its seed."""
    sampling = sampled(golden.info["sampled_runs"]["settings"], run.get("text_top_k"))
    torch.manual_seed(run["seed"])
    return frames(model, golden.expected[f"rows_{run['prompt']}"], sampling, pick=multinomial)


def run_name(run: dict) -> str:
    ending = "_textk1" if run.get("text_top_k") == 1 else ""
    return f"sampled_{run['prompt']}_seed{run['seed']}{ending}_codes"


def changed_checkpoint(golden: GoldenFolder, weights: str, folder: Path, **tensors: Tensor | None) -> Path:
    """A copy of a golden folder's model with some tensors replaced, or left out where they are None."""
    folder.mkdir(exist_ok=True)
    shutil.copy(golden.path / "config.json", folder)
    kept = load_file(golden.path / weights) | tensors
    save_file({name: tensor for name, tensor in kept.items() if tensor is not None}, folder / "model.safetensors")
    return folder


def naive_greedy(model: SpeechModel, rows: Tensor, count: int) -> Tensor:
    """Greedy frames without any state kept: the whole prompt again for every frame."""
    made: list[Tensor] = []
    for _ in range(count):
        hidden = hidden_states(model, rows)[-1:]
        codes = torch.zeros(1, model.config.num_codebooks, dtype=torch.int64)
        for codebook in range(model.config.num_codebooks):
            logits = taught_frame(model, hidden, codes)[2]
            codes[:, codebook] = choose(logits[:, codebook], HeadSampling(temperature=0.0), torch.zeros(1))
        made.append(codes[0])
        rows = torch.cat([rows, torch.cat([torch.tensor([[model.config.tokens.assistant_slot]]), codes], dim=1)])
    return torch.stack(made)


def loaded(golden: GoldenFolder, dtype: torch.dtype = torch.float32) -> SpeechModel:
    return load_speech_model(golden.path, dtype=dtype)


def codes_of(golden: GoldenFolder, name: str) -> np.ndarray:
    """Golden codes, `[frame, channel]`, as this studio has them: `(num_codebooks, num_frames)`."""
    return golden.inputs[name].T.numpy()
