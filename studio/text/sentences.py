"""Cut plain text into sentences, and long sentences into pieces, at the places where a speaker would breathe."""

import re
from itertools import pairwise

LONGEST_PIECE = 180
SHORTEST_CLAUSE = 40
SHORTEST_WRAPPED = 60
CLAUSE_PAUSE = 0.15
WORD_PAUSE = 0.05

# A possible end: . ! ? with closing marks and then a space; or the full stops of Chinese and Japanese, which need none.
END = re.compile(r"""(?:(?<![.!?])[.!?]+["')\]]*(?=\s)|[。！？]+["')\]」』”]*)\s*""")
LAST_WORD = re.compile(r"(\S+)$")
INITIALS = re.compile(r"[(\"']*(?:[A-Za-z]\.)+")
NEVER_LAST = re.compile(
    r"(?:dr|mrs?|ms|messrs|prof|st|mt|ft|gen|col|sgt|lt|capt|rev|hon|gov|sen|rep|pres|vs|e\.g|i\.e|cf|figs?|eq|nos?|vol|ch|pp?"
    r"|al|approx|ca|est|dept|art|sec|bzw|z\.b|resp|op|eds?|trans)\."
)
SELDOM_LAST = re.compile(
    r"(?:etc|inc|ltd|co|corp|jr|sr|a\.m|p\.m|ph\.d|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun"
    r"|min|max|hrs?|lbs?|oz|in|bros|esq|ave|blvd|rd)\."
)
CLOSING = "\"')]」』”"
FULL_WIDTH_ENDS = tuple("。！？")
CLAUSE = re.compile(r"[;:][\"')]*\s|,[\"')]*\s|[，、；：]")
SPEAKABLE = re.compile(r"[^\W_]")


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph in order; those without a word in them are left out."""
    text = _one_line(paragraph.split("\n"))
    result: list[str] = []
    start = 0
    for end in END.finditer(text):
        if _ends(text[max(start, end.end() - 60) : end.end()], text[end.end() : end.end() + 1]):
            result.append(text[start : end.end()])
            start = end.end()
    result.append(text[start:])
    return [" ".join(sentence.split()) for sentence in result if SPEAKABLE.search(sentence)]


def pieces(sentence: str) -> list[tuple[str, float]]:
    """A sentence as texts of at most LONGEST_PIECE characters, each with the seconds of silence before the next."""
    result: list[tuple[str, float]] = []
    rest = sentence
    while len(rest) > LONGEST_PIECE:
        cut, pause = _cut(rest)
        result.append((rest[:cut].strip(), pause))
        rest = rest[cut:].strip()
    return [*result, (rest, 0.0)] if rest else result


def _one_line(lines: list[str]) -> str:
    """Lines put together; a short line without a mark at its end, before a capital, is verse or a title: a comma."""
    text = lines[0]
    for before, line in pairwise(lines):
        is_broken_here = len(before) < SHORTEST_WRAPPED and before[-1:].isalnum() and line[:1].isupper()
        text += (", " if is_broken_here else "\n") + line
    return text


def _ends(before: str, following: str) -> bool:
    """Whether the mark at the end of `before` ends the sentence, by the word it closes and the character behind."""
    bare = before.rstrip().rstrip(CLOSING)
    if bare[-1:] in FULL_WIDTH_ENDS:
        return True
    is_line_end = before.endswith("\n")
    if not is_line_end and (following.islower() or following in tuple(",;:)-")):
        return False
    if not bare.endswith("."):
        return True
    match = LAST_WORD.search(bare)
    word = match.group().lstrip("(\"'[").lower() if match else ""
    if word == "no.":
        return not following.isdigit()
    if NEVER_LAST.fullmatch(word):
        return False
    if SELDOM_LAST.fullmatch(word):
        return is_line_end or following.isupper()
    return word == "i." or not INITIALS.fullmatch(word)


def _cut(text: str) -> tuple[int, float]:
    """Where to cut a text that is too long, and the pause there: at a clause, else at a space, else in the word."""
    window = text[:LONGEST_PIECE]
    clauses = [match.end() for match in CLAUSE.finditer(window) if match.end() >= SHORTEST_CLAUSE]
    balanced = [end for end in clauses if len(text) - end >= SHORTEST_CLAUSE]
    if balanced or clauses:
        return (balanced or clauses)[-1], CLAUSE_PAUSE
    space = window.rfind(" ", 1)
    return (space + 1, WORD_PAUSE) if space > 0 else (LONGEST_PIECE, 0.0)
