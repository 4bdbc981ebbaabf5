"""How long the command takes to start, beside `python -c pass`: alternating in one run, the best of many.

    python benchmarks/startup.py [rounds]

`start` reads the command line and ends where the engine would be loaded. `whole` loads it, works, and closes it.
The machine is warm: everything was compiled and read once, as after an installation.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 20
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import wellkept": ["-c", "import wellkept"],
    "wellkept --help": ["-m", "wellkept", "--help"],
    "wellkept add, start": ["-m", "wellkept", "add", "--help"],
    "wellkept add, whole": ["-m", "wellkept", "add", "Prefers dark mode"],
    "wellkept list, whole": ["-m", "wellkept", "list"],
    "wellkept search, whole": ["-m", "wellkept", "search", "dark mode"],
}


def main() -> None:
    """Measure, and print a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    busy: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        environment = _warm(Path(folder))
        for arguments in COMMANDS.values():
            _measured([sys.executable, *arguments], environment)
        for _ in range(rounds):
            for name, arguments in COMMANDS.items():
                seconds, worked = _measured([sys.executable, *arguments], environment)
                wall[name].append(seconds)
                busy[name].append(worked)
    base = min(wall["python -c pass"]), min(busy["python -c pass"])
    print(f"{'':24} {'wall ms':>8} {'ratio':>6} {'CPU ms':>8} {'ratio':>6}   best of {rounds}")
    for name in COMMANDS:
        best = min(wall[name]), min(busy[name])
        print(
            f"{name:24} {1000 * best[0]:8.1f} {best[0] / base[0]:6.1f} {1000 * best[1]:8.1f} {best[1] / base[1]:6.1f}"
        )


def _warm(folder: Path) -> dict[str, str]:
    """The environment of the commands: an empty database, and compiled modules that are kept, whatever is set here."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "WELLKEPT_DB": str(folder / "memory.db"), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def _measured(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and seconds of work, of a process from its start to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
