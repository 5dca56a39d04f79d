import random
import re
import time

import pytest

from studio.errors import BadPauseTag, NothingToSpeak, ScriptTooLong
from studio.text.script import LONGEST_PAUSE, LONGEST_SCRIPT, PARAGRAPH_PAUSE, SENTENCE_PAUSE, Utterance, utterances
from studio.text.sentences import LONGEST_PIECE


def texts(script: str) -> list[str]:
    return [utterance.text for utterance in utterances(script)]


def silences(script: str) -> list[float]:
    """Before the first utterance, then after each."""
    result = utterances(script)
    return [result[0].lead, *(utterance.pause for utterance in result)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize(
    "script",
    [
        "",
        " ",
        "\n\n\t ",
        "😀👍🏽",
        "...",
        "!?",
        "***",
        "---",
        "“”",
        "\u200b\u200d\ufeff",
        "[pause 1s]",
        "[pause 1s] . [pause 2s]",
        "<br/>",
        "<!-- hello -->",
        "<script>hello()</script>",
        "&nbsp;",
        "\\n\\t",
        "# ",
        "- ",
        "```",
        "(){}[]",
        "_",
        "⁂ ♪",
    ],
)
def test_without_a_word_there_is_nothing_to_speak(script: str) -> None:
    with pytest.raises(NothingToSpeak, match="Type a sentence"):
        utterances(script)


def test_one_word_is_one_utterance_without_silence() -> None:
    assert utterances("Hello") == (Utterance("Hello", pause=0, lead=0),)


def test_sentences_and_paragraphs_get_their_natural_pauses_and_the_end_none() -> None:
    assert texts("One is here. Two is too!\n\nThree?") == ["One is here.", "Two is too!", "Three?"]
    assert silences("One is here. Two is too!\n\nThree?") == [0, SENTENCE_PAUSE, PARAGRAPH_PAUSE, 0]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("One. [pause 0.5s] Two.", [0, 0.5, 0]),
        ("One. [pause 500ms] Two.", [0, 0.5, 0]),
        ("One [pause 1,25 s] two.", [0, 1.25, 0]),
        ("One.[PAUSE 2 Seconds]Two.", [0, 2, 0]),
        ("One. [pause 0s] Two.", [0, 0, 0]),
        ("One.\n\n[pause 0.1s]\n\nTwo.", [0, 0.1, 0]),
        ("One. [pause 1s] [pause .5s] Two.", [0, 1.5, 0]),
        ("One [pause 1s], [pause 1s] two", [0, 2, 0]),
        ("[pause 0.5s] One.", [0.5, 0]),
        ("[pause 0.5s]\n\n[pause 1s] One. Two.", [1.5, SENTENCE_PAUSE, 0]),
        ("One. [pause 3s]", [0, 3]),
        ("One. [pause\t1s] Two. Three.", [0, 1, SENTENCE_PAUSE, 0]),
        ("**One [pause 1s] two**", [0, 1, 0]),
        ("<p>One [pause 1s] two</p>", [0, 1, 0]),
    ],
)
def test_a_pause_tag_is_exactly_that_much_silence_in_place_of_the_natural_one(
    script: str, expected: list[float]
) -> None:
    assert silences(script) == expected
    assert "pause" not in " ".join(texts(script)).lower()


@pytest.mark.parametrize(
    "tag",
    [
        "[pause",
        "[pause]",
        "[pause abc]",
        "[pause 5]",
        "[pause -1s]",
        "[pause 1e3s]",
        "[pause s]",
        "[pause 1 hour]",
        "[ pause for effect ]",
        "[pause 0.5s",
        "[pause: 1s]",
        "[pause 31s]",
        "[pause 30001ms]",
        "[pause 1s 2s]",
        "[PAUSE x]",
        "[pause\n1s]",
        "[pause 1..5s]",
    ],
)
@pytest.mark.parametrize("around", ["Hello {} world.", "{}", "{}\nHello"])
def test_a_malformed_pause_is_refused_never_swallowed(tag: str, around: str) -> None:
    with pytest.raises(
        BadPauseTag, match=rf"is not a pause. Write for example \[pause 0.5s\]; at most {LONGEST_PAUSE:g} s"
    ):
        utterances(around.format(tag))


@pytest.mark.parametrize(
    "script", ["He [paused] here.", "[pauses] all", "The [Pause2] button", "pause 5s please", "a pause] here"]
)
def test_words_that_only_look_like_a_pause_are_spoken(script: str) -> None:
    assert words(" ".join(texts(script))) == words(script)


def random_script(generator: random.Random) -> str:
    vocabulary = [
        "river",
        "Dr.",
        "e.g.",
        "house,",
        "3.14",
        "ran;",
        "I",
        "it's",
        "yes!",
        "No?",
        "end.",
        "(so)",
        "A.",
        "who:",
        '"old"',
        "and",
    ]
    gaps = [" "] * 12 + ["\n", "\n\n", ", ", "  "]
    return "".join(generator.choice(vocabulary) + generator.choice(gaps) for _ in range(generator.randint(1, 400)))


@pytest.mark.parametrize("seed", range(60))
def test_the_words_that_go_in_come_out_in_order_and_in_short_pieces(seed: int) -> None:
    script = random_script(random.Random(seed))
    result = texts(script)
    assert words(" ".join(result)) == words(script)
    assert all(0 < len(text) <= LONGEST_PIECE for text in result)


@pytest.mark.parametrize("seed", range(10))
def test_pauses_add_up_to_what_the_tags_say(seed: int) -> None:
    generator = random.Random(seed)
    script = "".join(f"word [pause {generator.randint(0, 900)}ms] " for _ in range(50))
    total = sum(int(number) for number in re.findall(r"\d+", script)) / 1000
    assert sum(silences(script)) == pytest.approx(total)


def test_twenty_thousand_characters_lose_no_sentence_and_take_no_time() -> None:
    script = "".join(f"Sentence {number} tells of Dr. Smith and his {number} dogs. " for number in range(400))[:20_000]
    script = script[: script.rindex(".") + 1]
    started = time.thread_time()
    result = texts(script)
    assert time.thread_time() - started < 1
    assert words(" ".join(result)) == words(script)
    assert len(result) == script.count("Sentence")


def test_a_script_over_the_limit_is_refused_with_both_numbers() -> None:
    assert texts("a. " * 33_000)
    with pytest.raises(ScriptTooLong, match="100,001 characters; at most 100,000"):
        utterances("a" * (LONGEST_SCRIPT + 1))


HOSTILE = [
    "<",
    "[",
    "*",
    "_",
    "`",
    "(",
    " .",
    ". ",
    "\n ",
    "http://",
    "a@",
    "a.",
    "<!--",
    "<script>",
    "[a](",
    "&",
    "|-",
    "- ",
    " #",
    "— ",
]
HOSTILE += [
    ".!",
    "1. ",
    "[pause 1s]",
    "<a@",
    "a/",
    "1½",
    "a-",
    "[ pause",
    "\\",
    '",',
    ">",
    "www.",
    "a.com)",
    "x\n",
    "²",
    "--",
    ":",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_text_takes_more_than_a_moment(pattern: str) -> None:
    started = time.thread_time()
    for script in (pattern * (30_000 // len(pattern)), pattern * (30_000 // len(pattern)) + "x"):
        try:
            utterances(script)
        except (NothingToSpeak, BadPauseTag):
            continue
    assert time.thread_time() - started < 3


def test_an_utterance_without_words_or_with_negative_silence_cannot_be_made() -> None:
    for text, pause, lead in ((" ", 0, 0), ("a", -1, 0), ("a", 0, -1)):
        with pytest.raises(ValueError, match=r"words|silence"):
            Utterance(text, pause, lead)
