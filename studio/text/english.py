"""Write English so that gruut says all of it: numbers, symbols, accents and capitals that it would drop or misread.

Ordinary sentences come out unchanged. Without this step gruut is silent on "24/7", "12:00:00" or "¥100", raises on
a very long number, spells "STOP" and reads "café" without its last letter.
"""

import re
import unicodedata
from collections.abc import Callable

LONGEST_NUMBER = 15

# What gruut reads well: plain and grouped numbers, percentages, ordinals, clock times, dates.
READ_WELL = re.compile(
    r"""-?[$£€]?(?!0\d)\d{1,3}(,\d{3}){0,4}(\.\d{1,6})?%?
      | -?[$£€]?(?!0\d)\d{1,15}(\.\d{1,6})?%?
      | \d{1,9}(st|nd|rd|th)
      | (0?\d|1\d|2[0-3]):[0-5]\d([ap]\.?m\.?)?
      | (0?[1-9]|1[0-2])/(0?[1-9]|[12]\d)/[12]\d{3}
      | [12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d)
    """,
    re.IGNORECASE | re.VERBOSE,
)
DIGIT_TOKEN = re.compile(r"[^\s\d]*\d\S*")
AROUND = re.compile(r"""^([("'\[]*)(.*?)([)"'\],;:.!?]*)$""", re.DOTALL)
PART = re.compile(r"\d+|[^\W\d_]+|[^\w\s]")
DECADE = re.compile(r"'?(\d\d)?(\d)0'?s", re.IGNORECASE)
PHONE = re.compile(r"\+?\d{1,4}([-.]\d{2,5}){1,4}")
MONEY = re.compile(
    r"([$£€¥₹₩₽₺₿])\s?(\d[\d,]*(?:\.\d+)?)(?:\s?(thousand|million|billion|trillion)\b|(k|m|bn|b|tn)\b)?", re.IGNORECASE
)
CLOCK = re.compile(r"(\d{1,2}):([0-5]\d):([0-5]\d)")
CAPITALS = re.compile(r"\b[A-Z]{2,}(?:'[A-Z]+)?\b")
DOTS_INSIDE = re.compile(r"\.{3}(?=\w)")
DOT_INSIDE = re.compile(r"(?<=[A-Za-z]{2})\.(?=[a-z]{2})")

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DECADES = (
    "hundreds",
    "tens",
    "twenties",
    "thirties",
    "forties",
    "fifties",
    "sixties",
    "seventies",
    "eighties",
    "nineties",
)
FRACTIONS = {"1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter", "3/4": "three quarters"}
CURRENCIES = {
    "$": "dollars",
    "£": "pounds",
    "€": "euros",
    "¥": "yen",
    "₹": "rupees",
    "₩": "won",
    "₽": "rubles",
    "₺": "lira",
    "₿": "bitcoin",
}
SCALES = {"k": "thousand", "m": "million", "b": "billion", "bn": "billion", "tn": "trillion"}
SYMBOLS = {
    "%": "percent",
    "+": "plus",
    "=": "equals",
    "±": "plus or minus",
    "×": "times",
    "÷": "divided by",
    "<": "less than",
    ">": "greater than",
    "°": "degrees",
    "§": "section",
    "&": "and",
    "@": "at",
    "#": "number",
    "/": "slash",
    "~": "about",
    "≈": "about",
    "≤": "at most",
    "≥": "at least",
    "≠": "is not",
    "^": "to the power of",
    "µ": "micro",
    "μ": "micro",
    "∞": "infinity",
    "√": "root",
} | CURRENCIES
SPACED_SYMBOLS = re.compile("|".join(re.escape(symbol) for symbol in SYMBOLS if symbol != "&"))
# Short words that are shouted more often than they are initials; "US" and "IT" are not among them.
SHOUTED = re.compile(
    r"(?:AM|AN|AND|ANY|ARE|AS|AT|BAD|BE|BIG|BUT|BY|CAN|DAY|DID|DO|END|FOR|GET|GO|GOD|GOT|HAD|HAS|HE|HER|HEY|HIM|HIS"
    r"|HOW|HOT|IF|IN|IS|LET|MAN|ME|MY|NEW|NO|NOT|NOW|OF|OFF|OH|OK|OLD|ON|ONE|OR|OUR|OUT|RED|RUN|SAY|SEE|SHE|SIT"
    r"|SO|TEN|THE|TO|TOO|TOP|TRY|TWO|UP|USE|WAS|WAY|WE|WHO|WHY|WIN|YES|YET|YOU)"
)
LETTERS = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "ø": "o",
        "Ø": "O",
        "đ": "d",
        "Đ": "D",
        "ð": "th",
        "Ð": "Th",
    }
    | {"þ": "th", "Þ": "Th", "ł": "l", "Ł": "L", "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng", "Ŋ": "Ng", "ſ": "s"}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "–": "-"}
)


def spoken(text: str, in_lexicon: Callable[[str], bool]) -> str:
    """The text as gruut should get it; `in_lexicon` says whether a lower-case word has a known pronunciation."""
    text = MONEY.sub(_money, plain_letters(text))
    text = DIGIT_TOKEN.sub(lambda match: _digit_token(match.group()), text)
    text = DOTS_INSIDE.sub("... ", DOT_INSIDE.sub(" dot ", _symbols(text)))
    return CAPITALS.sub(lambda match: _capitals(match.group(), in_lexicon), text)


def plain_letters(text: str) -> str:
    """Letters without accents as ASCII, digits of every script as 0 to 9; letters of other scripts stay."""
    folded = unicodedata.normalize("NFKD", text.translate(LETTERS))
    return "".join(
        str(unicodedata.decimal(char)) if char.isdecimal() else char
        for char in folded
        if not unicodedata.combining(char)
    )


def _money(match: re.Match[str]) -> str:
    symbol, number, word, letter = match.groups()
    scale = word or SCALES.get((letter or "").lower())
    if scale:
        return f"{number} {scale} {CURRENCIES[symbol]}"
    if symbol in "$£€":
        return match.group()
    return f"{number} {CURRENCIES[symbol]}"


def _digit_token(token: str) -> str:
    """One run without spaces that has a digit in it; what gruut reads well stays."""
    around = AROUND.match(token)
    assert around is not None, "the pattern matches every string"
    before, inside, after = around.groups()
    if READ_WELL.fullmatch(inside):
        return token
    decade = DECADE.fullmatch(before[-1:] + inside) or DECADE.fullmatch(inside)
    if decade:
        return f"{decade[1] or ''} {DECADES[int(decade[2])]}".strip() + after
    return before + _parts(inside) + after


def _parts(inside: str) -> str:
    if inside in FRACTIONS:
        return FRACTIONS[inside]
    if PHONE.fullmatch(inside) and sum(char.isdigit() for char in inside) >= 7:
        return ", ".join(_one_by_one(group) for group in re.findall(r"\d+", inside))
    clock = CLOCK.fullmatch(inside)
    if clock:
        hours, minutes, seconds = clock.groups()
        return f"{hours}:{minutes}" + (f" and {int(seconds)} seconds" if int(seconds) else "")
    if re.fullmatch(r"\d+\.\d+", inside):
        whole, fraction = inside.split(".")
        return f"{_number(whole)} point {_one_by_one(fraction)}"
    marks = {".": "dot", "-": "", ":": ""}
    parts = (_number(part) if part.isdigit() else marks.get(part, part) for part in PART.findall(inside))
    return " ".join(filter(None, parts))


def _number(digits: str) -> str:
    if len(digits) > LONGEST_NUMBER or (len(digits) > 1 and digits[0] == "0"):
        return _one_by_one(digits)
    return digits


def _one_by_one(digits: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in digits)


def _capitals(word: str, in_lexicon: Callable[[str], bool]) -> str:
    """A shouted word in lower case, because gruut spells capitals; initials stay."""
    is_word = len(word) >= 4 and in_lexicon(word.lower())
    return word.lower() if is_word or SHOUTED.fullmatch(word) else word


def _symbols(text: str) -> str:
    """Symbols as words, save those that belong to a number gruut reads itself."""
    kept = re.compile(r"[$£€](?=\d)|(?<=\d)%|(?<=\d)/(?=\d)")
    places = {match.start() for match in kept.finditer(text)}
    return SPACED_SYMBOLS.sub(lambda m: m.group() if m.start() in places else f" {SYMBOLS[m.group()]} ", text)
