"""Where data lives and which device is used; the only reader of the environment and of platformdirs."""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from studio.errors import SettingError

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user may set once for a whole run. Nothing is created on disk here."""

    data_dir: Path
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise SettingError("device", self.device, f"choose one of {', '.join(DEVICES)}.")

    @classmethod
    def from_environment(cls, *, data_dir: Path | None = None, device: str | None = None) -> "Settings":
        """Explicit arguments win over STUDIO_DATA_DIR and STUDIO_DEVICE, and these over the platform's defaults."""
        chosen = data_dir or os.environ.get("STUDIO_DATA_DIR") or platformdirs.user_data_dir("solo-studio", False)
        return cls(data_dir=Path(chosen).expanduser(), device=device or os.environ.get("STUDIO_DEVICE") or "auto")

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
    def takes_dir(self) -> Path:
        """One audio file a take, named by id."""
        return self.data_dir / "takes"


def assets_dir() -> Path:
    """The folder with the voice model, the built-in clips and the page's files: beside the package in a checkout,
    inside it when installed from a wheel."""
    package = Path(__file__).parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"
