"""What the log says, what it never says, and that nothing is printed by default."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

import recollect
from recollect import Memories, logs
from recollect.engine import embedding
from recollect.errors import StoreBusy, StoreClosed, StoreCorrupt
from recollect.events import Event, MemoryStored
from recollect.stores.ram import RamStore
from recollect.testing import FaultyStore
from tests.unit.stand_ins import Opener, Switched
from tests.unit.workload import PLANTED, everything

LOG = logging.getLogger("recollect")


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Everything that an application gets that attached a JsonFormatter and asked for DEBUG."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    yield written
    LOG.removeHandler(handler)
    LOG.setLevel(before)


def parsed(lines: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


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
    with recollect.open("ram:", embedder=None) as memories:
        view = memories.view(agent="debugger", user="ada", session="monday")
        view.add("Likes tea", layer="user")
        view.search("tea")
        with pytest.raises(recollect.errors.NotFound):
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
    with recollect.open("ram:", embedder=None) as memories:
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
    memories = recollect.open(store=store, embedder=None)
    view = memories.view(user="ada")
    for error in (StoreBusy("busy"), StoreCorrupt("bad")):
        store.fail("count", error)
        with pytest.raises(type(error)):
            view.count()
    memories.close()
    with pytest.raises(StoreClosed):
        view.count()
    assert [(line["level"], line["message"]) for line in parsed(lines)] == [
        ("WARN", "View.count failed: STORE_BUSY"),
        ("ERROR", "View.count failed: STORE_CORRUPT"),
    ]


@pytest.mark.req("J13")
def test_a_compaction_is_told_with_its_sizes(lines: io.StringIO, memories: Memories) -> None:
    session = memories.view(user="ada").sessions.create("monday")
    session.view.forget(session.view.add(PLANTED).id)
    report = session.compact(purge=True)
    [line] = [one for one in parsed(lines) if one["level"] == "INFO"]
    assert (line["component"], line["session_id"]) == ("Session", "monday")
    assert line["metadata"] == {
        "operation": "compact",
        "archived": 0,
        "erased": 1,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
    }
    assert PLANTED not in lines.getvalue()


def test_an_embedder_that_is_down_is_told_once_and_when_it_is_back(lines: io.StringIO, opener: Opener) -> None:
    LOG.setLevel(logging.INFO)
    embedder = Switched()
    memories = opener(embedder=embedder)
    view = memories.view(user="ada")
    for error in (ConnectionError("refused"), None, recollect.errors.RateLimited("wait")):
        embedder.error = error
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


@pytest.mark.parametrize(
    "error",
    [
        Demanding(1, 2),
        ConnectionError(111, PLANTED),
        ExceptionGroup(PLANTED, [ValueError(PLANTED)]),
        UnicodeDecodeError("utf-8", PLANTED.encode(), 0, 1, PLANTED),
        recollect.errors.InvalidInput(PLANTED, details={PLANTED: PLANTED}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_handler_raises_is_told_without_its_words(
    lines: io.StringIO, memories: Memories, error: Exception
) -> None:
    def refuse(event: object) -> None:
        raise error

    memories.on(Event, refuse)
    assert memories.view(user="ada").add("Likes tea").version == 1
    [line] = [line for line in parsed(lines) if line["level"] == "ERROR"]
    assert line["metadata"] == {"error": type(error).__name__, "event": "MemoryStored"}
    assert str(line["stack"]).splitlines()[-1].endswith(type(error).__name__)
    assert PLANTED not in lines.getvalue()


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


@pytest.mark.req("J13")
def test_nothing_is_printed_by_default() -> None:
    script = (
        "import recollect, recollect.events\n"
        "memories = recollect.open('ram:', embedder=None)\n"
        "memories.on(recollect.events.Event, lambda event: 1 / 0)\n"
        "memories.view(user='ada').add('Likes tea')\n"
        "assert memories.health().components['handlers'] == '1 calls failed'"
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
