"""A plain `pip install .` works: the wheel has everything, and speaks from where it was unpacked."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling import build

CHECKOUT = Path(__file__).parent.parent


def test_the_wheel_speaks_from_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    wheel = tmp_path / build.build_wheel(str(tmp_path))
    installed = tmp_path / "site packages"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(installed)

    assert {name.split("/")[0] for name in names} == {"studio", f"solo_studio-{wheel.name.split('-')[1]}.dist-info"}
    for needed in ("model/config.json", "model/codec.safetensors", "voices/voices.json", "player.js"):
        assert f"studio/assets/{needed}" in names
    output = tmp_path / "out.wav"
    line = [sys.executable, "-m", "studio", "speak", "--voice", "clara", "--text", "Here I am.", "-o", output]
    subprocess.run(line, cwd=installed, check=True, capture_output=True, timeout=200)
    assert output.stat().st_size > 10_000
