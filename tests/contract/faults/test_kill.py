"""kill -9 of a writer, at random moments and at chosen system calls."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.faults import processes, script
from tests.contract.faults.processes import Strace, Told
from tests.contract.faults.soundness import assert_sound, bytes_of, copy_database, fill


@pytest.fixture
def strace(require_tool: Callable[[str], str]) -> Strace:
    return Strace(require_tool("strace"))


@pytest.mark.req("L1", "L2", "N1")
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path, long_run: bool) -> None:
    database = tmp_path / "memory.db"
    acknowledged: dict[str, str] = {}
    for number in range(200 if long_run else 15):
        acknowledged |= _kill_at_random(database, f"round{number}")
        # Looking at everything takes longer with every round, so the long run does it now and then.
        if number < 15 or number % 10 == 0:
            assert_sound(database, acknowledged, note=f"round {number}")
    found = assert_sound(database, acknowledged)
    assert len(found) >= len(acknowledged) > 0


def _kill_at_random(database: Path, prefix: str) -> dict[str, str]:
    """Start a writer, hear some of what it tells, and kill it; returns all that it told."""
    # The kill may come at any moment between two acknowledgements.
    told = processes.kill_after(random.randint(1, 25), random.uniform(0, 0.003), "add_forever", database, prefix)
    assert told.killed, told.errors
    return told.added


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that is struck at each of its writing system calls."""

    what: str
    argument: str = "new"
    prepare: Callable[[Path], dict[str, str]] = fill


def _nothing(database: Path) -> dict[str, str]:
    return {}


def _with_log(database: Path) -> dict[str, str]:
    return processes.finish("leave_log", database, "log").added


SCENARIOS = {
    "creation": Scenario("add_some", prepare=_nothing),
    "adds": Scenario("add_some"),
    "adds onto a log": Scenario("add_some", prepare=_with_log),
    "batch": Scenario("add_batch"),
    "permanent forget": Scenario("erase"),
    "checkpoint": Scenario("checkpoint", prepare=_with_log),
}


@pytest.mark.req("L1", "L2", "L7", "N1")
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_a_system_call(name: str, tmp_path: Path, strace: Strace, long_run: bool) -> None:
    scenario = SCENARIOS[name]
    base = tmp_path / "base.db"
    known = scenario.prepare(base)

    def strike(call: str, number: int) -> Told:
        database = copy_database(base, tmp_path / f"{call}{number}.db")
        return strace.kill(call, number, scenario.what, database, scenario.argument)

    traced = copy_database(base, tmp_path / "traced.db")
    calls = strace.calls(tmp_path / "log", scenario.what, traced, scenario.argument)
    totals = Counter(call for call, file in calls if call in processes.WRITES)
    assert totals["pwrite64"] > 1
    assert totals["fdatasync"] + totals["fsync"] > 0
    hits = 0
    for call, number, told in processes.sweep(totals, strike, every=long_run, points=5):
        _check(tmp_path / f"{call}{number}.db", known, told, f"{name}: {call} {number}")
        hits += told.killed
    assert hits > 0


def _check(database: Path, known: dict[str, str], told: Told, note: str) -> None:
    erasing = [line["key"] for line in told.of("erasing")]
    found = assert_sound(database, known | told.added, erased=erasing, note=note)
    keys = {memory.key for memory in found}
    for line in told.of("erased"):
        assert line["key"] not in keys, note
    for key in erasing:
        if key not in keys:
            # Erased is erased, whenever the kill came: by now the file was opened and closed again.
            assert script.content_of(key).encode() not in bytes_of(database), note
    # The next process goes on in the same file.
    more = fill(database, "more", 2)
    assert_sound(database, known | told.added | more, erased=erasing, note=note)
    for side in ("", "-wal", "-shm", "-journal"):
        database.with_name(database.name + side).unlink(missing_ok=True)


@pytest.mark.req("L1", "N1")
def test_what_is_acknowledged_was_forced_to_the_disk(tmp_path: Path, strace: Strace) -> None:
    """A kill proves nothing about fsync, so this looks at the order of the calls themselves.

    All files but the -shm one count, which is made anew after a crash.
    """
    database = tmp_path / "memory.db"
    fill(database)
    calls = strace.calls(tmp_path / "log", "add_some", database, "new", 5)
    unsafe: set[str] = set()
    synced = acknowledged = 0
    for call, file in calls:
        if call in ("fdatasync", "fsync"):
            unsafe.discard(file)
            synced += 1
        elif call == "pwrite64" and not file.endswith("-shm"):
            unsafe.add(file)
        elif call == "write" and file.startswith("pipe:"):
            assert not unsafe, f"acknowledged before {unsafe} was safe"
            acknowledged += 1
    assert acknowledged == 5
    assert synced >= 5
