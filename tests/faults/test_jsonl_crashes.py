"""A process that ends at any of its writes to plain files: nothing acknowledged is lost, half a batch is not served.

The child is a fork in which the n-th call that changes a file ends the process, for a write after half of its bytes.
"""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect.stores.jsonl import JsonlStore
from recollect.testing.builders import START, Writer, owner, vector

ADA, BOB = owner("ada"), owner("bob")
CHANGING = ("write", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir")
KILLED, DONE = 9, 0
MOST = 2_000


class Crash:
    """Ends the process at its n-th change of a file."""

    def __init__(self, at: int, told: int) -> None:
        self.left = at
        self.told = told
        self.write = os.write

    def arm(self) -> None:
        for name in CHANGING:
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def tell(self, what: str) -> None:
        self.write(self.told, f"{what}\n".encode())

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                if name == "write":
                    number, data = arguments
                    call(number, data[: len(data) // 2])
                os._exit(KILLED)
            return call(*arguments, **options)

        return counted


def adds(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        for number in range(3):
            store.journal.append([writes.add(ADA, f"new {number}", write={"vector": vector(1, 0)})])
            crash.tell(f"added new {number}")


def batch(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        store.journal.append([writes.add(whose, f"batch {number}") for number in range(3) for whose in (ADA, BOB)])
        crash.tell("batched")


def erasing(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        gone = store.journal.get({ADA}, ["m1"])[0]
        store.journal.append([writes.erase(gone)])
        crash.tell("erased")


def compacting(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        [one] = store.journal.get({ADA}, ["m2"])
        store.journal.append([writes.archive(one)])
        store.compact({ADA, BOB})
        crash.tell("compacted")


SCENARIOS: dict[str, Callable[[Path, Crash], None]] = {
    "adds": adds,
    "batch": batch,
    "erasing": erasing,
    "compacting": compacting,
}


def base(root: Path) -> None:
    writes = Writer()
    with closing(JsonlStore(root)) as store:
        for number in range(4):
            store.journal.append([writes.add(ADA, f"old {number}", id=f"m{number}"), writes.add(BOB, f"old {number}")])


def strike(root: Path, what: Callable[[Path, Crash], None], at: int) -> tuple[bool, list[str]]:
    """Run a scenario in a child; whether it came to its end, and what it told until then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = DONE
        try:
            crash = Crash(at, writing)
            crash.arm()
            what(root, crash)
        except BaseException:  # noqa: BLE001  # reason: a forked test must never return into pytest
            traceback.print_exc()
            status = 1
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (KILLED, DONE)
    return code == DONE, told


def strikes(tmp_path: Path, name: str) -> Iterator[tuple[Path, list[str], int]]:
    base(tmp_path / "base")
    for at in range(1, MOST):
        root = tmp_path / f"struck{at}"
        shutil.copytree(tmp_path / "base", root)
        ended, told = strike(root, SCENARIOS[name], at)
        yield root, told, at
        shutil.rmtree(root)
        if ended:
            assert at > 10
            return
    raise AssertionError("the scenario did not come to an end")


def texts(store: JsonlStore, whose: Any) -> list[str]:
    return [one.facets["text"] for one in store.journal.scan({whose})]


@pytest.mark.req("J1", "J8", "J10", "J11")
@pytest.mark.parametrize("name", SCENARIOS)
def test_ended_at_any_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sync in ("fsync", "fdatasync"):  # what a process wrote outlives it without; waiting for the disk takes minutes
        monkeypatch.setattr(os, sync, lambda _: None)
    for root, told, at in strikes(tmp_path, name):
        note = f"{name}, write {at}"
        with closing(JsonlStore(root)) as store:
            ada, bob = texts(store, ADA), texts(store, BOB)
            _check(name, told, ada, bob, note)
            store.journal.append([Writer(START.replace(year=2028)).add(ADA, "afterwards")])
            assert store.check().healthy, note
            if "m1" not in {one.id for one in store.journal.scan({ADA})}:  # erased is erased, whenever the end came
                kept = b"".join(path.read_bytes() for path in (root / "users/ada").iterdir())
                assert b"old 1" not in kept, note
            after = (texts(store, ADA), texts(store, BOB))
        with closing(JsonlStore(root)) as store:
            assert (texts(store, ADA), texts(store, BOB)) == after == ([*ada, "afterwards"], bob), note


def _check(name: str, told: list[str], ada: list[str], bob: list[str], note: str) -> None:
    old = [f"old {number}" for number in range(4)]
    assert bob[:4] == old, note
    assert [text for text in ada if text.startswith("old")] in (
        old,
        ["old 0", "old 2", "old 3"] if name == "erasing" else old,
    ), note
    acknowledged = [line.removeprefix("added ") for line in told if line.startswith("added")]
    assert set(acknowledged) <= set(ada), note
    batched = [text for text in (*ada, *bob) if text.startswith("batch")]
    assert len(batched) in ((6,) if "batched" in told else (0, 6)), note
    if "erased" in told:
        assert "old 1" not in ada, note
