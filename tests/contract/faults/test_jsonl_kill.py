"""kill -9 of a process that writes plain files, and disks that fail under it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import wellkept
from tests.contract.faults import processes, script
from tests.contract.faults.processes import Strace, Told
from tests.contract.faults.script import view_of
from tests.contract.faults.soundness import assert_sound, fill

WRITES = ("write", "fdatasync", "fsync", "ftruncate", "renameat", "unlinkat", "mkdirat")
"""Every system call with which the store changes a file, its length, its name or what is safe on the disk."""


@pytest.fixture
def strace(require_tool: Callable[[str], str]) -> Strace:
    return Strace(require_tool("strace"))


def url(folder: Path) -> str:
    return f"jsonl:{folder}"


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.req("J1", "J3", "J10", "J11", "N1")
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path: Path, long_run: bool) -> None:
    database = url(tmp_path / "memory")
    acknowledged: dict[str, str] = {}
    for number in range(100 if long_run else 8):
        # The kill may come at any moment between two acknowledgements.
        lines, pause_s = random.randint(1, 25), random.uniform(0, 0.003)
        told = processes.kill_after(lines, pause_s, "add_forever", database, f"round{number}")
        assert told.killed, told.errors
        acknowledged |= told.added
        assert_sound(database, acknowledged, note=f"round {number}")
    assert acknowledged


@pytest.mark.req("J1", "J8", "J9", "J10", "N1")
@pytest.mark.timeout(3600)
def test_killed_among_erasures_and_compactions(tmp_path: Path, long_run: bool) -> None:
    """Nothing acknowledged is lost, nothing is there twice, and what was erased is in no file any more."""
    told = Counter[str]()
    acknowledged: dict[str, str] = {}
    going: set[str] = set()
    for number in range(200 if long_run else 6):
        folder = tmp_path / f"memory{number // 25}"  # compacting a session takes longer the larger it is
        if number % 25 == 0:
            acknowledged.clear()
            going.clear()
        # Between two acknowledgements, a compaction takes longest.
        lines, pause_s = random.randint(1, 40), random.uniform(0, 0.02)
        this = processes.kill_after(lines, pause_s, "churn", url(folder), f"round{number}")
        assert this.killed, this.errors
        told.update(line["did"] for line in this.lines)
        acknowledged |= this.added
        going |= {line["key"] for did in ("erasing", "forgetting") for line in this.of(did)}
        found = assert_sound(
            url(folder),
            acknowledged,
            erased=going,
            note=f"round {number}",
            seen=lambda memories: script.session_of(memories).view,
        )
        keys, left = {memory.key for memory in found}, bytes_of(folder)
        gone = {line["key"] for line in this.of("erased")}
        assert not gone & keys, number
        gone |= {line["key"] for line in this.of("erasing")} - keys  # erased, though nobody was told
        assert [key for key in gone if script.content_of(key).encode() in left] == [], number
        going -= keys  # the kill came first: from now on they must stay
    assert told["erased"]
    print(f"{told['ready']} kills, and what was acknowledged: {dict(told)}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that is struck at each of its writing system calls."""

    what: str
    prepare: Callable[[str], dict[str, str]] = fill


def _nothing(database: str) -> dict[str, str]:
    return {}


SCENARIOS = {
    "creation": Scenario("add_some", _nothing),
    "adds": Scenario("add_some"),
    "batch": Scenario("add_batch"),
    "permanent forget": Scenario("erase"),
}


@pytest.mark.req("J1", "J10", "J11", "N1")
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_at_a_system_call(name: str, tmp_path: Path, strace: Strace, long_run: bool) -> None:
    scenario, base = SCENARIOS[name], tmp_path / "base"
    known = scenario.prepare(url(base))

    def copy(to: str) -> Path:
        if base.exists():
            shutil.copytree(base, tmp_path / to)
        return tmp_path / to

    def strike(call: str, number: int) -> Told:
        return strace.kill(call, number, scenario.what, url(copy(f"{call}{number}")), "new")

    calls = strace.calls(tmp_path / "log", scenario.what, url(copy("traced")), "new", traced=WRITES)
    totals = Counter(call for call, _ in calls)
    assert totals["write"] > 1
    hits = 0
    for call, number, told in processes.sweep(totals, strike, every=long_run, points=8):
        _check(tmp_path / f"{call}{number}", known, told, f"{name}: {call} {number}")
        hits += told.killed
    assert hits > 0


def _check(folder: Path, known: dict[str, str], told: Told, note: str) -> None:
    erasing = [line["key"] for line in told.of("erasing")]
    found = assert_sound(url(folder), known | told.added, erased=erasing, note=note)
    keys = {memory.key for memory in found}
    for line in told.of("erased"):
        assert line["key"] not in keys, note
    for key in erasing:
        if key not in keys:  # erased is erased, whenever the kill came
            assert script.content_of(key).encode() not in bytes_of(folder), note
    more = fill(url(folder), "more", 2)
    assert_sound(url(folder), known | told.added | more, erased=erasing, note=note)
    shutil.rmtree(folder)


@pytest.mark.req("J10", "N1")
def test_what_is_acknowledged_was_forced_to_the_disk(tmp_path: Path, strace: Strace) -> None:
    """A kill proves nothing about fsync, so this looks at the order of the calls themselves."""
    fill(url(tmp_path / "memory"))
    calls = strace.calls(tmp_path / "log", "add_some", url(tmp_path / "memory"), "new", 5, traced=WRITES)
    unsafe: set[str] = set()
    acknowledged = 0
    for call, file in calls:
        if call in ("fdatasync", "fsync"):
            unsafe.discard(file)
        elif call == "write" and file.startswith("pipe:"):
            assert not unsafe, f"acknowledged before {unsafe} was safe"
            acknowledged += 1
        elif call == "write" and file.endswith(".jsonl") and "/derived/" not in file:
            unsafe.add(file)
    assert acknowledged == 5


# --- disks that fail ------------------------------------------------------------------------------


def _repeat_at_once(folder: Path) -> None:
    """The store tries a failed write again; nobody needs to wait for a disk that stays broken."""
    config = folder / "config.json"
    text = config.read_text()
    assert '"retry_backoff_ms": 100' in text
    config.write_text(text.replace('"retry_backoff_ms": 100', '"retry_backoff_ms": 1'))


@pytest.mark.req("J10")
def test_a_disk_that_fails_once_is_tried_again(tmp_path: Path, strace: Strace) -> None:
    known = fill(url(tmp_path / "memory"))
    told = strace.fail("fdatasync", "3", "add_stubbornly", url(tmp_path / "memory"), "new")
    assert told.returncode == 0, told.errors
    assert told.of("failed") == []
    assert len(told.added) == 6
    assert_sound(url(tmp_path / "memory"), known | told.added)


@pytest.mark.req("J10")
@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_a_disk_that_stays_broken_acknowledges_nothing_more(tmp_path: Path, strace: Strace, first: int) -> None:
    database = url(tmp_path / "memory")
    known = fill(database)
    _repeat_at_once(tmp_path / "memory")
    told = strace.fail("fdatasync", f"{first}+", "add_stubbornly", database, "new")
    assert told.returncode == 0, told.errors
    assert len(told.added) < first
    assert told.of("failed")
    for line in told.of("failed"):
        assert line["code"] == "PROVIDER_ERROR"
        assert line["hint"]
        assert line["details"]["file"]
    assert_sound(database, known | told.added)
    again = processes.finish("add_stubbornly", database, "new")
    found = assert_sound(database, known | told.added | again.added)
    assert len(found) == len(known) + 6


@pytest.mark.req("J8", "J10")
def test_erasing_on_a_broken_disk(tmp_path: Path, strace: Strace, long_run: bool) -> None:
    """Whether the erasure is kept or not, the caller is told the truth, and no other memory is touched."""
    base = tmp_path / "base"
    known = fill(url(base))
    _repeat_at_once(base)
    shutil.copytree(base, tmp_path / "traced")
    syncs = ("fdatasync", "fsync", "renameat")
    totals = Counter(
        call for call, _ in strace.calls(tmp_path / "log", "erase", url(tmp_path / "traced"), "", traced=syncs)
    )

    def strike(call: str, number: int) -> Told:
        shutil.copytree(base, tmp_path / f"{call}{number}")
        return strace.fail(call, f"{number}+", "erase", url(tmp_path / f"{call}{number}"), "")

    for call, number, told in processes.sweep(totals, strike, every=long_run, points=6):
        note = f"{call} {number} failed"
        assert told.returncode == 0, told.errors
        key = told.of("erasing")[0]["key"]
        found = assert_sound(url(tmp_path / f"{call}{number}"), known, erased=[key], note=note)
        gone = key not in {memory.key for memory in found}
        assert gone or not told.of("erased"), note
        for line in told.of("failed"):
            assert gone is ("was erased" in line["message"]), (note, line)
        if gone:
            content = script.content_of(key).encode()
            with wellkept.open(url(tmp_path / f"{call}{number}"), embedder=None) as memories:
                view_of(memories).add("another")
            assert content not in bytes_of(tmp_path / f"{call}{number}"), note
