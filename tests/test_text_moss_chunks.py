"""Pieces for Nano beyond what the golden cases hold, and frame budgets."""

import re

import pytest

from studio.text.moss_chunks import LONGEST_BUDGET, chunks, frame_budget, frame_estimate, nano_pieces
from studio.text.script import Utterance


def words(text: str) -> int:
    """A count of tokens that is easy to follow: words and marks, and each Chinese character."""
    return len(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]", text))


LONG = "One two three. Four five six, seven eight nine! Ten eleven: twelve thirteen fourteen fifteen sixteen"


def test_an_utterance_that_fits_goes_in_unchanged() -> None:
    utterance = Utterance("hi  there", pause=0.5, lead=0.1)
    assert nano_pieces(utterance, words, 50) == (utterance,)


def test_pieces_have_pauses_between_them_and_the_utterances_own_silence_around() -> None:
    pieces = nano_pieces(Utterance(LONG, pause=0.7, lead=0.2), words, 8)
    assert [piece.text for piece in pieces] == [
        "One two three.",
        "Four five six, seven eight nine!",
        "Ten eleven:",
        "twelve thirteen fourteen fifteen sixteen.",
    ]
    assert [piece.pause for piece in pieces] == [0.4, 0.24, 0.4, 0.7]
    assert [piece.lead for piece in pieces] == [0.2, 0, 0, 0]


@pytest.mark.parametrize("limit", [3, 5, 9, 14, 30])
def test_no_word_is_lost_doubled_or_moved_and_no_piece_is_too_long(limit: int) -> None:
    pieces = chunks(LONG, words, limit)
    assert " ".join(pieces).split() == (LONG + ".").split()
    assert max(words(piece) for piece in pieces) <= limit


@pytest.mark.parametrize("text", ["It is 1,234.50 kg at 12:30 now, they say.", "See a.b.c, or x;y and z:w, he said."])
def test_a_mark_within_a_number_or_a_word_is_no_place_to_cut(text: str) -> None:
    pieces = chunks(text, lambda piece: len(piece.split()), 4)
    assert len(pieces) > 1
    assert " ".join(pieces) == text


@pytest.mark.parametrize("second", ["后来下起了雨。", "后来下起了大雨点。"])
def test_a_mark_that_would_stand_alone_or_first_stays_with_its_piece(second: str) -> None:
    text = "我们沿着河走了很久。" + second
    assert any(piece.startswith("。") for piece in chunks(text, words, 9))
    pieces = [piece.text for piece in nano_pieces(Utterance(text), words, 9)]
    assert "".join(pieces) == text
    assert not any(piece.startswith("。") for piece in pieces)


def test_a_word_longer_than_the_limit_is_cut_and_comes_to_an_end() -> None:
    pieces = chunks("x" * 100, len, 30)
    assert "".join(pieces) == "X" + "x" * 99 + "."
    assert max(map(len, pieces)) <= 30


def test_a_limit_that_nothing_fits_still_comes_to_an_end() -> None:
    assert chunks("abc", lambda _piece: 99, 1) == ["A", "b", "c", "."]


def test_a_budget_grows_with_the_text_between_4_seconds_and_10_minutes() -> None:
    assert frame_budget("Hi.") == 50
    assert frame_budget("word " * 100) == pytest.approx(2.5 * frame_estimate("word " * 100), abs=1)
    assert frame_budget("word " * 9999) == LONGEST_BUDGET


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("今天的风很轻", 1.5), ("1984 2024 1999 1776", 6.0), ("ひらがなひらがな", 1.4), ("안녕하세요", 0.7)],
)
def test_dense_scripts_and_digits_take_more_time_a_character(text: str, seconds: float) -> None:
    assert frame_estimate(text) / 12.5 == pytest.approx(seconds, rel=0.15)
