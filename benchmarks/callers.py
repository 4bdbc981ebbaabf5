"""What a grant, an API key, a shared layer and encryption add to get, add, search and list; beside another source tree
if one is given, turn by turn, as ratios of processor time.

python -m benchmarks.callers [--against OTHER/src] [--store ram|sqlite] [--rounds 5]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORIES = 1_000
TIMES = {"get": 2_000, "add": 400, "search": 200, "list": 400}


def measured(store: str) -> dict[str, float]:
    """Microseconds of processor time for a call of each kind, by caller: the median of ten parts."""
    import wellkept  # here: the parent process measures none of it
    from wellkept.keyrings.ram import RamKeyring
    from wellkept.types import Grant, Layer, Need, Owner

    owners = (Owner(Layer.USER, ("ada",)), Owner(Layer.TEAM, ("core",)))
    took: dict[str, float] = {}
    for encrypts in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            where = "ram:" if store == "ram" else str(Path(folder) / "memory.db")
            how: dict[str, Any] = {"keyring": RamKeyring(), "encrypt": "all"} if encrypts else {}
            durability: Any = {} if store == "ram" else {"durability": "relaxed"}
            with wellkept.open(where, embedder="hashing-64", **how, **durability) as memories:
                filled = memories.view(user="ada")
                ids = [one.id for one in filled.add_many([f"note {n} about tea" for n in range(MEMORIES)])]
                key = memories.keys.create("ci", owners=list(owners), need="write")
                views = {
                    "plain": filled,
                    "granted": memories.view(user="ada", grant=Grant(need=Need.WRITE, owners=owners)),
                    "API key": memories.view(user="ada", grant=memories.keys.grant_of(key.token)),
                    "team": memories.view(user="ada", team="core"),
                }
                for name, view in views.items():
                    label = f"{name}, encrypted" if encrypts else name
                    for call, us in _calls(view, ids).items():
                        took[f"{call}: {label}"] = us
    return took


def _calls(view: Any, ids: list[str]) -> dict[str, float]:
    calls: dict[str, Callable[[int], object]] = {
        "get": lambda number: view.get(ids[number % len(ids)]),
        "add": lambda number: view.add(f"another note {number}", layer="user", duplicates="keep"),
        "search": lambda number: view.search(f"note {number}", limit=5),
        "list": lambda _: view.list(limit=20),
    }
    return {name: _median_us(call, TIMES[name]) for name, call in calls.items()}


def _median_us(call: Callable[[int], object], times: int) -> float:
    call(0)
    parts = []
    for part in range(10):
        started = time.process_time()
        for number in range(part * times // 10, (part + 1) * times // 10):
            call(number)
        parts.append(1_000_000 * (time.process_time() - started) / (times // 10))
    return statistics.median(parts)


def _of(source: Path, store: str) -> dict[str, float]:
    """What another process measures with the source of a tree."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", "--store", store],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    took: dict[str, float] = json.loads(done.stdout)
    return took


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--store", choices=["ram", "sqlite"], default="ram")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.store)))
        return
    here = Path(__file__).parent.parent / "src"
    sources = [here] if given.against is None else [given.against.resolve(), here]
    rounds = [[_of(source, given.store) for source in sources] for _ in range(given.rounds)]
    for name in rounds[0][0]:
        us = [statistics.median(one[place][name] for one in rounds) for place in range(len(sources))]
        ratio = f"  against {us[0]:8.1f} us: {us[1] / us[0]:.2f}" if len(us) > 1 else ""
        print(f"{name:30} {us[-1]:8.1f} us{ratio}")


if __name__ == "__main__":
    main()
