"""Codes that were filled elsewhere and come in with an import: taken over where the cache has none."""

import time
from dataclasses import dataclass

import numpy as np
from sqlite_utils import Database

from studio.store import counters, packed_codes
from studio.store.code_cache import Provenance


@dataclass(frozen=True, kw_only=True, eq=False)
class AdoptedCodes:
    """An entry on its way in: int16 codes `(num_codebooks, num_frames)` that were checked against their digest, their
    key (recomputed here from the audio), and the digest of the codec they belong to."""

    key: str
    codec: str
    codes: np.ndarray
    digest: str
    provenance: Provenance


def adopt(db: Database, entry: AdoptedCodes) -> str:
    """Stores the entry unless its key has one, and returns the digest of the codes that stand then.

    Where the key had other codes before they were retired, that is counted as a change.
    """
    num_codebooks, num_frames = entry.codes.shape
    inserted = db.execute(
        """INSERT OR IGNORE INTO codes
           (key, codec, codes, num_codebooks, num_frames, digest, provenance, last_used, uses)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)""",
        [
            entry.key,
            entry.codec,
            packed_codes.pack(entry.codes),
            num_codebooks,
            num_frames,
            entry.digest,
            entry.provenance.to_json(),
            time.time(),
        ],
    ).rowcount
    retired = db.execute("SELECT digest FROM tombstones WHERE key = ?", [entry.key]).fetchone()
    if inserted and retired is not None and retired[0] != entry.digest:
        counters.add(db, "changes", 1)
    # As bytes, because damaged text must not raise: such a row is mended when it is used.
    standing = db.execute("SELECT CAST(digest AS BLOB) FROM codes WHERE key = ?", [entry.key]).fetchone()[0]
    return standing.decode(errors="replace")


def stored(db: Database, key: str) -> AdoptedCodes | None:
    """The entry of a key as another library would take it over; None where there is none or it is damaged."""
    row = db.execute(
        """SELECT CAST(codec AS BLOB), codes, num_codebooks, num_frames, CAST(digest AS BLOB), CAST(provenance AS BLOB)
           FROM codes WHERE key = ?""",
        [key],
    ).fetchone()
    if row is None:
        return None
    codec, packed, num_codebooks, num_frames, digest, provenance = row
    try:
        codes = packed_codes.unpack(packed, num_codebooks, num_frames)
        known = Provenance.from_json(provenance)
        found = packed_codes.digest(packed, num_codebooks, num_frames)
        codec = codec.decode()
    except ValueError:
        return None
    if found.encode() != digest:
        return None
    return AdoptedCodes(key=key, codec=codec, codes=codes, digest=found, provenance=known)
