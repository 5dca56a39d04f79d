"""Texts for the teachers: the same for one seed, and never a held-out sentence."""

from itertools import islice
from pathlib import Path

from studio.training.held_out import PLAIN, SPECIAL, is_held_out, words
from studio.training.texts import sentences, texts


def test_one_seed_gives_the_same_texts_and_another_seed_others() -> None:
    first, again, other = (list(islice(texts(seed, ()), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_held_out_sentence_never_comes_out_whatever_its_punctuation() -> None:
    found = [sentence.upper().rstrip(".") + "!" for sentence in PLAIN]
    made = list(islice(texts(3, found), 400))
    assert not any(is_held_out(text) for text in made)


def test_words_decide_what_is_held_out() -> None:
    assert is_held_out("hello")
    assert is_held_out("The SOUP needs a little more salt")
    assert not is_held_out("The soup needs a little more pepper.")
    assert all(is_held_out(text) for text in SPECIAL.values())


def test_hyphens_part_words_and_apostrophes_do_not() -> None:
    assert words("Twenty-one, isn't it?") == ["twenty", "one", "isn't", "it"]


def test_sentences_are_cut_out_of_sayings_without_their_authors(tmp_path: Path) -> None:
    sayings = (
        "All is well that ends well enough.\nAnd so it goes on and on.  -- A. Writer\n%\nX = 1; print it now, please!\n"
    )
    (tmp_path / "wisdom").write_text(sayings, encoding="utf-8")
    (tmp_path / "perl").write_text("This one is about something technical.", encoding="utf-8")
    assert sentences(tmp_path) == ["All is well that ends well enough.", "And so it goes on and on."]


def test_without_sayings_there_are_made_texts_only(tmp_path: Path) -> None:
    assert sentences(tmp_path / "missing") == []
    assert all(islice(texts(1, ()), 20))
