"""A disk that cannot make things safe: fsync fails with EIO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.faults import processes
from tests.contract.faults.processes import Strace, Told
from tests.contract.faults.soundness import assert_sound, copy_database, fill

SYNCS = ("fdatasync", "fsync")


@pytest.fixture
def strace(require_tool: Callable[[str], str]) -> Strace:
    return Strace(require_tool("strace"))


def _syncs(strace: Strace, folder: Path, base: Path, what: str) -> Counter[str]:
    """How often each of the calls that make things safe is made."""
    calls = strace.calls(folder / "log", what, copy_database(base, folder / "traced.db"), "new")
    totals = Counter(call for call, _ in calls if call in SYNCS)
    assert totals.total() > 0
    return totals


def _assert_loud(line: dict[str, Any]) -> None:
    """An error of ours that names the file, says what to do, and may be retried."""
    assert "StoreError" in line["kind"], line
    assert line["code"], line
    assert line["hint"], line
    assert line["details"]["file"].endswith(".db"), line


@pytest.mark.req("L1", "H10", "N1")
def test_a_write_that_is_not_safe_is_not_acknowledged(tmp_path: Path, strace: Strace, long_run: bool) -> None:
    base = tmp_path / "base.db"
    known = fill(base)
    totals = _syncs(strace, tmp_path, base, "add_stubbornly")

    def strike(call: str, number: int) -> Told:
        database = copy_database(base, tmp_path / f"{call}{number}.db")
        return strace.fail(call, str(number), "add_stubbornly", database, "new")

    failures = 0
    for call, number, told in processes.sweep(totals, strike, every=long_run, points=4):
        note = f"{call} {number} failed"
        assert told.returncode == 0, told.errors
        for line in told.of("failed"):
            _assert_loud(line)
            assert line["code"] == "PROVIDER_ERROR", line
        failures += len(told.of("failed"))
        # One error hits one write; the same process wrote it when it tried again.
        assert len(told.of("failed")) <= 1, note
        assert len(told.added) == 6, note
        database = tmp_path / f"{call}{number}.db"
        assert_sound(database, known | told.added, note=note)
        assert_sound(database, known | told.added | fill(database, "later", 2), note=note)
    assert failures > 0


@pytest.mark.req("L1", "H10", "N1")
@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_disk_that_stays_broken_acknowledges_nothing_more(tmp_path: Path, strace: Strace, first: int) -> None:
    database = tmp_path / "memory.db"
    known = fill(database)
    told = strace.fail("fdatasync", f"{first}+", "add_stubbornly", database, "new")
    assert told.returncode == 0, told.errors
    failed = told.of("failed")
    assert len({line["key"] for line in failed}) + len(told.added) >= 6
    assert len(told.added) < first
    for line in failed:
        _assert_loud(line)
    # A new process on a disk that works again: what was refused is there once or not at all.
    assert_sound(database, known | told.added)
    again = processes.finish("add_stubbornly", database, "new")
    assert len(again.added) == 6
    found = assert_sound(database, known | told.added | again.added)
    assert len(found) == len(known) + 6


@pytest.mark.req("L1", "H10")
def test_a_new_file_on_a_broken_disk(tmp_path: Path, strace: Strace, long_run: bool) -> None:
    totals = _syncs(strace, tmp_path, tmp_path / "nothing.db", "add_stubbornly")

    def strike(call: str, number: int) -> Told:
        return strace.fail(call, str(number), "add_stubbornly", tmp_path / f"{call}{number}.db", "new")

    for call, number, told in processes.sweep(totals, strike, every=long_run, points=4):
        assert told.returncode == 0, told.errors
        for line in told.of("failed"):
            _assert_loud(line)
        assert told.of("failed") or len(told.added) == 6
        database = tmp_path / f"{call}{number}.db"
        assert_sound(database, told.added | fill(database, "later", 2), note=f"{call} {number} failed")


@pytest.mark.req("L7")
def test_erasing_on_a_broken_disk(tmp_path: Path, strace: Strace, long_run: bool) -> None:
    """Whether the erasure is kept or not, the caller is told the truth, and no other memory is touched."""
    base = tmp_path / "base.db"
    known = fill(base)
    totals = _syncs(strace, tmp_path, base, "erase")

    def strike(call: str, number: int) -> Told:
        return strace.fail(call, str(number), "erase", copy_database(base, tmp_path / f"{call}{number}.db"), "")

    for call, number, told in processes.sweep(totals, strike, every=long_run, points=5):
        note = f"{call} {number} failed"
        assert told.returncode == 0, told.errors
        key = told.of("erasing")[0]["key"]
        for line in told.of("failed"):
            _assert_loud(line)
        found = assert_sound(tmp_path / f"{call}{number}.db", known, erased=[key], note=note)
        gone = key not in {memory.key for memory in found}
        if told.of("erased"):
            assert gone, note
        for line in told.of("failed"):
            assert gone is ("was erased" in line["message"]), (note, line)


@pytest.mark.req("L1", "L7")
def test_a_write_after_an_erasure_on_a_broken_disk(tmp_path: Path, strace: Strace, long_run: bool) -> None:
    """Emptying the log is tried again by the next write. If that fails once more, the write itself did not fail."""
    base = tmp_path / "base.db"
    known = fill(base)
    for first in range(1, 9) if long_run else (3, 4, 5):
        database = copy_database(base, tmp_path / f"from{first}.db")
        # Every second call fails: the commit is safe, the emptying is not, or the other way round.
        told = strace.fail("fdatasync", f"{first}+2", "erase_and_add", database, "new")
        assert told.returncode == 0, told.errors
        erased = [line["key"] for line in told.of("erasing")]
        assert erased
        assert [line["key"] for line in told.of("visible") if line["visible"]] == [], f"from {first}"
        assert_sound(database, known | told.added, erased=erased, note=f"from {first}")


def test_the_strikes_hit(tmp_path: Path, strace: Strace) -> None:
    """The tests above prove something only if the injected errors arrive."""
    database = tmp_path / "memory.db"
    fill(database)
    told = strace.fail("fdatasync", "2+", "add_stubbornly", database, "new")
    assert len(told.of("failed")) > 6
