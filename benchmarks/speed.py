"""The same work on Wellkept and on other libraries, in one run on one machine: read the ratios, not the times.

    make bench-speed                  # or: python benchmarks/speed.py --sizes 1000,10000 --peers all

Each peer is installed into a virtual environment of its own and runs in processes of its own; the code that times it is
the same for all (`benchmarks/peers/worker.py`). A peer that cannot be installed, or fails, is named with the reason.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import speed_input, speed_report
from benchmarks.peers import PEERS

ROOT = Path(__file__).resolve().parent.parent
OURSELVES = "wellkept"
COLD_STARTS = 3
ALONE_FROM = 1_000_000
"""From this size on only Wellkept is measured, unless peers are named one by one."""

Figures = dict[str, Any]


class Failed(Exception):
    """Why a peer has no figures, in a few words."""


def in_words(output: str) -> str:
    """The last line that says what went wrong, without anything that looks like a path or an address."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines or ["no message"]
    return re.sub(r"\S*[/\\]\S*", "...", telling[-1])[:200]


def python_of(name: str, venvs: Path) -> Path:
    """The interpreter of a peer, in an environment that is made now if it is not there yet."""
    requirements: tuple[str, ...] = import_module(f"benchmarks.peers.{PEERS[name]}").REQUIREMENTS
    if not requirements:
        return Path(sys.executable)
    folder = (venvs / requirements[0].partition("==")[0]).absolute()
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "installed.txt"
    wanted = "\n".join(requirements)
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {name}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise Failed(f"cannot be installed: {in_words(finished.stderr)}")
    done.write_text(wanted, encoding="utf-8")
    return python


def run(command: list[str], limit_s: float, **environment: str) -> Figures:
    """The figures that a process prints; those known so far, with the reason, if it takes too long or fails."""
    reason = None
    try:
        finished = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
        output = finished.stdout
        if finished.returncode:
            reason = f"failed: {in_words(finished.stderr)}"
    except subprocess.TimeoutExpired as expired:
        output = bytes(expired.stdout or b"").decode()  # bytes, also where text was asked for
        reason = f"stopped after {limit_s:.0f} s"
    figures: Figures = {}
    for line in output.splitlines():
        if line.startswith("{"):
            figures |= json.loads(line)
    return figures | {"missing": reason} if reason else figures


def cold_start(command: list[str]) -> Figures:
    """From starting an interpreter to the first answer, and the memory that some searches take."""
    times = []
    figures: Figures = {}
    # As installed packages run: compiled once, by the first of these processes, which does not count.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(1 + COLD_STARTS):
        started = time.perf_counter()
        with subprocess.Popen(
            command, cwd=ROOT, env=compiled, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            for line in child.stdout or ():
                if line.startswith("{"):
                    told = json.loads(line)
                    if told.get("answered"):
                        times.append(time.perf_counter() - started)
                    figures |= told
    figures.pop("answered", None)
    return figures | ({"cold_start_ms": statistics.median(times[1:]) * 1000} if times[1:] else {})


def bytes_on_disk(folder: Path) -> int:
    """What the files occupy; where the system does not say, their lengths."""
    stats = [file.stat() for file in folder.rglob("*") if file.is_file()]
    return sum(stat.st_blocks * 512 if hasattr(stat, "st_blocks") else stat.st_size for stat in stats)


def measured(name: str, source: Path, size: int, arguments: argparse.Namespace) -> Figures:
    """All figures of one peer at one size."""
    try:
        python = str(python_of(name, arguments.venvs))
    except Failed as failure:
        return {"missing": str(failure)}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        worker = [python, "-m", "benchmarks.peers.worker"]
        figures = run([*worker, "measure", name, str(source), folder], arguments.limit_s)
        if figures.pop("persistent", False) and "missing" not in figures:
            figures |= cold_start([*worker, "cold", name, str(source), folder])
            figures["bytes_per_memory"] = bytes_on_disk(Path(folder)) / (size + size // 100)
    if name == OURSELVES:
        figures["yardsticks"] = yardsticks(source, arguments)
    return figures


def yardsticks(source: Path, arguments: argparse.Namespace) -> Figures:
    """The bare arithmetic on one core, and a search with a real embedder."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        command = [sys.executable, "-m", "benchmarks.speed_kernel"]
        alone = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        figures = run([*command, "kernels", str(source), folder], arguments.limit_s, **alone)
        return figures | run([*command, "model", str(source), folder], arguments.limit_s)


def chosen(peers: str, size: int) -> list[str]:
    """The names of those to measure, ourselves first."""
    if peers == "none" or (peers == "all" and size >= ALONE_FROM):
        return [OURSELVES]
    by_module = {module: name for name, module in PEERS.items()}
    named = list(PEERS) if peers == "all" else [by_module.get(one, one) for one in peers.split(",")]
    unknown = set(named) - set(PEERS)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PEERS.values())}")
    return [OURSELVES, *(name for name in named if name != OURSELVES)]


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of memories")
    parser.add_argument("--peers", default="all", help="all, none, or some of: " + ",".join(PEERS.values()))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"), help="where the page goes")
    parser.add_argument("--venvs", type=Path, default=Path(".venvs/peers"), help="where peers are installed")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to measure: the disk matters")
    parser.add_argument("--limit-s", type=float, default=1800, help="the longest that one peer may take at one size")
    arguments = parser.parse_args()
    sizes: dict[str, dict[str, Figures]] = {}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for size in (int(text) for text in arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=arguments.folder) as source:
            speed_input.write(Path(source), size)
            for name in chosen(arguments.peers, size):
                figures = measured(name, Path(source), size, arguments)
                sizes.setdefault(str(size), {})[name] = figures
                print(f"{size} {name}: {json.dumps(figures)}", file=sys.stderr, flush=True)
    print(speed_report.write(arguments.out, sizes))


if __name__ == "__main__":
    main()
