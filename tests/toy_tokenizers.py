"""Small tokenizers of the two kinds that the MOSS models come with, trained on a few sentences."""

import io

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXTS = [
    "nine small boats cross the bay at noon",
    "the ferry leaves at noon, and the captain never waits for anyone",
    "The quick brown fox jumps over the lazy dog. Yes, you may!",
] * 9
CONTROLS = ("im_start", "im_end", "audio_start", "audio_end", "user_slot", "assistant_slot")


def nano_tokenizer() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=320,
        model_type="bpe",
        normalization_rule_name="nmt_nfkc",
        byte_fallback=True,
        pad_id=3,
        user_defined_symbols=[*(f"<|{name}|>" for name in CONTROLS), "<user_inst>", "</user_inst>"],
        minloglevel=2,
    )
    return model.getvalue()


def local_tokenizer() -> tuple[bytes, dict[str, int]]:
    """The tokenizer, and the ids that the configuration names."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    names = ("endoftext", *CONTROLS)
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", normalized=False) for name in names])
    ids = {name: tokenizer.encode(f"<|{name}|>").ids[0] for name in names}
    fields = {f"{name}_token_id": ids[name] for name in CONTROLS[:4]}
    fields |= {"pad_token_id": ids["endoftext"], "audio_user_slot_token_id": ids["user_slot"]}
    fields |= {"audio_assistant_slot_token_id": ids["assistant_slot"]}
    return tokenizer.to_str().encode(), fields
