"""`cache`: what the reference cache did and holds, whether that is what an encode gives, and room on the disk."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.session import Json, Session, print_record, session_of

if TYPE_CHECKING:
    from studio.reference_verify import Verification
    from studio.store.code_cache import CodeCache
    from studio.store.eviction import Eviction

group = typer.Typer(help="The cache of reference codes.", rich_markup_mode=None)


@group.command("stats")
def stats(context: typer.Context, as_json: Json = False) -> None:
    """Show what was found, filled and saved since this data folder was made."""
    counters = open_cache(session_of(context)).counters()
    figures = dict(sorted(counters.items(), key=lambda item: item[0].endswith("seconds")))  # counts before times
    if as_json:
        print_record(figures)
        return
    for name, value in figures.items():
        print(f"{name:15} {value:12.3f}" if name.endswith("seconds") else f"{name:15} {value:12,}")


@group.command("verify")
def verify(context: typer.Context, as_json: Json = False) -> None:
    """Encode every kept clip again and compare; nothing is changed. Status 1 where an entry differs or is damaged."""
    from studio.reference_verify import verify_cache

    synthesizer = session_of(context).open_library()
    found: list[Verification] = []
    for verification in verify_cache(synthesizer.desk, synthesizer.voices):
        found.append(verification)
        if not as_json:
            print(sentence(verification), flush=True)
    if as_json:
        print_record(summary(found) | {"results": [record(verification) for verification in found]})
    else:
        print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in summary(found).items()))
    if any(verification.damaged or verification.differing for verification in found):
        raise typer.Exit(1)


@group.command("evict")
def evict(
    context: typer.Context,
    max_bytes: Annotated[
        int | None, typer.Option(min=0, help="Bytes of codes that may stay; else STUDIO_CACHE_MB.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove the least recently used entries beyond a bound; those of saved voices stay."""
    done = open_cache(session_of(context)).evict(max_bytes)
    if as_json:
        print_record(evicted(done))
        return
    print(
        f"{done.evicted} entries ({done.freed:,} bytes) were removed; {done.entries} ({done.bytes:,} bytes) are left."
    )
    if done.above_bound:
        print(
            f"{done.pinned} of them ({done.pinned_bytes:,} bytes) belong to saved voices and stay, though that is "
            f"{done.above_bound:,} bytes above the bound."
        )


def open_cache(session: Session) -> "CodeCache":
    """The cache without an engine."""
    from studio.store.code_cache import CodeCache

    session.mend()
    return CodeCache(session.settings.database, disk_bytes=session.settings.cache_bytes)


def summary(found: "list[Verification]") -> dict[str, int]:
    return {
        "entries": len(found),
        "equal": sum(verification.passed for verification in found),
        "differing": sum(bool(verification.differing) for verification in found),
        "damaged": sum(verification.damaged for verification in found),
        "not_checkable": sum(bool(verification.not_checkable) and not verification.damaged for verification in found),
        "filled_elsewhere": sum(bool(verification.elsewhere) for verification in found),
    }


def record(verification: "Verification") -> dict[str, Any]:
    return {
        "key": verification.key,
        "name": verification.name,
        "checked": verification.differing is not None,
        "passed": verification.passed,
        "damaged": verification.damaged,
        "codes": verification.num_codes,
        "differing": verification.differing,
        "digest": verification.digest,
        "digest_now": verification.digest_now,
        "filled_elsewhere": list(verification.elsewhere),
        "not_checkable": verification.not_checkable,
    }


def evicted(done: "Eviction") -> dict[str, int]:
    return {
        "evicted": done.evicted,
        "freed_bytes": done.freed,
        "bound": done.bound,
        "entries": done.entries,
        "bytes": done.bytes,
        "pinned": done.pinned,
        "pinned_bytes": done.pinned_bytes,
        "above_bound": done.above_bound,
    }


def sentence(verification: "Verification") -> str:
    """One line about one entry."""
    who = f"{(verification.key or '')[:12]:12} {verification.name}".rstrip()
    where = f"; filled elsewhere ({', '.join(verification.elsewhere)})" if verification.elsewhere else ""
    if verification.damaged:
        return f"{who}: damaged; the next use fills it again from its clip{where}"
    if verification.not_checkable:
        return f"{who}: not checkable, {verification.not_checkable}{where}"
    if verification.differing:
        return f"{who}: {verification.differing} of {verification.num_codes} codes differ{where}"
    return f"{who}: equal{where}"
