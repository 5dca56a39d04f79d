import re

import pytest

from studio.text.script import SENTENCE_PAUSE, utterances
from studio.text.sentences import LONGEST_PIECE


def texts(script: str) -> list[str]:
    return [utterance.text for utterance in utterances(script)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met Mr. and Mrs. Jones at St. Mary's.",
        "It costs 3.14 dollars, e.g. at the shop, i.e. there.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Army and the U.K. met, etc. and so on.",
        "See fig. 3, vol. 2, pp. 10 and no. 7 of it.",
        "We met at 5 p.m. in the yard.",
        'He said, "Stop!" and ran.',
        "Well... maybe (really!) so.",
        "Version 1.2.3 is out.",
        "Is it A vs. B?",
        "The yard is 5 ft. long.",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(sentence: str) -> None:
    assert texts(sentence) == [sentence]
    assert texts(f"{sentence} Then came the end.") == [sentence, "Then came the end."]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("So did I. You know.", ["So did I.", "You know."]),
        ('"Why?" She left.', ['"Why?"', "She left."]),
        ("He left at 5 p.m. Bob stayed.", ["He left at 5 p.m.", "Bob stayed."]),
        ("No. Really?! Yes!!!", ["No.", "Really?", "Yes!"]),
        ("(It is so.) Then go.", ["(It is so.)", "Then go."]),
        ("It ended.Then it began.", ["It ended.", "Then it began."]),
        ("He has 5. She has 6.", ["He has 5.", "She has 6."]),
        ("One… Two", ["One...", "Two"]),
        ("你好。世界！你好吗？好", ["你好。", "世界！", "你好吗？", "好"]),
        ("Wrapped\nlines are\none sentence. And\nanother.", ["Wrapped lines are one sentence.", "And another."]),
        ("Roses are red\nViolets are blue", ["Roses are red, Violets are blue"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


def test_a_long_sentence_is_cut_at_clauses_and_loses_no_word() -> None:
    clause = "the river ran through the valley where nobody had lived for years"
    sentence = ", ".join([clause] * 7) + "."
    parts = utterances(sentence)
    assert all(len(part.text) <= LONGEST_PIECE for part in parts)
    assert all(part.text.endswith(",") for part in parts[:-1])
    assert all(0 < part.pause < SENTENCE_PAUSE for part in parts[:-1])
    assert words(" ".join(part.text for part in parts)) == words(sentence)


def test_a_sentence_without_clauses_is_cut_at_spaces() -> None:
    sentence = "word " * 200
    assert all(len(text) <= LONGEST_PIECE and set(text.split()) == {"word"} for text in texts(sentence))
    assert sum(len(text.split()) for text in texts(sentence)) == 200


def test_a_word_longer_than_an_utterance_is_cut_anyway() -> None:
    assert "".join(texts("a" * 500)) == "a" * 500
