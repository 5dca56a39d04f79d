"""Cut a text into pieces that MOSS-TTS-Nano speaks one by one, and say how many frames a text may take.

The pieces are cut as the makers of Nano cut them, with two differences: a mark inside a number or a word (1.5, a.m) is
no place to cut, and a piece is a stretch of the text as it is, so that nothing is dropped or put in at the seams.
"""

import math
import re
from collections.abc import Callable, Iterator

from studio.text.script import Utterance

FRAME_RATE = 12.5
"""Frames a second of every MOSS codec."""
LONGEST_BUDGET = 7500
"""Frames, ten minutes."""
MAX_TOKENS = 75
"""Of one piece, as the makers of Nano set it in their service."""
SHORT_PAUSE = 0.4
LONG_PAUSE = 0.24

CountTokens = Callable[[str], int]
Span = tuple[int, int]

CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
WORD = re.compile(r"[^\W_]")
CLOSING = re.escape("\"'”’)]}）】》」』")
SENTENCE_MARKS = ".!?;。！？；"
MARKS = SENTENCE_MARKS + ",:，、："
SENTENCE_END = re.compile(rf"(?:[。！？；]|[.!?;](?![^\W_]))[{CLOSING}]*")
CLAUSE_END = re.compile(rf"(?:[，、；：]|[,;:](?![^\W_]))[{CLOSING}]*")
BREAK = re.compile(f"[ {re.escape(MARKS)}]")
LOOK_BACK = 24
"""Characters before a forced cut in which a better place is looked for."""

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
HANGUL = re.compile("[\uac00-\ud7af]")
READ_AS_WORDS = re.compile(r"[\d%€$£¥+=&@]")
FRAMES_OF = ((HAN, 3.0984), (KANA, 2.2), (HANGUL, 1.8), (READ_AS_WORDS, 5.0))
FRAMES_OF_OTHERS = 0.9
"""Frames that one character takes: figures of the makers for Chinese, Japanese, Korean and French; ours for digits."""


def frame_estimate(text: str) -> float:
    """About how many frames the speech of `text` takes."""
    return sum(next((frames for kind, frames in FRAMES_OF if kind.match(one)), FRAMES_OF_OTHERS) for one in text)


def frame_budget(text: str) -> int:
    """Frames after which the speech of `text` has run away: two and a half times the estimate, 4 s or more."""
    return min(max(math.ceil(4 * FRAME_RATE), math.ceil(2.5 * frame_estimate(text))), LONGEST_BUDGET)


def nano_pieces(utterance: Utterance, count_tokens: CountTokens, max_tokens: int = MAX_TOKENS) -> tuple[Utterance, ...]:
    """The utterance in pieces of at most `max_tokens`, with the pauses of Nano between them and its own silence around.

    An utterance that fits stays as it is; in one that does not, the prepared text of `chunks` is what gets spoken. A
    mark that would stand alone or first goes with the piece before, since a piece without a word never ends well.
    """
    pieces = _with_words(chunks(utterance.text, count_tokens, max_tokens))
    if len(pieces) < 2:
        return (utterance,)
    inner = [Utterance(piece, pause_after(piece)) for piece in pieces]
    inner[0] = Utterance(inner[0].text, inner[0].pause, utterance.lead)
    inner[-1] = Utterance(inner[-1].text, utterance.pause, inner[-1].lead)
    return tuple(inner)


def pause_after(piece: str) -> float:
    """Seconds of silence between a piece and the next: more after a short one."""
    return SHORT_PAUSE if len(piece.split()) <= 4 else LONG_PAUSE


def chunks(text: str, count_tokens: CountTokens, max_tokens: int = MAX_TOKENS) -> list[str]:
    """The prepared text (one line, a capital first, a mark last) in pieces of at most `max_tokens` where that can be:
    whole sentences, else clauses, else words, as many together as fit. `text` has more than space in it."""
    prepared = _prepared(text)

    def fits(span: Span) -> bool:
        return count_tokens(prepared[span[0] : span[1]]) <= max_tokens

    smallest: list[Span] = []
    for sentence in _spans(prepared, (0, len(prepared)), SENTENCE_END):
        if fits(sentence):
            smallest.append(sentence)
            continue
        for clause in _spans(prepared, sentence, CLAUSE_END):
            smallest += [clause] if fits(clause) else _forced(prepared, clause, fits)
    return [prepared[start:end] for start, end in _merged(prepared, smallest, count_tokens, max_tokens)]


def _prepared(text: str) -> str:
    line = " ".join(text.split())
    if CJK.search(line):
        return line if line[-1] in SENTENCE_MARKS else line + "。"
    line = line[0].upper() + line[1:]
    return line + "." if line[-1].isalnum() else line


def _spans(text: str, span: Span, end: re.Pattern[str]) -> Iterator[Span]:
    """The span cut after each match of `end`, without the space at the seams."""
    start, last = span
    for match in end.finditer(text, start, last):
        yield from _trimmed(text, (start, match.end()))
        start = match.end()
    yield from _trimmed(text, (start, last))


def _trimmed(text: str, span: Span) -> list[Span]:
    """The span without space at its ends; nothing where there is only space."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return [(start, end)] if start < end else []


def _forced(text: str, span: Span, fits: Callable[[Span], bool]) -> list[Span]:
    """A span that is too long and has no seam: cut after a mark or a space close before the limit, else at it."""
    parts: list[Span] = []
    start, end = span
    while start < end and not fits((start, end)):
        limit = _longest_fitting(text, (start, end), fits)
        window = max(start, limit - LOOK_BACK)
        breaks = [window + match.end() for match in BREAK.finditer(text[window:limit])]
        cut = breaks[-1] if breaks else limit
        parts += _trimmed(text, (start, cut))
        start = cut
        while start < end and text[start].isspace():
            start += 1
    return parts + _trimmed(text, (start, end))


def _longest_fitting(text: str, span: Span, fits: Callable[[Span], bool]) -> int:
    """Where the longest beginning of the span that fits ends, by halving; one character at least."""
    start, end = span
    low, high = start + 1, end
    while low < high:
        middle = (low + high + 1) // 2
        trimmed = _trimmed(text, (start, middle))
        if not trimmed or fits(trimmed[0]):
            low = middle
        else:
            high = middle - 1
    return low


def _merged(text: str, spans: list[Span], count_tokens: CountTokens, max_tokens: int) -> list[Span]:
    """Neighbours put together as long as their tokens stay within the limit."""
    merged: list[Span] = []
    used = 0
    for span in spans:
        tokens = count_tokens(text[span[0] : span[1]])
        if merged and used + tokens <= max_tokens:
            merged[-1] = (merged[-1][0], span[1])
            used = count_tokens(text[merged[-1][0] : span[1]])
        else:
            merged.append(span)
            used = tokens
    return merged


def _with_words(pieces: list[str]) -> list[str]:
    """The pieces with the marks that a forced cut left at their beginning, and those without a word, put to the one
    before."""
    joined = pieces[:1]
    for piece in pieces[1:]:
        rest = piece.lstrip(MARKS)
        if not WORD.search(rest):
            joined[-1] += piece
            continue
        joined[-1] += piece[: len(piece) - len(rest)]
        joined.append(rest.lstrip())
    return joined
