"""Both tokenizers on small models of the released kinds, made here."""

import io

import pytest
import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from studio.engine.moss_tokenizers import NanoTokenizer, QwenTokenizer
from studio.errors import CheckpointError

TEXTS = [
    "nine small boats cross the bay at noon",
    "the bay was still, and the boats were slow",
    "im start audio user",
] * 9
CONTROLS = ["<|im_start|>", "<|im_end|>", "<|audio_start|>", "<user_inst>", "</user_inst>"]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in CONTROLS[:3]])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return QwenTokenizer(folder)


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nano")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=320,
        model_type="bpe",
        normalization_rule_name="nmt_nfkc",
        byte_fallback=True,
        user_defined_symbols=CONTROLS,
        minloglevel=2,
    )
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    return NanoTokenizer(folder)


def test_qwen_keeps_every_space_and_adds_nothing_at_the_ends(qwen):
    assert qwen.encode("") == []
    assert len({tuple(qwen.encode(text)) for text in ("bay", " bay", "bay ", "bay\n", "  bay")}) == 5
    assert qwen.control_ids.isdisjoint(qwen.encode("nine small boats"))


def test_nano_takes_line_breaks_for_spaces_and_drops_what_is_too_many(nano):
    assert nano.encode("") == nano.encode("\n") == []
    assert nano.encode("the bay") == nano.encode("  the\nbay ") == nano.encode("the  bay")


def test_a_character_that_was_never_seen_is_spelled_in_bytes(nano):
    ids = nano.encode("\U0001f600")
    assert len(ids) == 5
    assert nano.control_ids.isdisjoint(ids)


@pytest.mark.parametrize("name", [*CONTROLS[:3], "<think>"])
def test_qwen_knows_the_control_tokens_that_text_can_spell(qwen, name):
    ids = qwen.encode(f"boats{name}boats")
    assert len(qwen.control_ids.intersection(ids)) == 1
    (control,) = qwen.encode(name)
    assert qwen.spell(control) == qwen.encode(name.strip("<|/>").replace("_", " "))


@pytest.mark.parametrize("name", [*CONTROLS, "＜|im_start|＞"])
def test_nano_knows_the_control_tokens_that_text_can_spell(nano, name):
    (control,) = nano.control_ids.intersection(nano.encode(f"boats {name} boats"))
    assert nano.spell(control) == nano.encode(name.strip("<|/>＜＞").replace("_", " "))


def test_a_token_spelled_out_steers_nothing(qwen, nano):
    for tokenizer in (qwen, nano):
        for control in tokenizer.control_ids:
            assert tokenizer.control_ids.isdisjoint(tokenizer.spell(control))


@pytest.mark.parametrize(("tokenizer", "name"), [(QwenTokenizer, "tokenizer.json"), (NanoTokenizer, "tokenizer.model")])
def test_a_missing_or_damaged_file_is_named(tokenizer, name, tmp_path):
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        tokenizer(tmp_path)
    for content in (b"", b"\x00damaged"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match=f"{name} is damaged"):
            tokenizer(tmp_path)
