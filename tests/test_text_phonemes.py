import random
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from gruut.text_processor import TextProcessor

from studio.errors import NothingToSpeak, UnspeakableScript
from studio.text.english import spoken
from studio.text.phonemes import BREAKS, check_speakable, phonemes, warm_up

ORDINARY = [
    "Hello world, this is a test.",
    "The quick brown fox jumps over the lazy dog; then it slept.",
    "Every morning my neighbour walks along the river with two small dogs.",
    "Did you read the book that I read yesterday?",
    "Mr. Jones paid $3.50 on 12/05/2021 at 5:30 p.m. for 23 apples.",
    "Zyxgorp floofed the wug.",
    "It's the children's rock'n'roll, isn't it? Well... yes!",
    '(Parenthetical) "quoted" and re-entered.',
]


def plain_gruut(text: str) -> tuple[str, ...]:
    """What the language model was trained on: gruut as it comes, new for each text."""
    processor = TextProcessor(default_lang="en-us")
    graph, root = processor(text, lang="en-us")
    symbols: list[str] = []
    for sentence in processor.sentences(graph, root):
        for word in sentence:
            symbols.extend(word.phonemes or ())
            if symbols and symbols[-1] != " ":
                symbols.append(" ")
    return tuple(symbols)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up()


def sound(text: str) -> str:
    return "".join(phonemes(text)).strip()


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_what_gruut_gives(text: str) -> None:
    assert phonemes(text) == plain_gruut(text)


def test_words_are_set_apart_and_breaks_kept() -> None:
    symbols = phonemes("Well, go. Now?")
    assert symbols[-1] == " "
    assert symbols.count("|") == 1
    assert symbols.count("‖") == 2
    assert not any(first == second == " " for first, second in pairwise(symbols))


def test_what_was_read_before_changes_nothing() -> None:
    odd = ["(s)he said STOP.", "U.S. and us", "'tis o'clock-ish e.g. co-op", "A.B. ab a-b"]
    first = [phonemes(text) for text in odd]
    assert [phonemes(text) for text in reversed(odd)] == first[::-1]


def test_threads_get_what_one_thread_gets() -> None:
    texts = ORDINARY * 4
    alone = [phonemes(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(phonemes, texts)) == alone


def test_a_sentence_with_new_words_takes_less_than_20_ms() -> None:
    generator = random.Random(0)
    words = re.findall(
        r"\w+", "garden window silver thunder orchard pillow market candle harbour ribbon lantern meadow copper saddle"
    )
    durations = []
    for _ in range(15):
        text = "The " + " ".join(generator.sample(words, 10)) + " went home."
        started = time.thread_time()
        phonemes(text)
        durations.append(time.thread_time() - started)
    assert sorted(durations)[7] < 0.02


def test_nothing_reaches_the_network_and_nothing_is_printed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for text in (*ORDINARY, "¥100 1e400 99/99/9999 25:61 " + "9" * 60):
        phonemes(text)
    assert capfd.readouterr() == ("", "")


def test_loading_warns_of_nothing_in_a_new_process() -> None:
    program = "from studio.text.phonemes import warm_up; warm_up()"
    command = [sys.executable, "-W", "error", "-c", program]
    result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert result.stdout + result.stderr == ""


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("café naïve Zürich", "cafe naive Zurich"),
        ("24/7", "24 slash 7"),
        ("1/2 cup", "one half cup"),
        ("12:00:00", "twelve"),
        ("12:30:05", "12:30 and 5 seconds"),
        ("¥100", "one hundred yen"),
        ("$5M", "five million dollars"),
        ("£2.5 billion", "2.5 billion pounds"),
        ("50 %", "fifty percent"),
        ("call 555-1234", "call five five five, one two three four"),
        ("007", "zero zero seven"),
        ("v1.2.3", "v one dot two dot three"),
        ("1990s and the '80s", "nineteen nineties and the eighties"),
        ("H2O", "h two o"),
        ("1,2,3", "one, two, three"),
        ("x = 2", "x equals two"),
        ("20°C", "twenty degrees c"),
        ("#1", "number one"),
        ("launch.py", "launch dot py"),
        ("STOP IT NOW", "stop IT now"),
        ("٣", "three"),
        ("it’s", "it's"),
        ("æther", "aether"),
    ],
)
def test_what_gruut_would_drop_or_misread_is_said(written: str, said: str) -> None:
    assert sound(written) == sound(said)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_not_rewritten(text: str) -> None:
    assert spoken(text, lambda _: False) == text


def test_initials_are_spelled_and_shouting_is_not() -> None:
    assert sound("USA") == sound("U.S.A.")
    assert sound("IMPORTANT") == sound("important")


def test_a_number_of_any_length_is_read() -> None:
    for digits in range(1, 80):
        assert not BREAKS.issuperset(phonemes("9" * digits))


@pytest.mark.parametrize("seed", range(40))
def test_whatever_has_a_letter_or_a_digit_has_a_sound(seed: int) -> None:
    generator = random.Random(seed)
    alphabet = "aeioubcdxyzABCé0123456789 .,:;!?-/%$£€¥#@&*()[]'\"+=<>~^_ß½²°…—IVX"
    for _ in range(10):
        text = "".join(generator.choice(alphabet) for _ in range(generator.randint(1, 40)))
        if any(char.isalnum() for char in text):
            assert not BREAKS.issuperset(phonemes(text)), text


@pytest.mark.parametrize(
    "text",
    ["Hello.", "Crème brûlée à la façon d'Émile", "Łódź, Þór, Straße, Ørsted", "5 µm", "42", "ｆｕｌｌ", "naïve ½"],
)
def test_latin_letters_with_any_accent_are_speakable(text: str) -> None:
    check_speakable(text)


@pytest.mark.parametrize(
    ("text", "sample"),
    [
        ("你好世界", "你好世界"),
        ("Say привет мир to her", "привет мир"),
        ("مرحبا", "مرحبا"),
        ("Ελλάδα", "Ελλάδα"),
        ("नमस्ते", "नमस्ते"),
        ("こんにちは", "こんにちは"),
        ("한국어", "한국어"),
        ("שלום", "שלום"),
    ],
)
def test_another_script_is_refused_with_a_sample_of_it(text: str, sample: str) -> None:
    with pytest.raises(UnspeakableScript, match="speaks English; it cannot speak '") as error:
        check_speakable(text)
    assert sample in str(error.value)


def test_a_long_sample_is_cut() -> None:
    with pytest.raises(UnspeakableScript) as error:
        check_speakable("字" * 5000)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("text", ["", "...", "?!", " - "])
def test_a_text_without_words_is_nothing_to_speak(text: str) -> None:
    with pytest.raises(NothingToSpeak):
        check_speakable(text)


def test_words_without_a_sound_are_refused() -> None:
    for text in ("፩", "ə", "ǂ"):
        with pytest.raises(UnspeakableScript):
            check_speakable(text)
