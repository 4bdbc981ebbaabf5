"""What encryption costs: adding and searching beside a plain database, and the rotation of a master key.

Both databases get the same memories, turn by turn, so that a busy machine slows both. Prints a line for each figure.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import wellkept
from wellkept import NewMemory
from wellkept.keyrings import file as file_module
from wellkept.keyrings import private_files, wrapping
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import FileMasterKeys
from wellkept.types import Layer, Owner

WORDS = """tea coffee garden house river mountain meeting project deadline budget design review release customer phone
travel paris rome berlin train flight hotel dinner music guitar piano painting book library school teacher doctor
friend family sister brother birthday wedding holiday summer winter spring autumn""".split()


def text(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(8, 30)))


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def keyring(folder: Path) -> FileKeyring:
    masters = FileMasterKeys(folder / "master.key")
    masters.create()
    return FileKeyring.create_file(folder / "keys", masters)


def memories_cost(folder: Path, count: int) -> None:
    chance = random.Random(7)
    texts = [text(chance) for _ in range(count)]
    plain = wellkept.open(folder / "plain.db")
    encrypted = wellkept.open(folder / "encrypted.db", keyring=keyring(folder), encrypt="all")
    views = {"plain": plain.view(user="ada"), "encrypted": encrypted.view(user="ada")}
    for start in range(0, count, 500):
        for view in views.values():
            view.add_many([NewMemory(content=one) for one in texts[start : start + 500]])
    first = {name: timed(partial(view.search, "warm up")) for name, view in views.items()}
    took: dict[str, list[float]] = {name: [] for name in views}
    for _ in range(300):
        content = text(chance)
        for name, view in views.items():
            took[name].append(timed(partial(view.add, content)))
    report("add", took)
    took = {name: [] for name in views}
    for view in views.values():
        view.search("after the writes")
    for _ in range(200):
        question = " ".join(chance.choice(WORDS) for _ in range(3))
        for name, view in views.items():
            took[name].append(timed(partial(view.search, question)))
    report("search", took)
    took = {name: [] for name in views}
    for _ in range(20):
        word = chance.choice(WORDS)
        for name, view in views.items():
            took[name].append(timed(partial(view.list, filter={"text": word})))
    report("list by words", took)
    print(f"first search (loads the index): plain {first['plain']:.0f} ms, encrypted {first['encrypted']:.0f} ms")
    plain.close()
    encrypted.close()


def report(name: str, took: dict[str, list[float]]) -> None:
    plain, encrypted = (statistics.median(took[one]) for one in ("plain", "encrypted"))
    print(f"{name}: plain {plain:.3f} ms, encrypted {encrypted:.3f} ms, {encrypted / plain:.2f} x")


def rotation_cost(folder: Path, owners: int) -> None:
    ring = keyring(folder)
    for number in range(100):
        ring.create(Owner(Layer.USER, (f"user-{number}",)))
    header, *lines = ring.path.read_bytes().splitlines(keepends=True)
    master = next(FileMasterKeys(folder / "master.key").candidates())
    for number in range(100, owners):  # in one go: each key by itself waits for the disk
        owner, key = Owner(Layer.USER, (f"user-{number}",)), wrapping.new_key()
        lines.append(file_module._line(owner, key.id, wrapping.wrap(master, ring.id, owner, key)))
    private_files.replace(ring.path, header + b"".join(lines))
    print(f"rotation of the master key over {owners} owners: {timed(ring.rotate) / 1000:.2f} s")
    print(f"check of all of them: {timed(ring.check) / 1000:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--owners", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as one:
        memories_cost(Path(one), chosen.memories)
    with tempfile.TemporaryDirectory() as one:
        rotation_cost(Path(one), chosen.owners)
