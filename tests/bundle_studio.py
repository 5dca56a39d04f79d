"""A library on a folder of its own around an engine that counts its encodes; and ways to spoil a zip file."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counting_engine import CODEC, CountingEngine, encoded_file, talk
from test_store_takes import new_take

from studio.casting import add_clip, add_voice
from studio.engine.interface import CodecIdentity
from studio.reference import ReferenceDesk
from studio.settings import Settings
from studio.store.backup import back_up
from studio.store.code_cache import CodeCache
from studio.store.database import connection
from studio.store.takes import TakeLibrary
from studio.store.voices import Voice, VoiceDetails, VoiceLibrary
from studio.voice_bundle import write_bundle

DETAILS = VoiceDetails(
    name='Zoë "2"',
    transcript="I keep bees.",
    description="warm",
    sex="female",
    notes="From the\nwedding.",
    tags=("family", "日本"),
    language="en",
    consent="By letter, 3 May.",
    colour="#123456",
    clip_name="../zoë.m4a",
    trim=(0.25, 2.25),
)


class Studio:
    """The library in one folder."""

    def __init__(self, folder: Path, codec: CodecIdentity = CODEC) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.database = folder / "studio.db"
        self.engine = CountingEngine(folder / "encodes", codec=codec)
        self.cache = CodeCache(self.database)
        self.desk = ReferenceDesk(self.engine, self.cache, folder / "locks")
        self.voices = VoiceLibrary(self.database, folder / "clips", codec=self.desk.codec)
        self.takes = TakeLibrary(self.database, folder / "takes")

    def add(self, details: VoiceDetails = DETAILS, *, seed: int = 1) -> Voice:
        return add_voice(self.desk, self.voices, encoded_file(talk(3.0, seed=seed)), details).voice

    def add_rich(self) -> Voice:
        """A voice with every field set, two clips and some use."""
        voice = self.add()
        add_clip(self.desk, self.voices, voice, encoded_file(talk(), "FLAC"), name="second.flac", transcript="Hm.")
        self.voices.touch(voice.id)
        return self.voices.get(voice.id)

    def export(self, voice: Voice, name: str = "voice.zip") -> Path:
        path = self.folder / name
        with path.open("wb") as file:
            write_bundle(self.voices, voice, file)
        return path

    def state(self) -> dict[str, Any]:
        """Everything that an import may write: rows and files."""
        with connection(self.database) as db:
            tables = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in ("voices", "clips", "codes")}  # noqa: S608
        folder = self.folder / "clips"
        files = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}
        return tables | {"files": files, "around": sorted(path.name for path in self.folder.parent.iterdir())}


def with_a_take(folder: Path) -> Studio:
    """A library with a voice of two clips and a take."""
    studio = Studio(folder)
    studio.add_rich()
    take = studio.takes.save(new_take(note="Keep."))
    studio.takes.path(take.id).write_bytes(b"RIFF sound")
    return studio


def saved(studio: Studio, *, take_sound: bool = True) -> Path:
    """A backup of the library, beside its folder."""
    back_up(Settings(data_dir=studio.folder), studio.folder.parent / "all.zip", take_sound=take_sound)
    return studio.folder.parent / "all.zip"


def rewritten(path: Path, content: dict[str, bytes], database: bytes) -> Path:
    """A backup with another database, its digest and size told truly."""

    def tell(manifest: dict[str, Any]) -> None:
        manifest["files"]["studio.db"] = {"digest": hashlib.sha256(database).hexdigest(), "num_bytes": len(database)}

    return zipped(path, told(content | {"studio.db": database}, tell))


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, each in content.items():
            archive.writestr(name, each)
    return path


def told(content: dict[str, bytes], change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    """The members with another manifest."""
    manifest = json.loads(content["manifest.json"])
    change(manifest)
    return content | {"manifest.json": json.dumps(manifest).encode()}


def raw(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, each in content.items():
            archive.writestr(name, each)
    return buffer.getvalue()
