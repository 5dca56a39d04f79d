"""`python -m studio.training`: the steps that made the embedded voice, in order, and its evaluation.

    speech kokoro|joe FOLDER      the teachers read texts into FOLDER
    decoder FOLDER                the codec's decoder is trained on, codes frozen, after an ear for phonemes
    prepare FOLDER                codes, phonemes and alignments, to FOLDER/examples.pt
    language FOLDER               the language model is trained on
    evaluate                      figures on held-out sentences, beside the teachers' own

`decoder` and `language` start from the model folder --model and write the model folder --output every five minutes.
"""

# ruff: noqa: PLC0415, T201  (each step imports its own extra; this file talks to a person in a terminal)

import argparse
import logging
from pathlib import Path

import torch

from studio.engine.aligned_model import AlignedModel
from studio.engine.checkpoints import VoiceModel, load, save
from studio.settings import assets_dir


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m studio.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    speech = commands.add_parser("speech")
    speech.add_argument("teacher", choices=("kokoro", "joe"))
    speech.add_argument("folder", type=Path)
    speech.add_argument("--seed", type=int, default=1)
    speech.add_argument("--minutes", type=float, default=30)
    speech.set_defaults(run=_speech)
    for name, run in (("decoder", _decoder), ("prepare", _prepare), ("language", _language)):
        step = commands.add_parser(name)
        step.add_argument("folder", type=Path)
        step.add_argument("--model", type=Path, default=assets_dir() / "model")
        step.add_argument("--output", type=Path, default=assets_dir() / "model")
        step.add_argument("--minutes", type=float, default=60)
        step.add_argument("--learning-rate", type=float, default=5e-4)
        step.set_defaults(run=run)
    evaluation = commands.add_parser("evaluate")
    evaluation.add_argument("--model", type=Path, default=assets_dir() / "model")
    evaluation.add_argument("--voices", type=Path, default=assets_dir() / "voices")
    evaluation.add_argument("--num-voices", type=int, default=4)
    evaluation.add_argument("--sentences", type=int, default=30)
    evaluation.add_argument("--seed", type=int, default=1)
    evaluation.add_argument("--json", action="store_true")
    evaluation.set_defaults(run=_evaluate)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    arguments.run(arguments)


def _speech(arguments: argparse.Namespace) -> None:
    from studio.training.corpus import record
    from studio.training.teachers import Joe, Kokoro

    teacher = Kokoro() if arguments.teacher == "kokoro" else Joe()
    record(teacher, arguments.folder, name=arguments.teacher, minutes=arguments.minutes, seed=arguments.seed)


def _decoder(arguments: argparse.Namespace) -> None:
    from studio.training.codec import train_decoder
    from studio.training.ear import train_ear
    from studio.training.own_draws import with_draws
    from studio.training.pieces import DecoderTraining
    from studio.training.prepare import recordings

    model = load(arguments.model)
    options = DecoderTraining(minutes=arguments.minutes, learning_rate=arguments.learning_rate)
    known = with_draws(model.language, recordings(arguments.folder, model.codec, model.phonemes), model.recommended)
    ear = train_ear(known, len(model.phonemes))
    train_decoder(model.codec, known, options, lambda _: _save(model, model.language, arguments.output), ear)


def _prepare(arguments: argparse.Namespace) -> None:
    from studio.training.prepare import prepare

    model = load(arguments.model)
    torch.save(prepare(arguments.folder, model.codec, model.phonemes), arguments.folder / "examples.pt")


def _language(arguments: argparse.Namespace) -> None:
    from studio.training.dataset import hold_out
    from studio.training.language import LanguageTraining, train

    model = load(arguments.model)
    examples = torch.load(arguments.folder / "examples.pt", weights_only=False)
    options = LanguageTraining(minutes=arguments.minutes, learning_rate=arguments.learning_rate)
    trained, held = hold_out(examples)
    train(model.language, trained, held, options, lambda language: _save(model, language, arguments.output))


def _evaluate(arguments: argparse.Namespace) -> None:
    from studio.training.evaluate import describe, evaluate

    report = evaluate(
        arguments.model,
        arguments.voices,
        num_voices=arguments.num_voices,
        sentences=arguments.sentences,
        seed=arguments.seed,
    )
    print(report.to_json() if arguments.json else describe(report))


def _save(model: VoiceModel, language: AlignedModel, folder: Path) -> None:
    with torch.no_grad():
        save(folder, model.codec, language, phonemes=model.phonemes, recommended=model.recommended)


if __name__ == "__main__":
    main()
