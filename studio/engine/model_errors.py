"""What can go wrong between a hub, the disk and the memory, as sentences that say what to do about it.

ModelError
├── ModelAbsent             the model is not on this machine
├── HubUnreachable          no answer, or the transfer broke too often
├── HubRefused              the hub answers, but not with what was asked for
├── FileRefused             a file is not the one that was promised; it was removed
├── DownloadStopped         somebody asked for it
├── ReadingStopped          likewise, while files that are here were read
├── DiskTooFull             the files would not fit; nothing was begun
├── ModelBusy               something is being done with it already
├── ModelLoaded             its files cannot be changed while it is loaded
├── ModelDamaged            files are not what they were
├── FolderUnfit             a local folder does not hold the model
├── ModelInUse              another process is downloading it
├── MemoryTooSmall          the model would not fit into the device's free memory
├── OutOfMemory             the device's memory ran out while the model was at work
└── NotFinite               the model computes numbers that are none, on this device or at all
"""

from collections.abc import Sequence

from studio.errors import ModelError


class ModelAbsent(ModelError):
    def __init__(self, name: str, num_bytes: int, source: str) -> None:
        super().__init__(
            f"The model {name} is not on this machine. `models get {name}` downloads about {size(num_bytes)} from "
            f"{source}, or uses a folder that has the files with --from FOLDER."
        )


class HubUnreachable(ModelError):
    def __init__(self, hub: str, reason: str) -> None:
        super().__init__(
            f"The hub {hub} cannot be reached ({reason}); what has arrived is kept. Check the connection and try "
            "again, name a mirror with --mirror or STUDIO_HUB, or use a folder that has the files with --from."
        )


class HubRefused(ModelError):
    def __init__(self, hub: str, reason: str) -> None:
        super().__init__(
            f"The hub {hub} cannot be used: {reason}. Name a mirror with --mirror or STUDIO_HUB, or use a folder that "
            "has the files with --from."
        )


class FileRefused(ModelError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(
            f"{file} is not the file that was promised ({reason}) and is not kept. Download it again; if that does "
            "not help, name another mirror."
        )


class DownloadStopped(ModelError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"The download of {name} was stopped. What has arrived is kept; the next download goes on there."
        )


class ReadingStopped(ModelError):
    def __init__(self, name: str) -> None:
        super().__init__(f"Reading the files of {name} was stopped. Nothing was changed.")


class DiskTooFull(ModelError):
    def __init__(self, folder: str, needed: int, free: int) -> None:
        super().__init__(
            f"The download needs {size(needed)} in {folder}, and {size(free)} are free there. Free some space, or "
            "choose another disk with --data-dir."
        )


class ModelBusy(ModelError):
    def __init__(self, title: str) -> None:
        super().__init__(f"Something is being done with {title} already. Wait until it has ended, or stop it.")


class ModelLoaded(ModelError):
    def __init__(self, title: str) -> None:
        super().__init__(f"{title} is loaded. Unload it first.")


class ModelDamaged(ModelError):
    def __init__(self, title: str, faults: Sequence[str]) -> None:
        super().__init__(f"{title} is damaged: {'; '.join(faults)}. Remove it, then download it again.")


class FolderUnfit(ModelError):
    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"The folder {folder} cannot be used as the model: {reason}.")


class ModelInUse(ModelError):
    def __init__(self, repository: str) -> None:
        super().__init__(f"{repository} is being downloaded or removed by another process. Wait until it has ended.")


class MemoryTooSmall(ModelError):
    def __init__(self, title: str, device: str, dtype: str, *, needed: int, free: int) -> None:
        super().__init__(
            f"{title} needs about {size(needed)} of memory on {device} in {dtype}, and {size(free)} are free. Close "
            "other programs, or choose a smaller model or another device."
        )


class OutOfMemory(ModelError):
    def __init__(self, title: str, device: str) -> None:
        super().__init__(
            f"The memory on {device} did not suffice for what {title} was asked to do. Close other programs, give it a "
            "shorter text or clip, or choose a smaller model."
        )


class NotFinite(ModelError):
    def __init__(self, title: str, device: str, dtype: str) -> None:
        super().__init__(
            f"{title} computed numbers that are none, on {device} in {dtype}. `models check` says whether its files "
            "are damaged; where they are not, choose another device."
        )


def size(num_bytes: int) -> str:
    """Bytes as a person reads them, in powers of 1,000 as disks are sold."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if num_bytes >= factor:
            return f"{num_bytes / factor:.1f} {unit}"
    return f"{num_bytes} bytes"
