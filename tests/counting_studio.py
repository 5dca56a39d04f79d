"""A data folder with a counting engine, a cache, a desk and a library over it; several on one folder are restarts."""

from pathlib import Path

from counting_engine import CountingEngine

from studio.reference import ReferenceDesk
from studio.store.code_cache import CodeCache
from studio.store.database import connection
from studio.store.voices import Voice, VoiceCodes, VoiceDetails, VoiceLibrary


class Studio:
    """An engine, a cache and a desk over one data folder."""

    def __init__(self, folder: Path, **engine: object) -> None:
        self.folder = folder
        self.engine = CountingEngine(folder / "encodes", **engine)  # pyright: ignore[reportArgumentType]
        self.cache = CodeCache(folder / "studio.db")
        self.desk = ReferenceDesk(self.engine, self.cache, folder / "locks")
        self.voices = VoiceLibrary(folder / "studio.db", folder / "clips", codec=self.desk.codec)

    def stored(self) -> list[int]:
        """Rows of codes, of sources and of voices."""
        with connection(self.folder / "studio.db") as db:
            return [db[table].count for table in ("codes", "sources", "voices")]

    def save_voice(self, clip: bytes, name: str = "Ada", **details: object) -> Voice:
        reference = self.desk.from_file(clip, "ada.wav", trim=details.get("trim"))  # pyright: ignore[reportArgumentType]
        codes = VoiceCodes(codec=self.desk.codec, key=reference.key, digest=reference.digest)
        saved = VoiceDetails(name=name, **details)  # pyright: ignore[reportArgumentType]
        return self.voices.add(saved, clip, codes=codes, duration=reference.duration)
