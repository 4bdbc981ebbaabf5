"""Log lines about what takes long or is locked: the tests shorten how long that is, and hold the lock."""

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import wellkept
from tests.support.log_lines import LOG, json_lines, parsed
from tests.support.stand_ins import Opener, Switched
from tests.unit.lock_holders import AT_ONCE, other_process
from wellkept.engine import embedding
from wellkept.entitlements import Plan
from wellkept.errors import InvalidInput, LockTimeout, QuotaExceeded, StoreFull
from wellkept.stores.jsonl.locks import Lock
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    with json_lines() as written:
        yield written


def test_a_slow_embedder_is_told(lines: io.StringIO, opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.setLevel(logging.INFO)
    view = opener(embedder=Switched()).view(user="ada")
    view.add("quick")
    assert parsed(lines) == []
    monkeypatch.setattr(embedding, "_SLOW_S", 0.0)
    view.add_many(["one", "two"])
    [line] = parsed(lines)
    assert (line["level"], line["component"]) == ("WARN", "Embedder")
    assert line["metadata"].pop("duration_ms") > 0  # type: ignore[attr-defined]
    assert line["metadata"] == {"operation": "embed", "embedder": "hashing-16", "batch": 2}


# The lines of the sources' tables, by source and section, with the level of each and how it begins here. Lines at DEBUG
# that tell of one operation are those of test_each_operation_is_one_line_of_json.
SOURCE_LINES = [
    # long-term memory, 7.1
    ("INFO", "Long-term memory initialized for agent", "long-term memory of agent debugger is ready"),
    ("INFO", "Memory entry forgotten for agent, permanent={Permanent}", "memory ID was forgotten, permanent=False"),
    ("INFO", "Memory entry forgotten for agent, permanent={Permanent}", "memory ID was forgotten, permanent=True"),
    ("WARN", "Storage quota at {Percent}% for agent", "storage quota at 8"),
    ("WARN", "Embedding generation slow: {Time}ms for entry", "embedder hashing-16 took "),
    ("ERROR", "Failed to store memory entry: {ErrorMessage}", "View.add failed: QUOTA_EXCEEDED"),
    # working memory, 7.1
    ("INFO", "Working memory initialized for agent", "working memory of agent debugger is ready"),
    (
        "INFO",
        "Working memory cleared for agent, removed {Count} entries",
        "working memory of agent debugger was cleared: 1 ",
    ),
    ("WARN", "Working memory scope already disposed, operation ignored", "scope ID was disposed before; ignored"),
    ("ERROR", "Failed to serialize value for key: {ErrorMessage}", "a value of type object cannot be stored"),
    # session store, 15.2
    ("DEBUG", "Lock acquisition", "lock memory/lock was acquired after "),
    ("DEBUG", "Lock release", "lock memory/lock was released after "),
    ("INFO", "Session lifecycle", "session monday was created"),
    ("INFO", "Session lifecycle", "session monday was closed"),
    ("INFO", "Session lifecycle", "session monday was opened again"),
    ("INFO", "Session lifecycle", "session monday was deleted"),
    ("INFO", "Session lifecycle", "session monday was restored"),
    ("INFO", "Session lifecycle", "session monday was erased"),
    ("INFO", "Compaction start", "session monday is being compacted"),
    ("INFO", "Compaction end", "session monday was compacted: 1 "),
    ("WARN", "Lock timeout", "lock memory/lock was not acquired within 0 ms"),
    ("WARN", "Lock timeout", "View.add failed: CONCURRENCY"),
    ("WARN", "Approaching size limit", "session monday approaches its limit: "),
    ("ERROR", "Corruption detected", "2 damaged lines are skipped"),
    ("ERROR", "I/O failures", "View.add failed: STORE_FULL"),
]


@pytest.mark.req("J13", "J4")
def test_the_lines_of_the_sources_have_their_levels(
    lines: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long_term_lines(monkeypatch)
    _working_lines()
    _session_lines()
    _store_lines(tmp_path / "memory")
    said = [(line["level"], str(line["message"])) for line in parsed(lines)]
    said = [(level, re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", message)) for level, message in said]
    missing = [
        (level, source)
        for level, source, begins in SOURCE_LINES
        if not any(found == level and message.startswith(begins) for found, message in said)
    ]
    assert missing == []


def _long_term_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(name="Small", features=["long_term_memory"], limit_bytes=1_000)
    with wellkept.open("ram:", embedder=Switched(), plan=plan) as memories, monkeypatch.context() as patched:
        view = memories.agent("debugger").long_term
        kept = view.add("x" * 600)
        patched.setattr(embedding, "_SLOW_S", 0.0)
        view.add("y" * 100)
        with pytest.raises(QuotaExceeded):
            view.add("z" * 1_000)
        view.forget(kept.id)
        view.forget(kept.id, permanent=True)


def _working_lines() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        working = memories.agent("debugger").working
        with pytest.raises(InvalidInput):
            working.set("key", object())
        with working.create_scope("task") as scope:
            scope.dispose()
            scope.dispose()
        working.set("key", 1)
        working.clear()


def _session_lines() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        session = sessions.create("monday", config={"limit_bytes": 1_000})
        session.view.add("x" * 600, importance=0)
        session.view.add("y" * 600)
        session.close()
        session.reopen()
        sessions.delete("monday")
        sessions.restore("monday")
        sessions.delete("monday", permanent=True)


def _store_lines(root: Path) -> None:
    url = f"jsonl:{root}"
    with wellkept.open(url, embedder=None) as memories:
        memories.view(user="ada").add_many(["one", "two"])
    [file] = root.rglob("memory.jsonl")
    first, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(first.replace(b"one", b"0ne") + b"\nnonsense\n" + rest)
    with wellkept.open(url, embedder=None) as memories:
        memories.view(user="ada").count()
    with (
        other_process(root / "lock", "exclusive"),
        pytest.raises(LockTimeout),
        Lock(root / "lock", AT_ONCE).shared("read"),
    ):
        pass
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        for error in (LockTimeout("held"), StoreFull("full")):
            store.fail("append", error)
            with pytest.raises(type(error)):
                memories.view(user="ada").add("Likes tea")
