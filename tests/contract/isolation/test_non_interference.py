"""What others keep changes nothing that a caller sees: no answer, score, order, error, event, metric or line of a log.

Two databases are equal but for 200 memories of somebody else, about the same things in the same words. Whatever a
caller does who may not see these, both must say the same.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import wellkept
from tests.contract.parity.test_scenario import STEPS
from tests.support.stand_ins import HandClock
from tests.support.terminal import environment
from wellkept import Filter, Memories, NewMemory, View, WellkeptError
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.events import Event
from wellkept.logs import METADATA
from wellkept.operations import VERBS, Caller, call
from wellkept.telemetry import instrument
from wellkept.types import Grant, Identity, Layer, LayerName, Need, Owner

LAYERS: tuple[LayerName, ...] = ("user", "agent", "project")
STORES = ("ram:", "sqlite:memory.db", "jsonl:memory")
OWN = Identity(user="bob", agent="debugger", session="monday", project="web")
OWNERS = (Owner(Layer.USER, ("bob",)), Owner(Layer.PROJECT, ("web",)))
FOREIGN = 200
AUDIT = "audit.jsonl"
WORDS = ("dark mode", "tabs and spaces", "tea in Paris", "Lives in Rome", "the nightly build", "OAuth for the login")
# Figures of the whole database, for those who run it: no caller is shown them.
WHOLE = re.compile(r"size|bytes|entries|sessions\.active|snapshots|agents\.memory\.longterm\.storage")

CALLS: dict[str, Callable[[View, str], Any]] = {
    "add": lambda view, id: view.add("Prefers dark mode in the morning", tags=["ui"], references=[id], dangling=True),
    "add seen": lambda view, id: view.add("Prefers tea", references=[id]),
    "add key": lambda view, _: view.add("Prefers green tea", key="k0", layer="user"),
    "add duplicate": lambda view, _: view.add(f"{WORDS[0]} number 3", layer="user", duplicates="refuse"),
    "add_many": lambda view, _: view.add_many(["Uses tabs", NewMemory(content="Lives in Oslo", layer="user")]),
    "add_messages": lambda view, _: view.add_messages([{"role": "user", "content": "I prefer dark mode.", "id": "1"}]),
    "put": lambda view, _: view.put("k1", "A value of bob", layer="user"),
    "position": lambda view, _: view.position() is not None,
    "point_to": lambda view, _: view.point_to("notes.md"),
    "refresh": lambda view, _: view.refresh(["notes.md"]),
    "get": lambda view, id: view.get(id, include_forgotten=True, include_vector=True),
    "get key": lambda view, _: view.get(key="k2"),
    "get_many": lambda view, id: view.get_many([id], include_forgotten=True),
    "list": lambda view, _: view.list(filter=Filter(include_forgotten=True), limit=100),
    "list page": lambda view, _: view.list(limit=2, sort_by="important"),
    "count": lambda view, _: view.count(filter={"tags": ["ui"]}),
    "search": lambda view, _: view.search("dark mode", explain=True, limit=20),
    "search rare": lambda view, _: view.search("Who lives in Rome or drinks tea in Paris?", explain=True, min_score=0),
    "search then": lambda view, _: view.search("the nightly build", as_of=view.position(), explain=True),
    "search relevance": lambda view, _: view.search("tabs and spaces", ranking="relevance", explain=True),
    "search references": lambda view, id: view.search("dark mode", filter={"references": [id], "max_depth": 3}),
    "update": lambda view, id: view.update(id, content="taken over"),
    "update stale": lambda view, id: view.update(id, title="taken over", if_version=7),
    "history": lambda view, id: view.history(id),
    "lineage": lambda view, id: view.lineage(id),
    "changes": lambda view, _: view.changes().versions,
    "stats": lambda view, _: view.stats(),
    "move": lambda view, id: view.move(id, layer="user"),
    "plan_quarantine": lambda view, id: view.plan_quarantine(ids=[id]).steps,
    "quarantine": lambda view, _: view.quarantine(author="ada").quarantined,
    "release": lambda view, id: view.release(id),
    "erase_quarantined": lambda view, id: view.erase_quarantined(id),
    "undoable": lambda view, _: [write.memory_ids for write in view.undoable()],
    "undo": lambda view, id: view.undo(id),
    "restore": lambda view, id: view.restore(id),
    "forget": lambda view, id: view.forget(id),
    "forget for good": lambda view, id: view.forget(id, permanent=True),
    "forget_many": lambda view, id: view.forget_many([id], dry_run=True),
    "forget_many matching": lambda view, _: view.forget_many(filter=Filter(tags=["ui"]), dry_run=True),
    "facts": lambda view, _: (view.facts.add("Bob", "lives in", "Rome"), view.facts.find(predicate="lives in")),
    "sessions": lambda view, _: (view.sessions.list(), view.sessions.search("dark mode", limit=5)),
    "session": lambda view, _: view.sessions.load("tuesday"),
}


@dataclass
class World:
    """A database, and whatever can be seen of it from outside."""

    memories: Memories
    seen: list[str]
    reader: InMemoryMetricReader
    folder: Path
    audited_before: int
    others: list[str]
    """Ids of memories of somebody else, where there are any."""

    def observe(self, name: str, ask: Callable[[], Any]) -> tuple[str, list[str]]:
        """What a call answers, or how it fails, and everything that is told about it elsewhere."""
        self.seen.clear()
        try:
            answer = repr(_shown(ask()))
        except WellkeptError as error:
            answer = repr((type(error).__name__, str(error), error.hint, error.retryable, dict(error.details)))
        return name, _normalised([text.replace(str(self.folder), "FOLDER") for text in (answer, *self.seen)])

    def afterwards(self) -> Iterator[tuple[str, Any]]:
        """The metrics and the audit log of all calls together."""
        yield "metrics", _figures(self.reader)
        lines = (self.folder / AUDIT).read_text(encoding="utf-8").splitlines()[self.audited_before :]
        for number, line in enumerate(lines):
            yield f"audit {number}", _normalised([repr({**json.loads(line), "id": 0})])


_NORMALISED = (
    (r"\b[0-9a-f]{18,}-[0-9a-f]{12}\.[0-9a-f]+\b", "STAMP"),
    (r"\b[\d.]+ ms\b", "X ms"),
    (r"\b(?=\d*[a-f])[0-9a-f]{12,64}\b", "HASH"),
    (r"datetime\.datetime\([^)]*\)|\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?", "TIME"),
    (r"(\w*(?:position|cursor|seq|announced|next|token|_ms|seconds|latency)\w*['\"]?[=:] ?)('[^']*'|[\d.e-]+)", r"\1X"),
)


def _normalised(texts: list[str]) -> list[str]:
    """Lines without what no two databases have in common: ids, times, positions, durations, numbers of the audit."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"#{len(numbers)}")

    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", number, "\n".join(texts))
    for pattern, name in _NORMALISED:
        text = re.sub(pattern, name, text)
    return text.splitlines()


def _shown(answer: object) -> object:
    """An answer with all that its own representation leaves out, such as contents and scores."""
    if is_dataclass(answer) and not isinstance(answer, type):
        return {field.name: _shown(getattr(answer, field.name)) for field in fields(answer)}
    if isinstance(answer, Mapping):
        return {name: _shown(value) for name, value in answer.items()}
    return [_shown(part) for part in answer] if isinstance(answer, list | tuple) else answer


def _figures(reader: InMemoryMetricReader) -> list[str]:
    """How often each thing was counted or measured, by its attributes."""
    metrics = reader.get_metrics_data()
    assert metrics is not None
    points = (
        (metric.name, sorted((point.attributes or {}).items()), getattr(point, "count", getattr(point, "value", None)))
        for resource in metrics.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if not WHOLE.search(metric.name)
        for point in metric.data.data_points
    )
    return sorted(map(repr, points))


@contextmanager
def opened(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, others: bool) -> Iterator[World]:
    """A database with bob's memories; with those of somebody else as well, or without them."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("notes.md").write_text("Use tabs.\n", encoding="utf-8")
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WELLKEPT_DB")
    clock, audit, reader, seen = HandClock(), folder / AUDIT, InMemoryMetricReader(), list[str]()
    settings = {"audit": {"file": str(audit)}}
    with (
        _heard(seen),
        wellkept.open(url, embedder=HashingEmbedder(32), clock=clock, settings=settings) as memories,
    ):
        bob = memories.view(user="bob", agent="debugger", project="web")
        for number, text in enumerate(WORDS):
            layer = LAYERS[number % 3]
            bob.add(f"{text} of bob", layer=layer, tags=["ui"], key=f"own{number}", importance=number / 6)
        bob.sessions.create("monday").view.add("dark mode in the session")
        clock.forward(hours=1)
        ids = _others(memories) if others else []
        clock.forward(hours=1)
        memories.on(Event, lambda event: seen.append(f"event {event!r}"))
        stop = instrument(memories, meter_provider=MeterProvider(metric_readers=[reader]))
        try:
            yield World(memories, seen, reader, folder, len(audit.read_text(encoding="utf-8").splitlines()), ids)
        finally:
            stop()


@contextmanager
def _heard(seen: list[str]) -> Iterator[None]:
    """Write down each line of the log with its fields; not those of the lock of the whole folder.

    Bookkeeping of all callers takes that lock every so many entries: access counts, and the anchor of the audit log.
    """

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("lock "):
                return
            details = {name: getattr(record, name, None) for name in METADATA}
            seen.append(f"log {record.levelname} {record.getMessage()} {details}")

    logger, handler = logging.getLogger("wellkept"), Heard()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False  # thousands of lines that pytest would keep
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate = True
        logger.removeHandler(handler)


def _others(memories: Memories) -> list[str]:
    """What somebody else keeps, in every state, under the same keys, about the same things."""
    ada = memories.view(user="ada", agent="debugger", project="api")
    news = [
        NewMemory(
            content=f"{WORDS[number % len(WORDS)]} number {number}",
            layer=LAYERS[number % 3],
            tags=["ui", f"t{number % 7}"],
            key=f"k{number}",
            author="ada",
            importance=number / FOREIGN,
        )
        for number in range(FOREIGN - 10)
    ]
    stored = ada.add_many(news)
    stored += ada.sessions.create("monday").view.add_many([f"dark mode in session {number}" for number in range(10)])
    ada.forget(stored[0].id)
    ada.forget(stored[1].id, permanent=True)
    ada.update(stored[2].id, content="Lives in Oslo")
    ada.facts.add("Bob", "lives in", "Berlin")
    ada.search("dark mode")
    return [memory.id for memory in (stored[0], stored[1], stored[2], stored[-1])]


def through_views(world: World, others: Sequence[str], grant: Grant | None) -> Iterator[tuple[str, Any]]:
    """Every method of a view, on an own id and on ids of somebody else."""
    view = world.memories.view(user="bob", agent="debugger", project="web", grant=grant)
    for name, ask in CALLS.items():
        own = view.get(key="own1", include_forgotten=True)
        for id in (*others, own.id if own is not None else "none"):
            label = f"{name} {others.index(id) if id in others else 'own'}"
            yield world.observe(label, partial(ask, view, id))


def through_verbs(world: World, others: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Every step of the scenario, with ids of somebody else in the place of its own."""
    caller = Caller(memories=world.memories, identity=OWN, grant=Grant(need=Need.ERASE, owners=OWNERS))
    for number, (verb, payload) in enumerate(STEPS):
        text = re.sub(r"\$(\d+)", lambda match: others[int(match[1]) % len(others)], json.dumps(payload))
        yield world.observe(f"{number} {verb}", partial(call, verb, caller, json.loads(text)))


@pytest.mark.req("L11", "H6")
@pytest.mark.parametrize("url", STORES)
def test_what_others_keep_changes_nothing_that_a_caller_sees(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[list[tuple[str, Any]]] = []
    ids: list[str] = []
    for others in (True, False):
        with opened(url, tmp_path / str(others), monkeypatch, others=others) as world:
            ids = ids or world.others
            grant = Grant(need=Need.ERASE, owners=OWNERS)
            asked = [
                *((f"verb {name}", seen) for name, seen in through_verbs(world, ids)),
                *((f"view {name}", seen) for name, seen in through_views(world, ids, None)),
                *((f"granted {name}", seen) for name, seen in through_views(world, ids, grant)),
            ]
            observed.append(asked + list(world.afterwards()))
    beside, alone = observed
    heard = "\n".join(line for _, lines in alone for line in lines)
    assert all(f"{kind} " in heard for kind in ("event", "log")), "something is heard at all"
    assert len(beside) == len(alone)
    differences = {pair[0][0]: pair for pair in zip(beside, alone, strict=True) if pair[0] != pair[1]}
    assert differences == {}, "beside somebody else's memories, and alone"


def test_every_method_of_a_view_and_every_verb_is_tried() -> None:
    methods = {name for name, _ in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    assert methods <= {name.split()[0] for name in CALLS}
    assert set(VERBS) <= {verb for verb, _ in STEPS}
