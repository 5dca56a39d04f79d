"""Starts the studio's page; where its dependencies are missing, first makes .venv beside this file and fills it.

    python launch.py [--no-install] [any option of `python -m studio ui`]

Standard library only. It knows pyproject.toml, constraints.txt and how the command line is called, nothing else.
"""

import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    print(
        f"The studio runs on Python 3.11, 3.12 and 3.13; this is {sys.version.split()[0]} ({sys.executable}). "
        "Install one of these and start launch.py with it, for example: python3.12 launch.py",
        file=sys.stderr,
    )
    sys.exit(2)

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent

USAGE = """usage: python launch.py [--no-install] [options of the page]

Starts the studio's page. The first start makes .venv beside launch.py and installs the pinned dependencies there.
  --no-install   install nothing; say what is missing and the commands that would install it
Every other option goes to `python -m studio ui`; once installed, --help lists them too.
"""

SURVEY = """
import sys
sys.path.insert(0, sys.argv[1])
import json, pathlib, launch
root = pathlib.Path(sys.argv[1])
print(json.dumps({"missing": launch.missing(root), "torch": launch.kept_torch(root), "pip": launch.is_met("pip")}))
"""


class LaunchError(Exception):
    """What stands in the way and the cure, as a sentence for the person who started it."""


def main(arguments: list[str], root: Path = HERE) -> int:
    """Returns the exit status; on POSIX a start inside .venv replaces this process and never returns."""
    forwarded = [argument for argument in arguments if argument != "--no-install"]
    try:
        if missing(root):
            if "--help" in arguments:
                print(USAGE)
                return 0
            python = ready_python(root, may_install="--no-install" not in arguments)
            if Path(sys.prefix) != environment(root):
                return go_on_inside(python, root, forwarded)
        return start(root, forwarded)
    except LaunchError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("\nStopped.")
        return 130


def environment(root: Path) -> Path:
    return root / ".venv"


def environment_python(root: Path) -> Path:
    return environment(root) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def requirements(root: Path) -> list[str]:
    """The studio's dependencies as pyproject.toml states them, for example `numpy>=2`."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]


def missing(root: Path) -> list[str]:
    """The dependencies that this Python lacks or has in a version that does not fit."""
    return [requirement for requirement in requirements(root) if not is_met(requirement)]


def kept_torch(root: Path) -> str | None:
    """The version of a torch that is already in this Python and fits, without its local suffix."""
    needed = [requirement for requirement in requirements(root) if re.match(r"torch\b", requirement)]
    return importlib.metadata.version("torch").split("+")[0] if needed and is_met(needed[0]) else None


def is_met(requirement: str) -> bool:
    """Whether the package is wholly installed within its bounds; pyproject.toml uses only `>=` and `<`."""
    name = re.split(r"[<>=]", requirement, maxsplit=1)[0]
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    bounds = re.findall(r"(>=|<)([\d.]+)", requirement)
    # pip writes the list of files last: without it the installation was interrupted.
    return distribution.files is not None and all(
        (numbers(distribution.version) >= numbers(bound)) == (operator == ">=") for operator, bound in bounds
    )


def numbers(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` is (2, 13): the release, without trailing zeros, so that 2 and 2.0 are equal."""
    release = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in re.sub(r"(\.0)*$", "", release[0] if release else "").split(".") if part)


def ready_python(root: Path, *, may_install: bool) -> Path:
    """The Python of an environment that has everything; makes, repairs or completes .venv where it may."""
    python = environment_python(root)
    found = survey(root)
    if found and not found["missing"]:
        return python
    if not may_install:
        raise LaunchError(refusal(root, found))
    if found is None or not found["pip"]:
        make_environment(root)
        found = survey(root)
    install(root, found["torch"] if found else None)
    left = survey(root)
    if left is None or left["missing"]:
        raise LaunchError(f"{environment(root)} is still not complete. Remove that folder and start again.")
    return python


def survey(root: Path) -> dict | None:
    """What .venv lacks, its torch and whether it has pip; None where it is not there or its Python does not fit."""
    python = environment_python(root)
    if not python.exists():
        return None
    done = subprocess.run([python, "-P", "-c", SURVEY, root], capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def refusal(root: Path, found: dict | None) -> str:
    lacking = found["missing"] if found else missing(root)
    names = ", ".join(re.split(r"[<>=]", requirement)[0] for requirement in lacking)
    make = [] if found and found["pip"] else [[sys.executable, "-m", "venv", "--clear", str(environment(root))]]
    commands = [*make, install_command(root, root / "constraints.txt")]
    quoted = [subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command) for command in commands]
    return f"Not installed: {names}. Start without --no-install, or run:\n  " + "\n  ".join(quoted)


def make_environment(root: Path) -> None:
    """A new .venv, in place of a half-made one; it sees this Python's packages where a fitting torch is among them."""
    absent = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if absent:
        raise LaunchError(
            f"{sys.executable} cannot make an environment: its module {absent[0]} is missing. "
            f"On Debian or Ubuntu run: sudo apt install python3.{sys.version_info.minor}-venv"
        )
    import venv

    target = environment(root)
    broken = os.path.lexists(target)
    say(f"{'Making anew, since it does not work,' if broken else 'Making'} the environment {target}")
    shared = sys.prefix == sys.base_prefix and kept_torch(root) is not None
    builder = venv.EnvBuilder(system_site_packages=shared, clear=broken, symlinks=os.name != "nt", with_pip=True)
    try:
        builder.create(target)
    except (OSError, ValueError) as error:  # venv refuses a path with the separator of PATH in it by a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        cure = "Copy the studio's folder to another place, one that you may write to."
        raise LaunchError(f"{target} cannot be made ({reason}). {cure}") from error
    except subprocess.CalledProcessError as error:
        raise LaunchError(f"pip could not be put into {target}. Remove that folder and start again.") from error


def install(root: Path, torch: str | None) -> None:
    """Installs the pinned set with pip's own progress; a torch that fits stays."""
    clear_half_installed(environment(root))
    size = "0.3 GB" if torch or sys.platform != "linux" else "up to 3 GB, since torch brings NVIDIA's libraries"
    say(f"Installing the studio's dependencies, once: {size} to download. Ctrl-C stops; the next start goes on.")
    command = install_command(root, constraints(root, torch))
    done = subprocess.run(command, env={**os.environ, "PIP_USER": "0"}, check=False)
    if done.returncode:
        raise LaunchError("The installation did not finish; pip says why above. Start again and it goes on from there.")


def install_command(root: Path, pins: Path) -> list[str]:
    return [str(environment_python(root)), "-m", "pip", "install", "--constraint", str(pins), *requirements(root)]


def constraints(root: Path, torch: str | None) -> Path:
    """The pinned set; where a torch is to be kept, a copy in .venv that pins that one."""
    pinned = root / "constraints.txt"
    if torch is None:
        return pinned
    adapted = environment(root) / "constraints.txt"
    text = pinned.read_text(encoding="utf-8")
    adapted.write_text(re.sub(r"(?m)^torch==.*$", f"torch=={torch}", text), encoding="utf-8")
    return adapted


def clear_half_installed(target: Path) -> None:
    """Forgets packages whose installation was interrupted, so that pip installs them again."""
    for record in target.glob("**/site-packages/*.dist-info"):
        if not (record / "RECORD").exists():
            shutil.rmtree(record)


def go_on_inside(python: Path, root: Path, arguments: list[str]) -> int:
    command = [str(python), str(root / "launch.py"), *arguments]
    if os.name != "nt":
        os.execv(python, command)
    return subprocess.call(command)  # exec on Windows would give the prompt back while the studio still runs


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def start(root: Path, arguments: list[str]) -> int:
    sys.path.insert(0, str(root))
    from studio.__main__ import main as studio

    if "--help" in arguments:
        print(USAGE)
    return studio(["ui", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
