"""Reads an object from a file that somebody else wrote: every field of the right type and size, none unknown."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_DIGEST = re.compile(r"[0-9a-f]{64}")
LATEST = 253402300800.0
"""Seconds since 1970 at the end of the year 9999."""


class Fields:
    """The fields of one JSON object, taken one by one; whatever is wrong raises what `refusal` makes of the reason."""

    def __init__(self, record: object, where: str, refusal: Callable[[str], Exception]) -> None:
        self._where = where
        self._refusal = refusal
        if not isinstance(record, dict):
            raise refusal(f"{where} is not an object")
        self._left: dict[str, Any] = dict(record)

    def text(self, name: str, *, longest: int) -> str:
        value = self._take(name, str)
        if len(value) > longest:
            raise self._wrong(name, f"has {len(value):,} characters, and at most {longest:,} are read")
        return value

    def digest(self, name: str) -> str:
        """A SHA-256 in hexadecimal."""
        value = self._take(name, str)
        if not _DIGEST.fullmatch(value):
            raise self._wrong(name, "is not a digest")
        return value

    def seconds(self, name: str, *, largest: float = LATEST) -> float:
        """A number from 0 on; NaN and the infinities are none."""
        value = self._take(name, int, float)
        if not 0 <= value <= largest:
            raise self._wrong(name, "is not a time")
        return float(value)

    def optional_text(self, name: str, *, longest: int) -> str | None:
        return self._nothing(name) if self._left.get(name) is None else self.text(name, longest=longest)

    def optional_seconds(self, name: str) -> float | None:
        return self._nothing(name) if self._left.get(name) is None else self.seconds(name)

    def whole(self, name: str, *, largest: int) -> int:
        value = self._take(name, int)
        if not 0 <= value <= largest:
            raise self._wrong(name, f"is not a whole number up to {largest:,}")
        return value

    def flag(self, name: str) -> bool:
        value = self._left.pop(name, None)
        if not isinstance(value, bool):
            raise self._wrong(name, "is neither true nor false")
        return value

    def items(self, name: str, *, most: int) -> list[Any]:
        value = self._take(name, list)
        if len(value) > most:
            raise self._wrong(name, f"has {len(value):,} entries, and at most {most:,} are read")
        return value

    def whole_numbers(self, name: str, *, count: int, largest: int) -> tuple[int, ...]:
        """Exactly `count` of them."""
        each = Fields(
            {str(index): value for index, value in enumerate(self.items(name, most=count))},
            f"{self._where}.{name}",
            self._refusal,
        )
        return tuple(each.whole(str(index), largest=largest) for index in range(count))

    def optional_times(self, name: str, *, count: int) -> tuple[float, ...] | None:
        """Exactly `count` numbers of seconds, or nothing."""
        if self._left.get(name) is None:
            return self._nothing(name)
        each = Fields(
            {str(index): value for index, value in enumerate(self.items(name, most=count))},
            f"{self._where}.{name}",
            self._refusal,
        )
        return tuple(each.seconds(str(index)) for index in range(count))

    def texts(self, name: str, *, most: int, longest: int) -> tuple[str, ...]:
        values = self.items(name, most=most)
        if not all(isinstance(value, str) and len(value) <= longest for value in values):
            raise self._wrong(name, f"holds something else than texts of up to {longest} characters")
        return tuple(values)

    def object(self, name: str) -> "Fields":
        return Fields(self._take(name, dict), f"{self._where}.{name}", self._refusal)

    def optional_object(self, name: str) -> "Fields | None":
        return self._nothing(name) if self._left.get(name) is None else self.object(name)

    def objects(self, name: str, *, most: int) -> "Iterator[Fields]":
        for index, each in enumerate(self.items(name, most=most)):
            yield Fields(each, f"{self._where}.{name}[{index}]", self._refusal)

    def mapping(self, name: str, *, most: int) -> Mapping[str, Any]:
        value = self._take(name, dict)
        if len(value) > most:
            raise self._wrong(name, f"has {len(value):,} entries, and at most {most:,} are read")
        return value

    def done(self) -> None:
        """Refuses fields that nobody asked for."""
        if self._left:
            raise self._refusal(f"{self._where} has an unknown field {ascii(next(iter(self._left)))[:40]}")

    def _nothing(self, name: str) -> None:
        if name not in self._left:
            raise self._wrong(name, "is missing")
        del self._left[name]

    def _take(self, name: str, *kinds: type) -> Any:
        if name not in self._left:
            raise self._wrong(name, "is missing")
        value = self._left.pop(name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise self._wrong(name, f"is not of the right type ({type(value).__name__})")
        return value

    def _wrong(self, name: str, reason: str) -> Exception:
        return self._refusal(f"{self._where}.{name} {reason}")
