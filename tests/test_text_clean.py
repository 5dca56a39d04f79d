import pytest

from studio.text.clean import clean, clean_characters
from studio.text.script import utterances


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [
        ("It’s “smart” — really…", 'It\'s "smart", really...'),
        ("so\u00adft hy\u200bphen\ufeff", "soft hyphen"),
        ("\u202eright\u202c to left", "right to left"),
        ("tabs\tand\u00a0odd\u2003spaces", "tabs and odd spaces"),
        ("ﬁne ｆｕｌｌ", "fine full"),
        ("cafe\u0301", "café"),
        ("Smile 😀👍🏽 👨‍👩‍👧 ok 1️⃣ ❤️ 🇬🇧 now", "Smile ok now"),
        ("Nice :) yes ;-) <3 end", "Nice yes end"),
        ("Wait!!! What?!?! Well.....", "Wait! What? Well..."),
        ("10–20 and 5 * 3 and 2×4", "10 to 20 and 5 times 3 and 2 times 4"),
        ("5 m² and 10³ and 10⁶", "5 m squared and 10 cubed and 10 to the power of 6"),
        ("½ cup, 2½ kg, ⅝", "one half cup, 2 and one half kg, 5 over 8"),
        ("Brand™ name® ©2020", "Brand name 2020"),
        ("one--two and three -- four", "one, two and three, four"),
        ("well-known re-enter", "well-known re-enter"),
        ("snake_case {braces} a|b", "snake case braces a, b"),
        ("-5 degrees, 3-4", "-5 degrees, 3-4"),
    ],
)
def test_odd_characters_become_plain_ones(typed: str, spoken: str) -> None:
    assert clean(clean_characters(typed)) == spoken


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [
        (
            "Some *bold*, **strong**, _em_, __both__, ***all***, ~~gone~~ and `code`.",
            "Some bold, strong, em, both, all, gone and code.",
        ),
        ("[a link](https://example.com/x?y=z) and ![a picture](p.png)", "a link and a picture"),
        ("[text][1] and a note[^1].", "text and a note."),
        ("A \\*star\\* stays", "A star stays"),
        ("> quoted\n>> twice", "quoted\ntwice"),
        ("```python\nprint\n```", "print"),
        ("| a | b |\n|---|:-:|\n| c | d |", "a, b.\n\nc, d."),
        ("Title\n=====\n\n---\nText", "Title\n\nText"),
        ("2*3*4", "2 times 3 times 4"),
    ],
)
def test_markdown_is_not_spoken(typed: str, spoken: str) -> None:
    assert clean(clean_characters(typed)) == spoken


def test_headings_and_items_are_sentences() -> None:
    script = "## My title ##\nText under it.\n\n* one thing\n- [x] a done thing!\n+ more\n1. first\n2) second"
    assert [utterance.text for utterance in utterances(script)] == [
        "My title.",
        "Text under it.",
        "one thing.",
        "a done thing!",
        "more.",
        "1, first.",
        "2, second.",
    ]


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [
        ("<p>Hello&nbsp;<b>there</b> &amp; you</p>", "Hello there & you"),
        ("One<br/>two<br>three", "One\n\ntwo\n\nthree"),
        ("<!-- no --><script>alert('no')</script><STYLE>p{}</STYLE>yes", "yes"),
        ('<a href="https://x.com/y">here</a>', "here"),
        ("&lt;b&gt; &quot;q&quot; &#65;&#x42;", '<b> "q" AB'),
        ("3 < 5 and 7 > 6 & 1", "3 < 5 and 7 > 6 & 1"),
        ("AT&T; R&D &unknown; x", "AT&T; R&D &unknown; x"),
    ],
)
def test_html_is_not_spoken(typed: str, spoken: str) -> None:
    assert clean(clean_characters(typed)) == spoken


@pytest.mark.parametrize(
    ("typed", "spoken"),
    [
        ("https://www.example.com", "example dot com"),
        ("(See http://example.com/docs/getting-started/.)", "(See example dot com slash docs slash getting started.)"),
        ("https://user:secret@example.com:8080/read-me?q=1#top", "example dot com slash read me"),
        ("https://example.com/x/9f8e7d6c5b4a39281706f5e4d3c2b1a0", "example dot com"),
        ("www.foo.org, then", "foo dot org, then"),
        ("Visit example.co.uk today.", "Visit example dot co dot uk today."),
        ("Mail john.doe+x@my-site.org!", "Mail john dot doe plus x at my dash site dot org!"),
        ("<me@example.com> or <https://example.com>", "me at example dot com or example dot com"),
        ("mailto:me@example.com", "me at example dot com"),
        ("Not.An.Address or e.g. this", "Not.An.Address or e.g. this"),
    ],
)
def test_addresses_are_spoken_as_people_say_them(typed: str, spoken: str) -> None:
    assert clean(clean_characters(typed)) == spoken


def test_literal_line_ends_and_tabs_are_what_they_meant() -> None:
    assert (
        clean_characters("one\\ntwo\\r\\nthree\\tfour\r\nfive\rsix\u2028seven")
        == "one\ntwo\nthree four\nfive\nsix\nseven"
    )


def test_a_windows_path_is_not_taken_for_line_ends() -> None:
    assert "\n" not in clean_characters("Open C:\\new\\table now")
    assert clean(clean_characters("Open C:\\new\\table now")) == "Open C: new table now"
