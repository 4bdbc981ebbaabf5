"""Schema steps that are killed half-way: afterwards the file has the old schema or the new one, and opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.contract.faults import processes
from tests.contract.faults.processes import Fork, Strace, Told
from tests.contract.faults.soundness import assert_sound, copy_database, fill, raw
from tests.support.sqlite_files import schema_of

STEPS = [(1, 2), (2, 1)]
LATER = ("later", "migrate")
pytestmark = pytest.mark.usefixtures("later_release")


@pytest.fixture
def strace(require_tool: Callable[[str], str]) -> Strace:
    return Strace(require_tool("strace"))


def _tables(database: Path) -> set[tuple[Any, ...]]:
    """Every table and index, with the statement that makes it."""
    connection = raw(database)
    try:
        return set(connection.execute("SELECT name, sql FROM sqlite_schema").fetchall())
    finally:
        connection.close()


@pytest.mark.req("L14")
@pytest.mark.parametrize(("old", "new"), STEPS)
def test_a_killed_step(old: int, new: int, tmp_path: Path, strace: Strace, long_run: bool) -> None:
    base = tmp_path / "base.db"
    known = fill(base, count=60)
    processes.finish(*LATER, base, old)
    done = copy_database(base, tmp_path / "done.db")
    processes.finish(*LATER, done, new)
    shapes = {old: _tables(base), new: _tables(done)}

    def strike(call: str, number: int) -> Told:
        return strace.kill(call, number, *LATER, copy_database(base, tmp_path / f"{call}{number}.db"), new)

    calls = strace.calls(tmp_path / "log", *LATER, copy_database(base, tmp_path / "traced.db"), new)
    totals = Counter(call for call, _ in calls if call in processes.WRITES)
    hits = 0
    for call, number, told in processes.sweep(totals, strike, every=long_run, points=5):
        note = f"{old} to {new}: {call} {number}"
        database = tmp_path / f"{call}{number}.db"
        reached = schema_of(database)
        assert reached in (old, new), note
        assert reached == new or not told.of("migrated"), note
        assert _tables(database) == shapes[reached], note
        assert_sound(database, known, note=note)
        assert schema_of(database) == 2, note
        hits += told.killed
    assert hits > 0


@pytest.mark.req("L14")
def test_a_killed_opening_leaves_a_whole_copy_of_the_older_file_or_none(
    tmp_path: Path, strace: Strace, long_run: bool
) -> None:
    old = 1
    base = tmp_path / "base.db"
    known = fill(base, count=60)
    processes.finish(*LATER, base, old)

    def strike(call: str, number: int) -> Told:
        folder = tmp_path / f"{call}{number}"
        folder.mkdir()
        return strace.kill(call, number, "later", "checkpoint", copy_database(base, folder / "memory.db"), "")

    calls = strace.calls(tmp_path / "log", "later", "checkpoint", copy_database(base, tmp_path / "traced.db"), "")
    totals = Counter(call for call, _ in calls if call in processes.WRITES)
    last = ("pwrite64", totals["pwrite64"])  # the copy is whole by then
    copied = 0
    for call, number, told in chain(
        processes.sweep(totals - Counter([last[0]]), strike, every=long_run, points=5), [(*last, strike(*last))]
    ):
        note = f"{call} {number}"
        database = tmp_path / f"{call}{number}" / "memory.db"
        copy = database.with_name(f"memory.db.schema-{old}.bak")
        assert copy.exists() or schema_of(database) == old or not told.killed, note
        if copy.exists():
            copied += 1
            assert schema_of(copy) == old, note
            assert_sound(copy_database(copy, database.with_name("restored.db")), known, note=note)
        assert_sound(database, known, note=note)
        assert copy.exists(), note
        assert copy.stat().st_mode & 0o077 == 0, note
        assert not list(database.parent.glob("memory.db*.part")), note
    assert copied > 0


@pytest.mark.req("L14")
def test_many_processes_take_the_same_step(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database)
    processes.finish(*LATER, database, 1)
    children = [
        Fork.start(Path(mkdtemp(dir=tmp_path)), "later", "add_some", database, f"child{number}", 2)
        for number in range(5)
    ]
    for told in [child.told() for child in children]:
        assert told.returncode == 0, told.errors
        known |= told.added
    assert_sound(database, known)
