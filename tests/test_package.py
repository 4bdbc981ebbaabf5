"""The package as people install it: a wheel, in an environment that has nothing else of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_string
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path

import pytest

import wellkept
from tools import dist

ROOT = Path(__file__).parent.parent

_USE = """
import sys
from importlib import metadata
from pathlib import Path

import wellkept

assert Path(wellkept.__file__).is_relative_to(sys.prefix), wellkept.__file__
assert metadata.version("wellkept") == wellkept.__version__
names = {point.name for point in metadata.entry_points(group="wellkept.stores")}
assert names >= {"sqlite", "jsonl", "ram"}, names
for url in ("memory.db", "jsonl:memory", "ram:"):
    with wellkept.open(url) as memories:
        ada = memories.view(user="ada")
        ada.add("The user prefers dark mode", type="preference")
        [hit] = ada.search("What theme does the user prefer?")
        assert hit.memory.content == "The user prefers dark mode"
print("used")
"""


def _run(*command: str | Path, cwd: Path) -> str:
    """Run a command that sees neither this checkout nor the settings of the user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "WELLKEPT"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # The build backend itself, which is pinned with the other tools: nothing is downloaded.
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    [built] = folder.glob("*.whl")
    return built


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    info = f"wellkept-{wellkept.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"wellkept", info}
    modules = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "wellkept").rglob("*.py")}
    assert modules <= set(names)
    assert "wellkept/py.typed" in names
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"} <= set(names)
    assert {f"wellkept/embedders/word_table_1/{name}" for name in ("rows.bin", "words.txt.gz")} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".db")]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["py.typed", "LICENSE", "NOTICE"])
def test_a_wheel_without_its_types_or_its_licence_is_not_released(wheel: Path, part: str, tmp_path: Path) -> None:
    dist.check(wheel)
    lacking = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(lacking, "w") as archive:
        for name in whole.namelist():
            if not name.endswith(f"/{part}"):
                archive.writestr(name, b"")
    with pytest.raises(SystemExit, match=part):
        dist.check(lacking)


def test_the_licence_of_a_package_is_what_its_metadata_name(tmp_path: Path) -> None:
    for fields, name in {
        "License-Expression: MIT\nLicense: whatever": "MIT",
        "Classifier: License :: OSI Approved :: BSD License\nLicense: whatever": "BSD License",
        "License: Apache-2.0": "Apache-2.0",
        "Summary: nothing": "names none",
    }.items():
        (tmp_path / "METADATA").write_text(f"Metadata-Version: 2.1\n{fields}\n")
        assert dist.licence(Distribution.at(tmp_path)) == name


@pytest.mark.slow
def test_the_metadata_is_what_an_index_shows(wheel: Path) -> None:
    found = _metadata(wheel)
    assert (found["Name"], found["Version"]) == ("wellkept", wellkept.__version__)
    assert found["License-Expression"] == "Apache-2.0"
    classifiers = found.get_all("Classifier") or []
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert "Typing :: Typed" in classifiers
    assert "pip install ." in str(found.get_payload())


@pytest.mark.slow
def test_an_empty_environment_can_use_the_wheel(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", scripts / "python")
    _run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies are those of the tests, behind the environment's own packages: nothing is downloaded.
    where = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
    site = Path(_run(scripts / "python", "-c", where, cwd=tmp_path))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert _run(scripts / "python", "-c", _USE, cwd=tmp_path) == "used\n"
    _run(scripts / "wellkept", "--db", "memory.db", "add", "Lives in Rome", "--user", "ada", cwd=tmp_path)
    assert "Lives in Rome" in _run(scripts / "wellkept", "--db", "memory.db", "list", "--user", "ada", cwd=tmp_path)
    assert wellkept.__version__ in _run(scripts / "wellkept", "version", cwd=tmp_path)
