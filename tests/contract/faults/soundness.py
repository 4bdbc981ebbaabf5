"""What must hold after any fault: nothing acknowledged is lost or there twice, and the file agrees with itself."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import apsw

import wellkept
from tests.contract.faults.script import BATCH, content_of, new, view_of, word_of
from wellkept import View

SIDES = ("", "-wal", "-journal")
"""What a database consists of after a crash. The -shm file is rebuilt from these."""


def everything(view: View) -> list[wellkept.Memory]:
    """All memories, page by page, the oldest first."""
    found: list[wellkept.Memory] = []
    cursor = None
    while True:
        page = view.list(limit=100, cursor=cursor, sort_by="oldest")
        found.extend(page.memories)
        if (cursor := page.next_cursor) is None:
            return found


def assert_sound(
    database: Path | str,
    acknowledged: Mapping[str, str],
    *,
    erased: Collection[str] = (),
    note: object = "",
    seen: Callable[[wellkept.Memories], View] = view_of,
) -> list[wellkept.Memory]:
    """Open the file as the next process would, and look at all of it; then write to it."""
    with wellkept.open(database, embedder=None) as memories:
        view = seen(memories)
        diagnosis = memories.doctor()
        assert diagnosis.findings == (), f"{note}: {diagnosis.findings}"
        found = everything(view)
        by_key = Counter(memory.key for memory in found)
        assert max(by_key.values(), default=1) == 1, note
        assert len({memory.id for memory in found}) == len(found), note
        ids = {memory.key: memory.id for memory in found}
        lost = {key for key, id in acknowledged.items() if ids.get(key) != id} - set(erased)
        assert not lost, f"{note}: lost {sorted(lost)[:5]}"
        wrong = [memory.key for memory in found if memory.content != content_of(memory.key or "")]
        assert not wrong, f"{note}: other contents under {wrong[:5]}"
        for memory in found[-3:]:
            assert [hit.memory.id for hit in view.search(word_of(memory.key or ""))] == [memory.id], note
        _assert_whole_batches({*ids, *erased}, note)
        _assert_feed(view, found, note)
        # The same again is the same memory; something new is one more.
        for memory in found[-1:]:
            again = view.add_many([new(memory.key or "")])[0]
            assert again.id == memory.id, note
    return found


def _assert_whole_batches(keys: Collection[str | None], note: object) -> None:
    batches = Counter(match[1] for key in keys if (match := re.fullmatch(r"(.*/batch)/\d+", key or "")))
    assert set(batches.values()) <= {BATCH}, f"{note}: half a batch is there"


def _assert_feed(view: View, found: list[wellkept.Memory], note: object) -> None:
    """The feed tells of every version once, those of a memory in their order, and the newest is the memory."""
    after = None
    newest: dict[str, int] = {}
    stamps: set[str] = set()
    while versions := view.changes(after=after, limit=1_000):
        for version in versions:
            assert version.stamp not in stamps, note
            assert version.version > newest.get(version.memory_id, 0), note
            stamps.add(version.stamp)
            newest[version.memory_id] = version.version
        after = versions.next
    assert all(newest[memory.id] == memory.version for memory in found), note


def copy_database(source: Path, target: Path) -> Path:
    """Copy a database as a crash would leave it: with its logs, if there are any."""
    for side in SIDES:
        part = source.with_name(source.name + side)
        if part.exists():
            shutil.copy(part, target.with_name(target.name + side))
    return target


def raw(database: Path) -> apsw.Connection:
    """The file as SQLite sees it, for looking at it or damaging it."""
    return apsw.Connection(str(database))


def bytes_of(database: Path) -> bytes:
    """All bytes that the database has on the disk."""
    parts = [database.with_name(database.name + side) for side in SIDES]
    return b"".join(part.read_bytes() for part in parts if part.exists())


def fill(database: Path | str, prefix: str = "base", count: int = 12) -> dict[str, str]:
    """Make a database with some memories in it; returns their ids by key."""
    with wellkept.open(database, embedder=None) as memories:
        added = view_of(memories).add_many(new(f"{prefix}/{number}") for number in range(count))
    return {memory.key or "": memory.id for memory in added}
