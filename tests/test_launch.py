"""launch.py on a toy project: a real environment, a real pip, one package of three lines, and nothing from outside."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import launch as launcher

CHECKOUT = Path(__file__).parent.parent
TOY = "toy_dependency"


def wheel(folder: Path, version: str, *, name: str = TOY) -> Path:
    """A package of one module that holds its version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(inner, text)
        listed = "".join(f"{inner},,\n" for inner in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", listed)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with launch.py, one dependency and a studio that prints what it was started with."""
    root = tmp_path / "my Stüdio 工作室"
    (root / "studio").mkdir(parents=True)
    shutil.copy(CHECKOUT / "launch.py", root)
    (root / "pyproject.toml").write_text(f'[project]\ndependencies = ["{TOY}>=1.5,<2"]\n')
    (root / "constraints.txt").write_text(f"{TOY}==1.6\n")
    (root / "studio" / "__init__.py").touch()
    (root / "studio" / "__main__.py").write_text(
        "import json, sys\n"
        "def main(arguments):\n"
        "    if '--wait' in arguments:\n"
        "        import time\n"
        "        print('started', flush=True)\n"
        "        time.sleep(60)\n"
        "    import toy_dependency\n"
        "    print(json.dumps([arguments, sys.prefix, toy_dependency.version]))\n"
        "    return 7 if '--fail' in arguments else 0\n"
    )
    wheel(root.parent / "wheels", "1.6")
    return root


def environ(project: Path) -> dict[str, str]:
    """pip may look into the folder of toy wheels and nowhere else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": (project.parent / "wheels").as_uri(),
        "PIP_CONFIG_FILE": os.devnull,
    }
    return kept | offline


def launch(project: Path, *arguments: str, python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, project / "launch.py", *arguments],
        cwd=project.parent,
        env=environ(project),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def started(done: subprocess.CompletedProcess[str]) -> tuple[list[str], Path, str]:
    """The studio's arguments, the prefix of its Python and the version of its dependency."""
    assert done.returncode == 0, done.stderr
    arguments, prefix, version = json.loads(done.stdout.splitlines()[-1])
    return arguments, Path(prefix), version


@pytest.mark.timeout(900)
def test_the_first_start_makes_the_environment_and_the_second_starts_at_once(project: Path) -> None:
    first = launch(project, "--port", "7999")
    assert started(first) == (["ui", "--port", "7999"], project / ".venv", "1.6")
    assert "Making the environment" in first.stderr
    assert "Installing the studio's dependencies" in first.stderr
    assert f"Successfully installed {TOY.replace('_', '-')}-1.6" in first.stdout.replace("_", "-")

    second = launch(project, "--port", "7999")
    assert started(second) == started(first)
    assert second.stderr == ""
    assert len(second.stdout.splitlines()) == 1

    inside = launch(project, python=environment_python(project))
    assert started(inside) == (["ui"], project / ".venv", "1.6")

    check_repair(project)


def check_repair(project: Path) -> None:
    """Everything that an interrupted installation can leave behind, on the environment already made."""
    site = next((project / ".venv").glob("lib/python*/site-packages"))
    (record,) = site.glob("toy_dependency-*.dist-info")
    (record / "RECORD").unlink()
    (site / f"{TOY}.py").unlink()
    refused = launch(project, "--no-install")
    assert refused.returncode == 2
    assert started(launch(project))[2] == "1.6"

    (site / "pip-stays").mkdir()
    for folder in site.glob("pip-*.dist-info"):
        (folder / "RECORD").unlink()
    shutil.rmtree(next(site.glob("toy_dependency-*.dist-info")))
    repaired = launch(project)
    assert "Making anew" in repaired.stderr
    assert started(repaired)[2] == "1.6"
    assert not (site / "pip-stays").exists()

    environment_python(project).unlink()
    environment_python(project).symlink_to("/nowhere/python")
    assert "Making anew" in (again := launch(project)).stderr
    assert started(again)[2] == "1.6"


def environment_python(project: Path) -> Path:
    return project / ".venv" / "bin" / "python"


def test_a_dependency_that_is_already_there_starts_at_once(project: Path) -> None:
    shutil.unpack_archive(project.parent / "wheels" / f"{TOY}-1.6-py3-none-any.whl", project, format="zip")
    done = launch(project, "--share")
    assert started(done) == (["ui", "--share"], Path(sys.prefix), "1.6")
    assert not (project / ".venv").exists()


def test_the_exit_status_of_the_studio_is_passed_on(project: Path) -> None:
    shutil.unpack_archive(project.parent / "wheels" / f"{TOY}-1.6-py3-none-any.whl", project, format="zip")
    assert launch(project, "--fail").returncode == 7


def test_no_install_refuses_with_commands_that_work(project: Path) -> None:
    refused = launch(project, "--no-install")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert f"Not installed: {TOY}." in refused.stderr
    assert not (project / ".venv").exists()

    for command in refused.stderr.splitlines()[1:]:
        subprocess.run(command, shell=True, env=environ(project), check=True, capture_output=True)  # noqa: S602
    assert started(launch(project, "--no-install"))[0] == ["ui"]


def test_a_version_out_of_bounds_is_not_taken(project: Path) -> None:
    archive = wheel(project.parent / "old", "1.4")
    shutil.unpack_archive(archive, project, format="zip")
    assert launch(project, "--no-install").returncode == 2


def test_help_installs_nothing(project: Path) -> None:
    done = launch(project, "--help")
    assert done.returncode == 0
    assert "--no-install" in done.stdout
    assert not (project / ".venv").exists()


def test_a_failed_download_is_a_sentence(project: Path) -> None:
    shutil.rmtree(project.parent / "wheels")
    failed = launch(project)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1].startswith("The installation did not finish")
    assert "Traceback" not in failed.stderr


def test_a_place_that_cannot_be_written_is_a_sentence(project: Path) -> None:
    (project / ".venv").write_text("a file where the folder should be")
    failed = launch(project)
    assert failed.returncode == 2
    assert "cannot be made" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_python_without_ensurepip_gets_the_cure(project: Path) -> None:
    hide = "import sys; sys.path.insert(0, sys.argv[1]); "
    code = hide + "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, *a: None if n == 'ensurepip' "
    code += "else f(n, *a); import launch; sys.exit(launch.main([]))"
    done = subprocess.run(
        [sys.executable, "-c", code, project], env=environ(project), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"sudo apt install python3.{sys.version_info.minor}-venv" in done.stderr


@pytest.mark.parametrize("version", [(3, 10, 9), (3, 14, 0), (2, 7, 18)])
def test_a_python_that_does_not_fit_gets_a_sentence(version: tuple[int, int, int]) -> None:
    pretend = f"import sys, runpy; sys.version_info = {version}; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", pretend, CHECKOUT / "launch.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Python 3.11, 3.12 and 3.13" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_torch_that_fits_is_kept(project: Path) -> None:
    (project / "pyproject.toml").write_text(f'[project]\ndependencies = ["torch>=2.7", "{TOY}>=1.5,<2"]\n')
    (project / "constraints.txt").write_text(f"torch==2.13.0\n{TOY}==1.6\n")
    wheel(project.parent / "wheels", "2.13.0", name="torch")
    mine = wheel(project.parent / "mine", "2.9.1+cu128", name="torch")
    subprocess.run([sys.executable, "-m", "venv", project / ".venv"], env=environ(project), check=True)
    pip = [environment_python(project), "-m", "pip", "install", "--no-deps", mine]
    subprocess.run(pip, env=environ(project), check=True, capture_output=True)

    assert started(launch(project))[2] == "1.6"
    asked = [environment_python(project), "-c", "import torch; print(torch.version)"]
    assert subprocess.check_output(asked, text=True).strip() == "2.9.1+cu128"


def test_ctrl_c_ends_without_a_traceback(project: Path) -> None:
    shutil.unpack_archive(project.parent / "wheels" / f"{TOY}-1.6-py3-none-any.whl", project, format="zip")
    process = subprocess.Popen(
        [sys.executable, project / "launch.py", "--wait"],
        env=environ(project),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in said


def test_a_read_only_checkout_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("venv.EnvBuilder.create", refuse)
    assert launcher.main([], project) == 2
    said = capsys.readouterr().err
    assert "Read-only file system" in said
    assert "Copy the studio's folder" in said


@pytest.mark.parametrize(
    ("torch", "inside", "shared"), [("2.13.0", False, True), ("2.13.0", True, False), (None, False, False)]
)
def test_the_environment_sees_a_fitting_torch_of_the_python_it_is_made_with(
    project: Path, monkeypatch: pytest.MonkeyPatch, torch: str | None, inside: bool, shared: bool
) -> None:
    made = []
    monkeypatch.setattr("venv.EnvBuilder.create", lambda builder, _target: made.append(builder.system_site_packages))
    monkeypatch.setattr(sys, "prefix", "/an/environment" if inside else sys.base_prefix)
    monkeypatch.setattr(launcher, "kept_torch", lambda _root: torch)
    launcher.make_environment(project)
    assert made == [shared]


@pytest.mark.parametrize(("version", "fits"), [("2.7", True), ("2.13.0+cpu", True), ("2.6.9", False), ("3.0.0", False)])
def test_versions_are_compared_as_numbers(monkeypatch: pytest.MonkeyPatch, version: str, fits: bool) -> None:
    found = SimpleNamespace(version=version, files=[])
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: found)
    assert launcher.is_met("torch>=2.7,<3") is fits
