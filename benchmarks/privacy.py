"""How long it takes to erase a person, receipt included, and what the audit log adds to an add, on a SQLite file.

python -m benchmarks.privacy [--memories 10000] [--others 10000] [--adds 2000]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import wellkept
from wellkept.types import Layer

T = TypeVar("T")


def main() -> None:
    """Fill a file, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=10_000)
    parser.add_argument("--adds", type=int, default=2_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _erasure(Path(folder), given.memories, given.others)
        _audit(Path(folder), given.adds)


def _erasure(folder: Path, count: int, others: int) -> None:
    """Of a person with an agent and ten sessions, beside other people."""
    with wellkept.open(folder / "memory.db") as memories:
        _fill(memories, "bob", count)
        for number in range(10):
            _fill(memories, f"user-{number}", others // 10)
        plan = _timed("plan", lambda: memories.privacy.plan(user="bob"))
        receipt = _timed("erase, receipt included", lambda: memories.privacy.erase(user="bob"))
        verified = _timed("verify the receipt", lambda: memories.privacy.verify(receipt))
        assert plan.counts == receipt.counts
        assert verified.valid
        _timed("export of a tenth", lambda: memories.privacy.export(folder / "user-1.zip", user="user-1"))
        print(f"{receipt.counts.memories} memories of {receipt.counts.owners} owners")


def _timed(what: str, call: Callable[[], T]) -> T:
    started, worked = time.perf_counter(), time.process_time()
    answer = call()
    took, computed = time.perf_counter() - started, time.process_time() - worked
    print(f"{what}: {took:.2f} s, of the processor {computed:.2f} s")
    return answer


def _fill(memories: wellkept.Memories, user: str, count: int) -> None:
    views = [(memories.view(user=user), Layer.USER), (memories.view(user=user, agent="helper"), Layer.AGENT)]
    views += [(memories.view(user=user, session=f"session-{number}"), Layer.SESSION) for number in range(8)]
    for view, layer in views:
        view.add_many(
            wellkept.NewMemory(content=f"{user} note {number}: the build took {number} seconds", layer=layer)
            for number in range(count // len(views))
        )


def _audit(folder: Path, adds: int) -> None:
    """With and without, turn by turn on one file, so that a busy machine disturbs both alike."""
    settings = {"audit": {"file": str(folder / "audit.jsonl")}}
    with wellkept.open(folder / "audited.db", embedder=None, settings=settings) as memories:
        view, engine = memories.view(user="ada"), memories._engine
        took: dict[bool, list[float]] = {False: [], True: []}
        worked: dict[bool, list[float]] = {False: [], True: []}
        audit = engine.audit
        for number in range(2 * adds):
            audited = number % 2 == 1
            engine.live.audit = audit if audited else None
            started, before = time.perf_counter(), time.thread_time()
            view.add(f"note {number}: the build took {number} seconds")
            took[audited].append(time.perf_counter() - started)
            worked[audited].append(time.thread_time() - before)
        engine.live.audit = audit
        for what, measured in (("add", took), ("add, of the processor", worked)):
            plain_us, audited_us = (1_000_000 * statistics.median(measured[audited]) for audited in (False, True))
            more = audited_us - plain_us
            print(f"{what}: {plain_us:.0f} us; the audit log adds {more:.0f} us ({100 * more / plain_us:+.1f} %)")
        assert _timed(f"verify {adds} entries", memories.audit.verify).valid


if __name__ == "__main__":
    main()
