"""Where the parts are put together and the command line is started."""

import sys
from typing import TYPE_CHECKING

from studio.commands.application import run
from studio.settings import Settings

if TYPE_CHECKING:
    from studio.synthesis import Synthesizer


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line on `arguments`, else on those of this process, and returns the exit status."""
    return run(arguments, assemble)


def assemble(settings: Settings, engine_name: str) -> "Synthesizer":
    """Loads the engine and opens the library in the data folder. The imports are here so that --help stays quick."""
    from studio.engine.catalogue import load_engine
    from studio.reference import ReferenceDesk
    from studio.store.code_cache import CodeCache
    from studio.store.takes import TakeLibrary
    from studio.store.voices import VoiceLibrary
    from studio.synthesis import Synthesizer

    engine = load_engine(engine_name, settings)
    desk = ReferenceDesk(engine, CodeCache(settings.database, disk_bytes=settings.cache_bytes), settings.locks_dir)
    voices = VoiceLibrary(settings.database, settings.clips_dir, codec=desk.codec)
    takes = TakeLibrary(settings.database, settings.takes_dir)
    return Synthesizer(engine, desk, voices, takes)


if __name__ == "__main__":
    sys.exit(main())
