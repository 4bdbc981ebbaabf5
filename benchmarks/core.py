"""What the core costs over bare SQLite, measured side by side in one run: read the ratios, not the times.

Memories are stored without embedding them: what that costs depends on the embedder.

    make bench                      # or: python benchmarks/core.py --folder /a/folder/on/the/disk/that/matters

Each figure is printed with the goal that it is held to.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
import numpy as np

import wellkept
from wellkept import NewMemory
from wellkept.stores.sqlite import SqliteStore

DIMENSION = 384
VOCABULARY = 20_000
ROUNDS = 5
"""How often two things that are not done in turn anyway are measured one after the other; the middle one counts."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    value: str
    goal: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One memory as both sides store it."""

    content: str
    metadata: dict[str, object]
    vector: np.ndarray


def make_rows(count: int) -> list[Row]:
    """Texts of about 300 bytes with a little metadata and a random vector.

    Words are as frequent as in a language (Zipf's law): an index of words costs more when there are many of them.
    """
    letters, numbers = random.Random(7), np.random.default_rng(7)
    vocabulary = ["".join(letters.choices("aeioulnrstdmkgb", k=letters.randint(2, 9))) for _ in range(VOCABULARY)]
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    vectors = numbers.standard_normal((count, DIMENSION), dtype=np.float32)
    return [
        Row(
            content=" ".join(letters.choices(vocabulary, weights, k=52))[:300],
            metadata={"turn": number, "channel": "chat"},
            vector=vectors[number],
        )
        for number in range(count)
    ]


def new_memory(row: Row) -> NewMemory:
    """The row as a caller of Wellkept gives it."""
    return NewMemory(content=row.content, metadata=row.metadata, tags=("bench",), vector=row.vector)


class Bare:
    """The least that keeps the same rows durably: one table, one index of words if asked for."""

    def __init__(self, path: Path, *, words: bool) -> None:
        self.connection = apsw.Connection(str(path))
        self.connection.pragma("page_size", 8192)
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("synchronous", "FULL")
        self.connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, content, metadata, vector)")
        self.words = words
        if words:
            self.connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter')")

    def add(self, rows: list[Row]) -> None:
        """Insert rows in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        for row in rows:
            self.connection.execute(
                "INSERT INTO rows (content, metadata, vector) VALUES (?, ?, ?)",
                (row.content, json.dumps(row.metadata), row.vector.tobytes()),
            )
            if self.words:
                number = self.connection.last_insert_rowid()
                self.connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, row.content))
        self.connection.execute("COMMIT")


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextlib.contextmanager
def opened(folder: Path, name: str) -> Iterator[wellkept.View]:
    """A view on a new database."""
    with wellkept.open(folder / name, embedder=None) as memories:
        yield memories.view(user="ada")


def forced_write_us(folder: Path) -> float:
    """What the disk takes to force out a page: most of what a durable write costs, and what grouping saves."""
    with (folder / "forced").open("wb", buffering=0) as file:
        times = []
        for _ in range(300):
            file.write(bytes(4096))
            times.append(seconds(lambda: os.fdatasync(file.fileno())))
    return statistics.median(times) * 1e6


def durable_add(folder: Path, rows: list[Row]) -> Figure:
    """One add after the other, alternating with a bare insert and commit."""
    bare = Bare(folder / "bare-add.db", words=False)
    ours_s, bare_s = [], []
    with opened(folder, "add.db") as view:
        for row in rows:
            bare_s.append(seconds(partial(bare.add, [row])))
            ours_s.append(seconds(partial(view.add_many, [new_memory(row)])))
    ratio = statistics.median(ours_s) / statistics.median(bare_s)
    times = f"{statistics.median(ours_s) * 1e6:.0f} us against {statistics.median(bare_s) * 1e6:.0f} us"
    return Figure("durable add / bare insert and commit", f"{ratio:.2f} x ({times})", "<= 1.3 x", ratio <= 1.3)


def threaded_add(folder: Path, rows: list[Row], threads: int) -> Iterator[Figure]:
    """Many threads adding at once against one thread adding the same, in turns: the machine changes its speed."""
    lost, rounds = 0, []
    for number in range(ROUNDS):
        with opened(folder, f"one-{number}.db") as view:
            alone = len(rows) / seconds(partial(_add_each, view, [new_memory(row) for row in rows]))
        many = [new_memory(row) for row in rows for _ in range(4)]
        with opened(folder, f"many-{number}.db") as view:
            view.add("warm up")
            together = len(many) / _together(view, many, threads)
            lost += len(many) - (view.count() - 1)
        rounds.append((together / alone, together, alone))
    ratio, together, alone = sorted(rounds)[ROUNDS // 2]
    times = f"{together:.0f}/s against {alone:.0f}/s"
    yield Figure(f"{threads} threads / one thread", f"{ratio:.1f} x ({times})", ">= 5 x", ratio >= 5)
    yield Figure("memories lost by them", f"{lost}", "0", lost == 0)


def _together(view: wellkept.View, many: list[NewMemory], threads: int) -> float:
    """How long it takes threads to add a share each."""
    shares = [many[number::threads] for number in range(threads)]
    start = threading.Barrier(threads + 1)
    workers = [threading.Thread(target=_add_share, args=(view, share, start)) for share in shares]
    for worker in workers:
        worker.start()
    start.wait()
    return seconds(lambda: _join(workers))


def _join(workers: list[threading.Thread]) -> None:
    for worker in workers:
        worker.join()


def _add_share(view: wellkept.View, share: list[NewMemory], start: threading.Barrier) -> None:
    start.wait()
    _add_each(view, share)


def _add_each(view: wellkept.View, news: list[NewMemory]) -> None:
    for new in news:
        view.add_many([new])


def syncs_per_group(folder: Path) -> Figure:
    """Forced writes of the log counted by strace, against the groups that were committed."""
    # Made beforehand, so that only commits are counted; few enough of them that no checkpoint is due.
    wellkept.open(folder / "grouped.db", embedder=None).close()
    strace = shutil.which("strace")
    if strace is None:
        return Figure("forced writes per group", "strace is not installed", "<= 1", reached=False)
    trace = folder / "trace"
    command = [strace, "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
    child = [sys.executable, __file__, "--grouped", str(folder / "grouped.db")]
    groups = int(subprocess.run([*command, *child], check=True, capture_output=True, text=True).stdout)
    syncs = sum(1 for line in trace.read_text().splitlines() if "grouped.db-wal" in line and "resumed" not in line)
    syncs -= 1  # the one that starts a new log, before its first commit
    ratio = syncs / groups
    return Figure("forced writes of the log per group", f"{ratio:.2f} ({syncs} in {groups})", "<= 1", ratio <= 1)


def grouped(path: Path) -> int:
    """In a process of its own: many threads add; how many groups did that take? Not closed, which would checkpoint."""
    rows, store = make_rows(1_000), SqliteStore(path)
    view = wellkept.open(store=store, embedder=None).view(user="ada")
    start = threading.Barrier(100)
    shares = [[new_memory(row) for row in rows[number::100]] for number in range(100)]
    workers = [threading.Thread(target=_add_share, args=(view, share, start)) for share in shares]
    for worker in workers:
        worker.start()
    _join(workers)
    return store.groups


def batch_add(folder: Path, rows: list[Row]) -> Figure:
    """One big batch against a bare loop over the same rows, words and vectors, in turns."""
    rounds = []
    for number in range(ROUNDS):
        bare = Bare(folder / f"bare-batch-{number}.db", words=True)
        bare_rate = len(rows) / seconds(partial(bare.add, rows))
        bare.connection.close()
        with opened(folder, f"batch-{number}.db") as view:
            ours_rate = len(rows) / seconds(partial(view.add_many, [new_memory(row) for row in rows]))
        rounds.append((ours_rate / bare_rate, ours_rate, bare_rate))
    ratio, ours_rate, bare_rate = sorted(rounds)[ROUNDS // 2]
    times = f"{ours_rate:.0f}/s against {bare_rate:.0f}/s"
    return Figure("batch add / bare loop", f"{ratio:.2f} x ({times})", ">= 0.5 x", ratio >= 0.5)


def storage(folder: Path, rows: list[Row]) -> Figure:
    """Bytes of the closed file against the bytes that were given to it."""
    given = sum(len(r.content.encode()) + len(json.dumps(r.metadata)) + 4 * DIMENSION for r in rows)
    ratio = (folder / "batch-0.db").stat().st_size / given
    return Figure("bytes stored / bytes given", f"{ratio:.2f} x", "< 1.6 x", ratio < 1.6)


def get_by_id(folder: Path) -> Figure:
    """Reading single memories in random order."""
    with opened(folder, "batch-0.db") as view:
        ids = [memory.id for memory in view.list(limit=100)]
        chosen = random.Random(7).choices(ids, k=2_000)
        rounds = [seconds(lambda: [view.get(memory_id) for memory_id in chosen]) for _ in range(15)]
    median = statistics.median(rounds) / len(chosen) * 1e6
    return Figure("get by id", f"{median:.1f} us", "< 25 us", median < 25)


def python_start_ms() -> float:
    """How long an empty interpreter takes: a measure of how fast the machine is at the moment."""
    empty = [sys.executable, "-c", "pass"]
    return statistics.median(seconds(lambda: subprocess.run(empty, check=True)) for _ in range(5)) * 1000


OPEN_AND_READ = """
import sys, wellkept
with wellkept.open(sys.argv[1], embedder=None) as memories:
    assert memories.view(user="ada").get(sys.argv[2]) is not None
"""


def cold_start(folder: Path, rows: list[Row], count: int) -> Figure:
    """A new process that opens a large file and reads one memory, beyond what an empty one takes."""
    with opened(folder, "large.db") as view:
        for start in range(0, count, len(rows)):
            view.add_many([new_memory(row) for row in rows[: count - start]])
        memory_id = view.list(limit=1).memories[0].id
    # As an installed package runs: compiled once, by the first of these processes.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    full = partial(
        subprocess.run,
        [sys.executable, "-c", OPEN_AND_READ, str(folder / "large.db"), memory_id],
        check=True,
        env=compiled,
    )
    empty = partial(subprocess.run, [sys.executable, "-c", "pass"], check=True, env=compiled)
    full()
    pairs = [(seconds(full), seconds(empty)) for _ in range(7)]
    beyond = statistics.median(ours - least for ours, least in pairs) * 1000
    return Figure(f"open {count} memories and read one", f"{beyond:.0f} ms", "< 150 ms", beyond < 150)


def figures(folder: Path, scale: float) -> Iterator[Figure]:
    """All of them, each as soon as it is known."""
    rows = make_rows(int(10_000 * scale))
    yield durable_add(folder, rows[: int(1_000 * scale)])
    yield from threaded_add(folder, rows[: int(1_000 * scale)], threads=100)
    yield syncs_per_group(folder)
    yield batch_add(folder, rows)
    yield storage(folder, rows)
    yield get_by_id(folder)
    yield cold_start(folder, rows, int(100_000 * scale))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where to measure: the disk matters")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size, for a quick look")
    parser.add_argument("--grouped", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.grouped:
        print(grouped(arguments.grouped), flush=True)
        os._exit(0)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        forced_us, start_ms = forced_write_us(Path(name)), python_start_ms()
        print(f"a forced write takes {forced_us:.0f} us here, an empty interpreter {start_ms:.0f} ms")
        print(f"{'figure':40} {'goal':>10}  measured")
        for figure in figures(Path(name), arguments.scale):
            mark = " " if figure.reached else "!"
            print(f"{figure.name:40} {figure.goal:>10} {mark}{figure.value}", flush=True)


if __name__ == "__main__":
    main()
