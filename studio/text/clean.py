"""Turn what people paste (Markdown, HTML, addresses, emoji, odd characters) into plain lines of sentences.

Every pattern here takes time in proportion to the text, whatever the text is.
"""

import html
import re
import unicodedata
from collections.abc import Iterable

SENTENCE_END = ".!?…。！？:;,"  # A line that ends so needs no full stop.

# "\n" and "\t" typed as two characters; a path such as C:\new is taken apart before.
LITERAL_NEWLINE = re.compile(r"(?:\\r)?\\n|\\r")
LITERAL_TAB = re.compile(r"\\t")
WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\[^\s\"]*")

COMMENT = re.compile(r"<!--(?:(?!<!--|-->).)*-->", re.DOTALL)
UNSPOKEN = re.compile(r"<(script|style)\b(?:(?!<(?:script|style)\b|</\1).)*</\1\s*>", re.DOTALL | re.IGNORECASE)
AUTOLINK = re.compile(r"<([^\s<>]{1,500})>")
BLOCK_TAG = re.compile(
    r"</?(?:p|br|div|li|ul|ol|h[1-6]|tr|table|blockquote|section|article|hr|pre)\b[^<>]*>", re.IGNORECASE
)
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});")

FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
RULE = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){3,}$|^(?=[^\n|]*\|)(?=[^\n-]*-)[ \t|:-]+$", re.MULTILINE)
LINK = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\n]*\)|\[[^\[\]\n]*\])")
FOOTNOTE = re.compile(r"\[\^[^\[\]\n]{1,40}\]:?")
HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+|[ \t]+#+[ \t]*$", re.MULTILINE)
QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
BULLET = re.compile(r"^[ \t]*[-*+•‣◦▪●·–—][ \t]+(?:\[[ xX]\][ \t]+)?", re.MULTILINE)
NUMBERED = re.compile(r"^[ \t]*(\d{1,2})[.)][ \t]+(?=\S)", re.MULTILINE)
EMPHASIS = re.compile(
    r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|~~|`+|(?<![\w_])_{1,3}(?=\w)|(?<=[\w.!?,])_{1,3}(?![\w_])|\\(?=[^\w\s])"
)

EMAIL = re.compile(r"(?<![\w.+%-])(?:mailto:)?([\w+%-]+(?:\.[\w+%-]+)*)@([\w-]+(?:\.[\w-]+)+)")
URL = re.compile(r"\b(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+", re.IGNORECASE)
DOMAIN = re.compile(
    r"(?<![\w.@/-])[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}\.(?:com|org|net|io|edu|gov|dev|app|info|co\.uk|de|fr)\b(?:/[^\s<>\"]*)?"
)
TRAILING = ".,;:!?'\")]}*_"
PATH_WORD = re.compile(r"[A-Za-z]{2,20}(?:[-_][A-Za-z0-9]{1,20}){0,5}|\d{1,4}")

EMOTICON = re.compile(r"(?<!\S)(?:[:;][-'^]?[()DPpOo/|\\*\[\]]|<3|xD|XD|\^_?\^)(?!\S)")
KEYCAP = re.compile("[0-9#*]\ufe0f?\u20e3")
TIMES = re.compile(r"(?<=\d) ?[*×] ?(?=\d)")
RANGE = re.compile(r"(?<=\d) ?[–—] ?(?=\d)")
DASH = re.compile(r" ?[—―]+ ?|(?<=\s)[–-]{1,3}(?=\s)|(?<=\w)--+(?=\w)")
POWER = re.compile(r"(?<=\d)([⁰¹²³⁴-⁹]+)")
FRACTION = re.compile(r"(\d)?([¼½¾⅓⅔⅕-⅞])")
REPEATED = re.compile(r"[.!?]{2,}|[,;:]{2,}")
BEFORE_MARK = re.compile(r" (?=[,.;:!?](?!\w))")
NO_SPACE = re.compile(r"(?<=[a-z]{2}[.!?])(?=[A-Z][a-z]*[\s,])")
COMPATIBLE = re.compile("[^！？，：；（）]+")  # Full-width marks stay: Chinese is cut at them.
SPACES = re.compile(r"[^\S\n]+")
BLANK_LINES = re.compile(r"\n{2,}")

CHARACTERS = str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'")
    | dict.fromkeys("“”„‟″«»", '"')
    | dict.fromkeys("‐‑‒−", "-")
    | dict.fromkeys("•‣◦▪●·|", ", ")
    | dict.fromkeys("{}[]_\\", " ")
    | {"№": "number ", "℃": "°C", "℉": "°F"}
    | dict.fromkeys("™®©℠", "")
)
LINE_ENDS = str.maketrans({"\u2028": "\n", "\u2029": "\n\n", "\x85": "\n", "\v": "\n", "\f": "\n"})
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn")
SPOKEN_POWERS = {"²": " squared", "³": " cubed"}
SPOKEN_FRACTIONS = {"½": "one half", "¼": "one quarter", "¾": "three quarters", "⅓": "one third", "⅔": "two thirds"}
KEPT_SYMBOLS = "°§^"


def clean_characters(text: str) -> str:
    """One kind of line end, no invisible characters, literal "\\n" as the line end it was meant to be."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(LINE_ENDS)
    text = WINDOWS_PATH.sub(lambda match: match.group().replace("\\", " "), text)
    text = LITERAL_TAB.sub(" ", LITERAL_NEWLINE.sub("\n", text))
    return "".join(
        char for char in SPACES.sub(" ", text) if char == "\n" or unicodedata.category(char) not in INVISIBLE
    )


def clean(text: str) -> str:
    """Plain text: sentences on lines, an empty line between paragraphs; `clean_characters` comes first."""
    text = _without_html(text)
    text = _without_markdown(_speak_addresses(text))
    text = _plain_characters(text)
    text = REPEATED.sub(_once, BEFORE_MARK.sub("", SPACES.sub(" ", text)))
    lines = (line.strip() for line in NO_SPACE.sub(" ", text).split("\n"))
    return BLANK_LINES.sub("\n\n", "\n".join(lines)).strip("\n")


def _without_html(text: str) -> str:
    text = AUTOLINK.sub(_unwrapped, UNSPOKEN.sub(" ", COMMENT.sub(" ", text)))
    text = TAG.sub("", BLOCK_TAG.sub("\n\n", text))
    return ENTITY.sub(lambda match: html.unescape(match.group()), text)


def _unwrapped(match: re.Match[str]) -> str:
    """The address in <https://...> or <somebody@...>; a tag stays."""
    inside = match[1]
    return inside if inside.startswith(("http://", "https://", "mailto:")) or EMAIL.fullmatch(inside) else match.group()


def _without_markdown(text: str) -> str:
    """Headings and list items become sentences of their own paragraph and line; marks vanish, their words stay."""
    text = RULE.sub("\n", FENCE.sub("", TIMES.sub(" times ", text)))
    text = FOOTNOTE.sub("", LINK.sub(r"\1", text))
    lines = QUOTE.sub("", text).split("\n")
    return EMPHASIS.sub("", "\n".join(_line(line) for line in lines))


def _line(line: str) -> str:
    """A heading stands alone; an item ends like a sentence; "1. Mix" keeps its number but is not cut after it."""
    bare = HEADING.sub("", line) if line.lstrip().startswith("#") else line
    if bare != line:
        return f"\n{_ended(bare)}\n"
    if line.strip().startswith("|") and line.strip().endswith("|"):
        return _ended(line.strip().strip("|"))
    item = NUMBERED.sub(r"\1, ", BULLET.sub("", line))
    return _ended(item) if item != line else line


def _ended(line: str) -> str:
    line = line.rstrip()
    return line if not line or line.rstrip("*_`\"')")[-1:] in SENTENCE_END else f"{line}."


def _speak_addresses(text: str) -> str:
    """Markdown links first lose their address; what then looks like an address is a spoken one."""
    text = LINK.sub(r"\1", text)
    text = URL.sub(lambda match: _address(match.group()), text)
    text = EMAIL.sub(lambda match: f"{_spelled(match[1])} at {_spelled(match[2])}", text)
    return DOMAIN.sub(lambda match: _address(match.group()), text)


def _spelled(part: str) -> str:
    return (
        part.replace(".", " dot ")
        .replace("_", " underscore ")
        .replace("-", " dash ")
        .replace("+", " plus ")
        .replace("%", " ")
    )


def _address(address: str) -> str:
    """Host and the readable beginning of the path; nobody wants to hear the rest."""
    bare = address.rstrip(TRAILING)
    after = address[len(bare) :]
    host, *path = re.split(r"[?#]", re.sub(r"(?i)^(?:https?|ftp)://(?:[^/@\s]*@)?(?:www\.)?|^www\.", "", bare))[
        0
    ].split("/")
    spoken = [_spelled(host.split(":")[0]), *(_words(part) for part in _readable(path))]
    return " slash ".join(spoken) + after


def _readable(path: Iterable[str]) -> list[str]:
    parts: list[str] = []
    for part in path:
        if not PATH_WORD.fullmatch(part) or len(parts) == 4:
            break
        parts.append(part)
    return parts


def _words(part: str) -> str:
    return part.replace("-", " ").replace("_", " ")


def _plain_characters(text: str) -> str:
    """Typography as ASCII punctuation, powers and fractions as words, emoji and other pictures dropped."""
    text = KEYCAP.sub(" ", EMOTICON.sub(" ", text))
    text = POWER.sub(_power, FRACTION.sub(_fraction, text)).replace("²", " squared").replace("³", " cubed")
    text = DASH.sub(", ", RANGE.sub(" to ", text)).translate(CHARACTERS)
    text = COMPATIBLE.sub(lambda match: unicodedata.normalize("NFKC", match.group()), text)
    return "".join(char if not _is_picture(char) else " " for char in text)


def _is_picture(char: str) -> bool:
    category = unicodedata.category(char)
    if category in ("So", "Sk", "Cc", "Cf", "Cn"):
        return char not in KEPT_SYMBOLS and char != "\n"
    return char in "\ufe0e\ufe0f\u20e3*~"


def _power(match: re.Match[str]) -> str:
    power = match.group()
    return SPOKEN_POWERS.get(power) or f" to the power of {unicodedata.normalize('NFKC', power)}"


def _fraction(match: re.Match[str]) -> str:
    whole, sign = match.groups()
    words = SPOKEN_FRACTIONS.get(sign) or unicodedata.normalize("NFKC", sign).replace("⁄", " over ")
    return f"{whole} and {words}" if whole else words


def _once(match: re.Match[str]) -> str:
    """A run of marks as one, the strongest: a question, an exclamation, or dots that trail off."""
    run = match.group()
    for mark in "?!":
        if mark in run:
            return mark
    return "..." if len(run) > 2 and run[0] == "." else run[0]
