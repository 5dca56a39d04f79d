"""The tables, as numbered migrations; a released migration is never edited, a change is a new one at the end."""

from sqlite_utils import Database, Migrations

MIGRATIONS = Migrations("studio")


@MIGRATIONS()
def m001_code_cache(db: Database) -> None:
    """Canonical codes by key, where source bytes were seen before, what retired keys held, and the counters."""
    db.executescript("""
        CREATE TABLE codes (
            key TEXT PRIMARY KEY,
            codec TEXT NOT NULL,
            codes BLOB NOT NULL,
            num_codebooks INTEGER NOT NULL,
            num_frames INTEGER NOT NULL,
            digest TEXT NOT NULL,
            provenance TEXT NOT NULL,
            last_used REAL NOT NULL,
            uses INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE sources (
            source TEXT NOT NULL,
            codec TEXT NOT NULL,
            trim TEXT NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (source, codec, trim)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tombstones (
            key TEXT PRIMARY KEY,
            digest TEXT NOT NULL,
            provenance TEXT NOT NULL,
            retired REAL NOT NULL
        ) STRICT;
        CREATE TABLE counters (
            name TEXT PRIMARY KEY,
            value REAL NOT NULL
        ) STRICT, WITHOUT ROWID;
    """)


@MIGRATIONS()
def m002_voices(db: Database) -> None:
    """Saved voices, and for each codec they were used with the key and digest of their codes."""
    db.executescript("""
        CREATE TABLE voices (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            folded_name TEXT NOT NULL UNIQUE,
            builtin INTEGER NOT NULL,
            transcript TEXT NOT NULL,
            description TEXT NOT NULL,
            sex TEXT NOT NULL,
            clip_name TEXT NOT NULL,
            clip_digest TEXT NOT NULL,
            trim_start REAL,
            trim_end REAL,
            duration REAL NOT NULL,
            created REAL NOT NULL,
            last_used REAL,
            times_used INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE voice_codes (
            voice_id TEXT NOT NULL REFERENCES voices (id) ON DELETE CASCADE,
            codec TEXT NOT NULL,
            key TEXT NOT NULL,
            codes_digest TEXT NOT NULL,
            PRIMARY KEY (voice_id, codec)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX voice_codes_by_key ON voice_codes (key);
    """)


@MIGRATIONS()
def m003_takes(db: Database) -> None:
    """One row a take, with the reference codes it was made from."""
    db.executescript("""
        CREATE TABLE takes (
            id TEXT PRIMARY KEY,
            created REAL NOT NULL,
            script TEXT NOT NULL,
            voice_id TEXT,
            voice_name TEXT NOT NULL,
            engine TEXT NOT NULL,
            revision TEXT NOT NULL,
            device TEXT NOT NULL,
            seed INTEGER NOT NULL,
            options TEXT NOT NULL,
            key TEXT NOT NULL,
            codes BLOB NOT NULL,
            num_codebooks INTEGER NOT NULL,
            num_frames INTEGER NOT NULL,
            codes_digest TEXT NOT NULL,
            cache TEXT NOT NULL,
            lookup_ms REAL NOT NULL,
            encode_ms REAL NOT NULL,
            first_audio_ms REAL,
            duration REAL NOT NULL,
            realtime_speed REAL,
            pcm_digest TEXT NOT NULL,
            partial INTEGER NOT NULL,
            error TEXT
        ) STRICT;
        CREATE INDEX takes_by_created ON takes (created);
    """)


@MIGRATIONS()
def m004_clips(db: Database) -> None:
    """Clips of their own, several a voice, each with its codes per codec; what an owner says of a voice and a take.

    A voice's one clip keeps the voice's id, so that its file keeps its name.
    """
    db.executescript("""
        CREATE TABLE clips (
            id TEXT PRIMARY KEY,
            voice_id TEXT NOT NULL REFERENCES voices (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            digest TEXT NOT NULL,
            trim_start REAL,
            trim_end REAL,
            transcript TEXT NOT NULL,
            transcript_unchecked INTEGER NOT NULL DEFAULT 0,
            duration REAL NOT NULL,
            created REAL NOT NULL
        ) STRICT;
        CREATE INDEX clips_by_voice ON clips (voice_id, created);
        CREATE TABLE clip_codes (
            clip_id TEXT NOT NULL REFERENCES clips (id) ON DELETE CASCADE,
            codec TEXT NOT NULL,
            key TEXT NOT NULL,
            codes_digest TEXT NOT NULL,
            PRIMARY KEY (clip_id, codec)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX clip_codes_by_key ON clip_codes (key);
        INSERT INTO clips (id, voice_id, name, digest, trim_start, trim_end, transcript, duration, created)
            SELECT id, id, clip_name, clip_digest, trim_start, trim_end, transcript, duration, created FROM voices;
        INSERT INTO clip_codes (clip_id, codec, key, codes_digest)
            SELECT voice_id, codec, key, codes_digest FROM voice_codes;
        DROP TABLE voice_codes;
    """)
    _m004_columns(db)


def _m004_columns(db: Database) -> None:
    """What clips say goes from voices; what owners say comes to voices and takes."""
    db.executescript("""
        ALTER TABLE voices ADD COLUMN reference_clip TEXT NOT NULL DEFAULT '';
        UPDATE voices SET reference_clip = id;
        ALTER TABLE voices ADD COLUMN notes TEXT NOT NULL DEFAULT '';
        ALTER TABLE voices ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
        ALTER TABLE voices ADD COLUMN language TEXT NOT NULL DEFAULT '';
        ALTER TABLE voices ADD COLUMN consent TEXT NOT NULL DEFAULT '';
        ALTER TABLE voices ADD COLUMN colour TEXT NOT NULL DEFAULT '';
        ALTER TABLE voices DROP COLUMN transcript;
        ALTER TABLE voices DROP COLUMN clip_name;
        ALTER TABLE voices DROP COLUMN clip_digest;
        ALTER TABLE voices DROP COLUMN trim_start;
        ALTER TABLE voices DROP COLUMN trim_end;
        ALTER TABLE voices DROP COLUMN duration;
        ALTER TABLE takes ADD COLUMN favourite INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE takes ADD COLUMN note TEXT NOT NULL DEFAULT '';
        ALTER TABLE takes ADD COLUMN announced REAL;
    """)


@MIGRATIONS()
def m005_cache_bound(db: Database) -> None:
    """Least recently used entries and the size of all are read from an index, not from every stored blob."""
    db.executescript("CREATE INDEX codes_by_use ON codes (last_used, num_codebooks, num_frames);")


VERSION = 5
"""How many migrations there are; kept in the file as `user_version`."""
