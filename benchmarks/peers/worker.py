"""One peer at work, in a process and an environment of its own; every figure is printed as soon as it is known.

    python -m benchmarks.peers.worker measure NAME INPUT FOLDER
    python -m benchmarks.peers.worker cold NAME INPUT FOLDER

INPUT is what ``benchmarks.speed_input`` wrote, FOLDER is where the peer keeps its files. A figure is a line of JSON.
"""

import json
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers import FEW, MANY, PEERS, Item, Peer, Unsupported

K = 10
DIMENSION = 384
SINGLES = 100
"""How many of the items are added one by one."""
BATCH = 1_000
WARM_UP = 3
LEAST, BUDGET_S = 5, 20.0
"""A search is repeated for all questions, or for so long; but at least so often."""


def say(**figures: Any) -> None:
    """Tell the harness."""
    print(json.dumps(figures), flush=True)


def median(times: Sequence[float]) -> float:
    """The middle one, in milliseconds; numpy and statistics are not imported for it."""
    return sorted(times)[len(times) // 2] * 1000


def p95(times: Sequence[float]) -> float:
    """What 95 of 100 do not exceed, in milliseconds."""
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)] * 1000


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def resident_bytes() -> int:
    """The memory that this process occupies now; where the system does not say, the most that it occupied."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        usage = import_module("resource").getrusage(0).ru_maxrss
        return int(usage) * (1 if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE")


def questions_of(source: Path) -> list[Item]:
    """The questions, read without numpy: a cold start should not pay for what the peer itself does not need."""
    numbers = array("f", (source / "questions.f32").read_bytes())
    texts = (source / "questions.txt").read_text(encoding="utf-8").splitlines()
    return [Item(text, numbers[n * DIMENSION : (n + 1) * DIMENSION]) for n, text in enumerate(texts)]


class Load:
    """What is stored: the items, and what an exact search would find among them."""

    def __init__(self, source: Path) -> None:
        self._numpy: Any = import_module("numpy")
        self.vectors = self._numpy.load(source / "vectors.npy", mmap_mode="r")
        self.texts = (source / "texts.txt").read_text(encoding="utf-8").splitlines()
        self.owners = [FEW if number % 101 == 100 else MANY for number in range(len(self.texts))]

    def items(self, start: int, stop: int) -> list[Item]:
        """Some of them, in memory."""
        vectors = self._numpy.array(self.vectors[start:stop])
        texts, owners = self.texts[start:stop], self.owners[start:stop]
        return [Item(text, row, owner) for text, row, owner in zip(texts, vectors, owners, strict=True)]

    def exact(self, question: Item, owner: str | None) -> set[str]:
        """The texts of the nearest of an owner, or of all."""
        scores = self.vectors @ self._numpy.asarray(question.vector, dtype="float32")
        order = self._numpy.argsort(-scores, kind="stable")
        mine = (number for number in order if owner in (None, self.owners[number]))
        return {self.texts[number] for number, _ in zip(mine, range(K), strict=False)}


def load_all(peer: Peer, load: Load, folder: Path) -> None:
    """Most of the items in batches, the last ones singly; then whatever the peer wants done before a search."""
    bulk = len(load.texts) - SINGLES
    timed = min(bulk, peer.batch_measured or bulk)
    spent = 0.0
    for start in range(0, timed, BATCH):
        some = load.items(start, min(start + BATCH, timed))
        spent += seconds(partial(peer.add_many, some))
    say(batch_per_s=timed / spent)
    for start in range(timed, bulk, BATCH):
        peer.fill(load.items(start, min(start + BATCH, bulk)))
    add_singly(peer, load.items(bulk, len(load.texts)), folder)
    say(settle_s=seconds(peer.settle))


def add_singly(peer: Peer, items: Sequence[Item], folder: Path) -> None:
    """One after the other, in turn with a forced write of a page, which tells how fast the disk is at the moment."""
    forced, times = [], []
    force = getattr(os, "fdatasync", os.fsync)
    with tempfile.TemporaryFile(buffering=0, dir=folder) as file:
        for item in items:
            file.write(bytes(4096))
            forced.append(seconds(partial(force, file.fileno())))
            times.append(seconds(partial(peer.add, item)))
    say(add_p50_ms=median(times), add_p95_ms=p95(times), forced_write_ms=median(forced))


Search = Callable[[Item], list[str]]


def searched(search: Search, questions: Sequence[Item]) -> tuple[list[float], list[list[str]]]:
    """The times and the answers of a search."""
    for question in questions[:WARM_UP]:
        search(question)
    times: list[float] = []
    answers: list[list[str]] = []
    for question in questions:
        if len(times) >= LEAST and sum(times) > BUDGET_S:
            break
        started = time.perf_counter()
        answers.append(search(question))
        times.append(time.perf_counter() - started)
    return times, answers


def search_all(peer: Peer, load: Load, questions: Sequence[Item]) -> None:
    """Every kind of search that the peer has."""
    kinds: dict[str, tuple[Search, str | None]] = {
        "search": (lambda question: peer.search(question, K), MANY if peer.scoped else None),
        "filtered": (lambda question: peer.filtered(question, FEW, K), FEW),
    }
    for name, (search, owner) in kinds.items():
        times, answers = searched(search, questions)
        say(**{f"{name}_p50_ms": median(times), f"{name}_p95_ms": p95(times)})
        pairs = zip(questions, answers, strict=False)
        shares = [len(load.exact(question, owner).intersection(found)) / K for question, found in pairs]
        say(**{f"{name}_recall": sum(shares) / len(shares)})
    try:
        times, _ = searched(lambda question: peer.hybrid(question, K), questions)
    except Unsupported:
        return
    say(hybrid_p50_ms=median(times), hybrid_p95_ms=p95(times))


def measure(module: Any, source: Path, folder: Path) -> None:
    """Store everything, then search."""
    load = Load(source)
    before = resident_bytes()
    peer: Peer = module.open(folder, DIMENSION)
    say(machine_load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None)
    load_all(peer, load, folder)
    if not peer.persistent:
        say(resident_mb=(resident_bytes() - before) / 1e6)
    say(persistent=peer.persistent)
    search_all(peer, load, questions_of(source))
    peer.close()


def cold(module: Any, source: Path, folder: Path) -> None:
    """Answer one question as soon as possible; then some more, to see what memory that takes."""
    questions = questions_of(source)
    peer: Peer = module.open(folder, DIMENSION)
    say(answered=bool(peer.search(questions[0], K)))
    for question in questions[: LEAST * 2]:
        peer.search(question, K)
    say(resident_mb=resident_bytes() / 1e6)
    peer.close()


def arguments() -> Iterator[Any]:
    """The module of the peer, and the two folders."""
    yield import_module(f"benchmarks.peers.{PEERS[sys.argv[2]]}")
    yield from (Path(name) for name in sys.argv[3:5])


if __name__ == "__main__":
    {"measure": measure, "cold": cold}[sys.argv[1]](*arguments())
