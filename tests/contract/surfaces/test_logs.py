"""What the log says, what it never says, and that nothing is printed by default."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

import wellkept
from tests.support.log_lines import LOG, json_lines, parsed
from tests.support.stand_ins import ONCE, HandClock, Opener, Switched
from tests.support.workload import PLANTED, everything
from wellkept import Memories, logs
from wellkept.entitlements import Plan
from wellkept.errors import (
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
)
from wellkept.events import MemoryStored
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    with json_lines() as written:
        yield written


@pytest.mark.req("J13")
def test_no_log_line_holds_content_keys_or_queries(lines: io.StringIO) -> None:
    plain = io.StringIO()
    usual = logging.StreamHandler(plain)
    usual.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    records: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return True

    usual.addFilter(keep)
    LOG.addHandler(usual)
    everything(lambda memories: None)
    LOG.removeHandler(usual)
    assert len(parsed(lines)) == len(records) > 150
    assert {record.levelname for record in records} == {"DEBUG", "INFO", "WARNING", "ERROR"}
    assert any(record.exc_info for record in records), "handlers failed, and their stacks are told"
    for text in (lines.getvalue(), plain.getvalue(), "".join(repr(vars(record)) for record in records)):
        assert PLANTED not in text


@pytest.mark.req("J13")
def test_each_operation_is_one_line_of_json(lines: io.StringIO) -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(agent="debugger", user="ada", session="monday")
        view.add("Likes tea", layer="user")
        view.search("tea")
        with pytest.raises(wellkept.errors.NotFound):
            view.update("missing", title="x")
    opened, added, searched, failed = parsed(lines)
    assert opened["message"].startswith("Memories.view took ")  # type: ignore[attr-defined]
    assert list(added) == ["timestamp", "level", "component", "session_id", "agent_id", "message", "metadata"]
    assert (added["level"], added["component"]) == ("DEBUG", "View")
    assert (added["session_id"], added["agent_id"]) == ("monday", "debugger")
    assert str(added["timestamp"]).endswith("Z")
    assert len(str(added["timestamp"])) == len("2026-01-10T14:30:00.000Z")
    told = added["metadata"]
    assert isinstance(told, dict)
    assert told.pop("duration_ms") > 0
    assert told == {"operation": "add", "layer": "user"}
    assert searched["metadata"]["count"] == 1  # type: ignore[index]
    assert failed["metadata"]["code"] == "MEMORY_NOT_FOUND"  # type: ignore[index]


def test_a_database_that_was_opened_before_can_be_followed(lines: io.StringIO) -> None:
    LOG.setLevel(logging.WARNING)
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(user="ada")
        stop = memories.watch(logs.operation)
        view.count()
        assert parsed(lines) == []
        LOG.setLevel(logging.DEBUG)
        view.count()
        memories.watch(logs.operation)
        view.count()
        assert len(parsed(lines)) == 2
        stop()
        view.count()
        assert len(parsed(lines)) == 2


def test_trouble_with_the_store_is_told_at_its_level(lines: io.StringIO) -> None:
    LOG.setLevel(logging.INFO)
    store = FaultyStore(RamStore())
    memories = wellkept.open(store=store, embedder=None, retry=ONCE)
    view = memories.view(user="ada")
    for error in (StoreBusy("busy"), StoreCorrupt("bad"), StoreError("the disk failed"), StoreFull("full")):
        store.fail("count", error)
        with pytest.raises(type(error)):
            view.count()
    memories.close()
    with pytest.raises(StoreClosed):
        view.count()
    assert [(line["level"], line["message"]) for line in parsed(lines)] == [
        ("WARN", "View.count failed: STORE_BUSY"),
        ("ERROR", "View.count failed: STORE_CORRUPT"),
        ("ERROR", "View.count failed: PROVIDER_ERROR"),
        ("ERROR", "View.count failed: STORE_FULL"),
    ]


@pytest.mark.req("J13")
def test_a_compaction_is_told_with_its_sizes(lines: io.StringIO, memories: Memories) -> None:
    session = memories.view(user="ada").sessions.create("monday")
    session.view.forget(session.view.add(PLANTED).id)
    report = session.compact(purge=True)
    begun, ended = [one for one in parsed(lines) if one["level"] == "INFO"][-2:]
    assert {(line["component"], line["session_id"]) for line in (begun, ended)} == {("Session", "monday")}
    assert begun["metadata"] == {"operation": "compact", "automatic": False}
    assert ended["metadata"].pop("duration_ms") > 0  # type: ignore[attr-defined]
    assert ended["metadata"] == {
        "operation": "compact",
        "archived": 0,
        "erased": 1,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
        "automatic": False,
    }
    assert PLANTED not in lines.getvalue()


def test_an_embedder_that_is_down_is_told_once_and_when_it_is_back(lines: io.StringIO, opener: Opener) -> None:
    LOG.setLevel(logging.INFO)
    embedder = Switched()
    clock = HandClock()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    for error in (ConnectionError("refused"), None, wellkept.errors.RateLimited("wait")):
        embedder.error = error
        clock.forward(minutes=5)
        view.add("Likes tea")
        view.search("tea")
    assert [(line["level"], line["metadata"]) for line in parsed(lines)] == [
        ("WARN", {"operation": "embed", "error": "ConnectionError", "embedder": "hashing-16"}),
        ("INFO", {"embedder": "hashing-16"}),
        (
            "WARN",
            {"operation": "embed", "code": "RATE_LIMITED", "error": "RateLimited", "embedder": "hashing-16"},
        ),
    ]


def test_a_failing_handler_is_told_with_its_place_but_not_its_words(lines: io.StringIO, memories: Memories) -> None:
    def refuse(event: object) -> None:
        raise ValueError("the secret word")

    memories.on(MemoryStored, refuse)
    memories.view(user="ada").add("Likes tea")
    [line] = [line for line in parsed(lines) if line["level"] == "ERROR"]
    assert line["component"] == "EventBus"
    assert line["metadata"] == {"error": "ValueError", "event": "MemoryStored"}
    assert "in refuse" in str(line["stack"])
    assert "secret word" not in str(line["stack"]).replace('raise ValueError("the secret word")', "")


class Demanding(Exception):
    """Can be neither made nor shown without more."""

    def __new__(cls, one: int, two: int) -> "Demanding":
        return super().__new__(cls)

    def __str__(self) -> str:
        return str(self.missing)  # type: ignore[attr-defined]  # that is the point


def test_whatever_a_handler_raises_is_told_without_its_words(lines: io.StringIO, memories: Memories) -> None:
    errors = [
        Demanding(1, 2),
        ConnectionError(111, PLANTED),
        ExceptionGroup(PLANTED, [ValueError(PLANTED)]),
        UnicodeDecodeError("utf-8", PLANTED.encode(), 0, 1, PLANTED),
        wellkept.errors.InvalidInput(PLANTED, details={PLANTED: PLANTED}),
    ]
    waiting = iter(errors)

    def refuse(event: object) -> None:
        raise next(waiting)

    memories.on(MemoryStored, refuse)
    for _ in errors:
        assert memories.view(user="ada").add("Likes tea", duplicates="keep").version == 1
    failures = [line for line in parsed(lines) if line["level"] == "ERROR"]
    names = [type(error).__name__ for error in errors]
    assert [line["metadata"] for line in failures] == [{"error": name, "event": "MemoryStored"} for name in names]
    ends = [str(line["stack"]).splitlines()[-1] for line in failures]
    assert [end for end, name in zip(ends, names, strict=True) if not end.endswith(name)] == []
    assert PLANTED not in lines.getvalue()


@pytest.mark.req("L12")
def test_each_percent_of_a_quota_is_told_once(lines: io.StringIO) -> None:
    plan = Plan(name="Small", features=["long_term_memory"], limit_bytes=100_000)
    with wellkept.open("ram:", embedder=None, plan=plan) as memories:
        view = memories.view(user="ada")
        view.add("x" * 82_400)
        for number in range(5):
            view.add(f"{number}")
        view.add("x" * 1_000)
    told = [line["metadata"] for line in parsed(lines) if line["level"] == "WARN"]
    assert [one["percent"] for one in told if isinstance(one, dict)] == [82, 83]
    assert PLANTED not in lines.getvalue()


def test_a_failure_is_told_once_where_operations_call_others(lines: io.StringIO) -> None:
    LOG.setLevel(logging.WARNING)
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        store.fail("select", StoreCorrupt("bad"))
        with pytest.raises(StoreCorrupt):
            session.forget(topic="security")
    assert [line["message"] for line in parsed(lines)] == ["View.forget_many failed: STORE_CORRUPT"]


@pytest.mark.req("J13")
def test_nothing_is_printed_by_default() -> None:
    script = (
        "import wellkept, wellkept.events\n"
        "memories = wellkept.open('ram:', embedder=None)\n"
        "memories.on(wellkept.events.Event, lambda event: 1 / 0)\n"
        "memories.view(user='ada').add('Likes tea')\n"
        "assert memories.health().components['handlers'].message == '1 calls failed'"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_records_of_others_are_written_too() -> None:
    try:
        raise KeyError("x")
    except KeyError:
        record = logging.LogRecord("other", logging.ERROR, "", 0, "%s went", ("it",), sys.exc_info())
    line = json.loads(logs.JsonFormatter().format(record))
    assert (line["component"], line["message"], line["level"]) == ("other", "it went", "ERROR")
    assert "KeyError: 'x'" in line["stack"]
