"""Builds the source distribution and the wheel into ``dist``, and proves the wheel: ``make dist``.

The wheel is installed with its pinned dependencies into an empty environment, where the example has to run. What a user
gets is printed: files, sizes, packages and their licences.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
CARRIED = ("wellkept/py.typed", ".dist-info/licenses/LICENSE", ".dist-info/licenses/NOTICE")
PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)


def run(*command: str | Path, folder: Path) -> str:
    """The output of a command that sees neither this checkout nor settings of Wellkept; if it fails, so does all."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WELLKEPT"))}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{process.stdout}{process.stderr}{' '.join(map(str, command))} failed")
    return process.stdout


def build() -> tuple[Path, Path]:
    """The wheel and the source distribution, made anew."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", folder=ROOT)
    [wheel], [source] = (ROOT / "dist").glob("*.whl"), (ROOT / "dist").glob("*.tar.gz")
    return wheel, source


def check(wheel: Path) -> None:
    """Refuse a wheel without its types or its licence."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for file in CARRIED:
        if not any(name.endswith(file) for name in names):
            raise SystemExit(f"{wheel.name} has no {file.rpartition('/')[2]}")


def install(wheel: Path, folder: Path) -> Path:
    """The interpreter of a new environment in a folder, which has the wheel and what it depends on, as pinned."""
    python, pins = folder / "environment" / "bin" / "python", folder / "pins.txt"
    run(sys.executable, "-m", "venv", "--without-pip", folder / "environment", folder=folder)
    # Without their hashes: with them, pip refuses a wheel whose own requirements are ranges.
    pins.write_text("\n".join(PIN.findall((ROOT / "constraints-runtime.txt").read_text(encoding="utf-8"))))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-compile", "--constraint", pins, wheel, folder=folder)
    return python


def licence(package: Distribution) -> str:
    """The licence that a package names in its metadata; older ones do so in a classifier, or in words."""
    fields = package.metadata
    classes = [one.rpartition(" :: ")[2] for one in fields.get_all("Classifier", []) if one.startswith("License ::")]
    words = [text.partition("\n")[0] for text in fields.get_all("License", [])]  # some put the whole licence there
    return ", ".join(fields.get_all("License-Expression", []) or classes or words or ["names none"])


def main() -> None:
    """Build, check, install, run the example, and say what is in it."""
    wheel, source = build()
    check(wheel)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = install(wheel, folder)
        place = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')", folder=folder)
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
        packages = sorted(distributions(path=[place]), key=lambda package: package.name.lower())
        licences = [f"  {package.name} {package.version}: {licence(package)}" for package in packages]
        shutil.copy(ROOT / "examples" / "demo.py", folder)
        ending = run(python, "-I", "demo.py", folder=folder).splitlines()[-1]
    for file in (wheel, source):
        print(f"dist/{file.name}: {file.stat().st_size / 1e6:.1f} MB")
    print(f"The wheel has {', '.join(file.rpartition('/')[2] for file in CARRIED)}.")
    print(f"Installed, it is {len(packages)} packages of {size / 1e6:.1f} MB, before Python compiles them:")
    print(*licences, sep="\n")
    print(f"The example ran in that environment. Its last line: {ending}")


if __name__ == "__main__":
    main()
