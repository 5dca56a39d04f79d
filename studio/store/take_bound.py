"""The bound on the disk that takes may use: the oldest go, but only after it was said, and favourites never."""

import time
from dataclasses import dataclass
from pathlib import Path

from studio.store.database import connection, transaction
from studio.store.takes import Take, TakeLibrary


@dataclass(frozen=True, kw_only=True)
class TakesWarning:
    """What the bound asks for. Takes are named by id, the oldest first."""

    num_bytes: int
    """Bytes of all takes' files now."""
    bound: int
    due: tuple[str, ...]
    """Those that have to go, and of which nobody was told before this run."""
    announced: tuple[str, ...]
    """Those of them that were announced on an earlier run, so that they may go now."""
    due_bytes: int
    """Bytes of the files of both."""

    @property
    def over_bound(self) -> bool:
        return self.num_bytes > self.bound

    def __str__(self) -> str:
        """The sentences for a person."""
        size = f"The takes use {_megabytes(self.num_bytes)} of {_megabytes(self.bound)}."
        if not self.over_bound:
            return size
        count = len(self.due) + len(self.announced)
        if not count:
            return f"{size} The rest are favourites, so all stay."
        return (
            f"{size} The {count} oldest that are no favourites ({_megabytes(self.due_bytes)}) go when the studio "
            "starts next. Mark what is to stay as a favourite, export it, or raise the bound by STUDIO_TAKES_MB."
        )


class TakesBound:
    """Watches over the files of one library during one run of the studio."""

    def __init__(self, database: Path, takes: TakeLibrary, *, bound: int) -> None:
        if bound < 0:
            raise ValueError(f"a bound of {bound} bytes")
        self._database = database
        self._takes = takes
        self._bound = bound
        self._run_started = time.time()

    def look(self) -> TakesWarning:
        """What would have to go; changes nothing."""
        with connection(self._database) as db:
            rows = db.execute("SELECT id, favourite, announced FROM takes ORDER BY created, id").fetchall()
        sizes = {identifier: self._size(identifier) for identifier, _, _ in rows}
        excess = sum(sizes.values()) - self._bound
        due: list[tuple[str, bool]] = []
        for identifier, favourite, announced in rows:
            if excess <= 0:
                break
            if not favourite and sizes[identifier]:
                due.append((identifier, announced is not None and announced < self._run_started))
                excess -= sizes[identifier]
        return TakesWarning(
            num_bytes=sum(sizes.values()),
            bound=self._bound,
            due=tuple(identifier for identifier, before in due if not before),
            announced=tuple(identifier for identifier, before in due if before),
            due_bytes=sum(sizes[identifier] for identifier, _ in due),
        )

    def enforce(self) -> list[Take]:
        """Removes the takes that an earlier run announced and that still have to go; returns what was removed."""
        return self._remove(self.look().announced)

    def announce(self) -> TakesWarning:
        """Notes, for a later run, that a person is told now what has to go; takes that may stay again lose the note."""
        warning = self.look()
        with transaction(self._database) as db:
            marks = ", ".join("?" * len(warning.due + warning.announced))
            db.execute(
                f"UPDATE takes SET announced = NULL WHERE id NOT IN ({marks})",  # noqa: S608 - question marks
                [*warning.due, *warning.announced],
            )
            db.conn.executemany(
                "UPDATE takes SET announced = coalesce(announced, ?) WHERE id = ?",
                [(time.time(), identifier) for identifier in warning.due],
            )
        return warning

    def confirm(self, warning: TakesWarning) -> list[Take]:
        """Removes what a warning named, because the person who read it said so; favourites of meanwhile stay."""
        return self._remove(warning.due + warning.announced)

    def _remove(self, identifiers: tuple[str, ...]) -> list[Take]:
        removed = []
        for identifier in identifiers:
            take = self._takes.get(identifier)
            if not take.favourite:
                self._takes.remove(identifier)
                removed.append(take)
        return removed

    def _size(self, identifier: str) -> int:
        path = self._takes.path(identifier)
        return path.stat().st_size if path.is_file() else 0


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB"
