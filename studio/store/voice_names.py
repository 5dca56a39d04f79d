"""What a voice may be called: any text a person can see, and no two voices the same but for case."""

import unicodedata

from studio.errors import SettingError

MAX_LENGTH = 255


def clean_name(name: str) -> str:
    """The name without space at its ends; SettingError where nobody could read or type it."""
    cleaned = name.strip()
    if not 1 <= len(cleaned) <= MAX_LENGTH:
        raise SettingError("The voice's name", _short(cleaned), f"use 1 to {MAX_LENGTH} characters.")
    categories = {unicodedata.category(character) for character in cleaned}
    if categories & {"Cc", "Cs"} or all(category[0] in "CZ" for category in categories):
        raise SettingError("The voice's name", _short(cleaned), "use characters that can be seen.")
    return cleaned


def fold(name: str) -> str:
    """The form under which names are compared: "Ada", "ADA" and "ada" in full-width letters are one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def storable(text: str) -> str:
    """The text with every unpaired surrogate, as file names in unknown encodings have them, spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:40] + "…"
