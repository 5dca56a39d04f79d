"""Where data lives and which device is used; the only reader of the environment and of platformdirs."""

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from studio.errors import SettingError

DEVICES = ("auto", "cpu", "cuda", "mps")
MAX_LANES = 64
PUBLIC_HUB = "https://huggingface.co"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user may set once for a whole run. Nothing is created on disk here."""

    data_dir: Path
    device: str = "auto"
    lanes: int = 1
    """Solo encodes that may run at once."""
    cache_mb: int = 512
    """Megabytes (2^20 bytes) of codes kept on disk; those of saved voices stay beyond it."""
    takes_mb: int = 10_240
    """Megabytes of takes kept on disk; what goes beyond it is announced first, and favourites stay."""
    asr_dir: Path | None = None
    """Folder of a Whisper model that writes down what clips say."""
    hub: str = PUBLIC_HUB
    """Where models are downloaded from: the public hub, or a mirror with the same paths below this address."""

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise SettingError("device", self.device, f"choose one of {', '.join(DEVICES)}.")
        if not 1 <= self.lanes <= MAX_LANES:
            raise SettingError("lanes", self.lanes, f"give a number from 1 to {MAX_LANES}.")
        if self.cache_mb < 0:
            raise SettingError("cache_mb", self.cache_mb, "give a number of megabytes, 0 or more.")
        if self.takes_mb < 0:
            raise SettingError("takes_mb", self.takes_mb, "give a number of megabytes, 0 or more.")
        if not _is_hub(self.hub):
            raise SettingError("hub", self.hub, "give an https:// address; http:// only to this machine itself.")

    @classmethod
    def from_environment(
        cls, *, data_dir: Path | None = None, device: str | None = None, lanes: int | None = None
    ) -> "Settings":
        """Explicit arguments win over STUDIO_DATA_DIR, STUDIO_DEVICE, STUDIO_LANES, STUDIO_CACHE_MB, STUDIO_TAKES_MB,
        STUDIO_ASR_DIR, STUDIO_HUB, and these over the platform's defaults."""
        chosen = data_dir or os.environ.get("STUDIO_DATA_DIR") or platformdirs.user_data_dir("solo-studio", False)
        return cls(
            data_dir=Path(chosen).expanduser(),
            device=device or os.environ.get("STUDIO_DEVICE") or "auto",
            lanes=_whole_number("STUDIO_LANES", 1) if lanes is None else lanes,
            cache_mb=_whole_number("STUDIO_CACHE_MB", 512),
            takes_mb=_whole_number("STUDIO_TAKES_MB", 10_240),
            asr_dir=Path(asr_dir).expanduser() if (asr_dir := os.environ.get("STUDIO_ASR_DIR")) else None,
            hub=(os.environ.get("STUDIO_HUB") or PUBLIC_HUB).rstrip("/"),
        )

    @property
    def cache_bytes(self) -> int:
        return self.cache_mb * 2**20

    @property
    def database(self) -> Path:
        return self.data_dir / "studio.db"

    @property
    def clips_dir(self) -> Path:
        """Original bytes of every saved voice, one file an id."""
        return self.data_dir / "clips"

    @property
    def locks_dir(self) -> Path:
        """One lock file a key that is being encoded."""
        return self.data_dir / "locks"

    @property
    def backups_dir(self) -> Path:
        """Copies of the database."""
        return self.data_dir / "backups"

    @property
    def takes_dir(self) -> Path:
        """One audio file a take, named by id."""
        return self.data_dir / "takes"

    @property
    def models_dir(self) -> Path:
        """Downloaded models, one folder a repository."""
        return self.data_dir / "models"


def is_loopback(host: str) -> bool:
    """Whether a host name or address always means this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_hub(address: str) -> bool:
    """Whether models may be downloaded from there: nobody on the way can change or read what is asked for."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or parts.query or parts.fragment or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _whole_number(name: str, default: int) -> int:
    """What a variable of the environment says; SettingError where that is no whole number."""
    said = os.environ.get(name, "").strip()
    try:
        return int(said) if said else default
    except ValueError as error:
        raise SettingError(name, said, "give a whole number.") from error


def assets_dir() -> Path:
    """The folder with the voice model, the built-in clips and the page's files: beside the package in a checkout,
    inside it when installed from a wheel."""
    package = Path(__file__).parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"
