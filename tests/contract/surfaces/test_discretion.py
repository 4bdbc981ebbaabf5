"""Representations, errors, logs, events and metrics hold neither content nor vectors nor tokens."""

import base64
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import wellkept
from tests.support.stand_ins import store_of
from wellkept import Filter, Memories, NewMemory, View, events, types, window, working
from wellkept import memories as surface
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import WellkeptError
from wellkept.events import Event
from wellkept.keyrings.ram import RamKeyring
from wellkept.telemetry import instrument
from wellkept.types import Fact, KnowledgePointer, PointerType, Source, SourceType, Vector

CANARY = "zq7canary"
VECTOR = [0.123456789] * 16
TOLD = repr(Vector.of("x", VECTOR).data)[2:-1]  # as its bytes are shown


def everything(memories: Memories) -> Iterator[object]:
    """Values of every kind, all of them made with the marker."""
    view = memories.view(user="ada", agent="debugger", session="monday", team="core")
    pointer = KnowledgePointer(
        source_type=PointerType.ADR, source_id=CANARY, content_hash=CANARY, synced_at=datetime(2030, 1, 7, tzinfo=UTC)
    )
    new = NewMemory(
        content=f"{CANARY} tea",
        title=CANARY,
        description=CANARY,
        tags=[CANARY],
        metadata={"a": CANARY},
        source=Source(type=SourceType.WEB, reference=CANARY),
        pointer=pointer,
        author=CANARY,
        vector=VECTOR,
    )
    [memory] = view.add_many([new])
    yield from (new, memory, memory.source, memory.pointer, pointer)
    yield view.get(memory.id, include_vector=True)
    yield view.update(memory.id, content=f"{CANARY} cake", title=f"{CANARY} 2")
    fact = view.facts.add(CANARY, "likes", CANARY)
    yield from (fact, fact.fact, Fact(subject=CANARY, predicate=CANARY, object=CANARY))
    wanted = Filter(content_contains=CANARY, text=CANARY, tags=[CANARY], metadata={"a": CANARY}, authors=[CANARY])
    yield from (wanted, view.list(filter=wanted), view.list(sort_by="relevance"))
    results = view.search(CANARY, min_score=0, explain=True)
    yield from (results, *results)
    yield from (view.history(memory.id), view.changes(), view.lineage(memory.id))
    stored = list(store_of(memories).journal.scan({memory.owner}, vectors=True))
    yield from (stored, Vector.of("x", VECTOR), memory)
    yield view.forget_many([memory.id], reason=CANARY)
    session = view.sessions.create("tuesday", metadata={"a": CANARY}, preferences={"theme": CANARY})
    session.view.add(f"{CANARY} of tuesday")
    yield from (session, session.preferences, session.stats(), view.sessions.list(), session.compact(dry_run=True))
    yield memories.upkeep.hold({"content_contains": CANARY}, reason="case 17")
    made = memories.keys.create("ci", owners=None)
    assert made.token not in repr((made, memories.keys.list(), memories.keys.grant_of(made.token)))
    yield from _agent(memories)


def _agent(memories: Memories) -> Iterator[object]:
    agent = memories.agent("debugger", user="ada")
    agent.working.set("step", CANARY, tags=[CANARY])
    yield from (agent.working, agent.working.snapshot(), agent.working.search(CANARY), agent.stats())
    yield agent.context.add("user", f"{CANARY} {CANARY}")
    yield from (agent.context, agent.context.compose(CANARY, budget_tokens=500), agent.snapshot())
    yield agent.context.compact()


@pytest.fixture
def memories() -> Iterator[Memories]:
    with wellkept.open("ram:", embedder=HashingEmbedder(16)) as opened:
        yield opened


@pytest.mark.req("J12")
def test_no_value_shows_what_people_wrote(memories: Memories) -> None:
    texts = [(type(value), repr(value) + str(value)) for value in everything(memories)]
    assert [(kind, text) for kind, text in texts if CANARY in text or TOLD in text] == []


# Fields that hold what people wrote, in whatever public value they are.
WRITTEN = {"content", "text", "title", "description", "metadata", "subject", "object", "predicate", "query", "payload"}
WRITTEN |= {"facets", "data", "pairs", "content_contains"}


def test_a_public_value_says_how_it_is_shown() -> None:
    """A new value with a field for what people wrote must hide it: dataclasses show every field by themselves."""
    shown = {}
    for module in (types, events, wellkept, window, working, surface):
        for name in module.__all__:
            kind = getattr(module, name)
            if not isinstance(kind, type) or not WRITTEN & set(_fields_of(kind)):
                continue
            blank = _blank(kind)
            with suppress(AttributeError):  # its own way to be shown, which knows its own fields
                if CANARY in repr(blank):
                    shown[f"{module.__name__}.{name}"] = repr(blank)
    assert shown == {}


def _fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else getattr(kind, "_fields", ())


def _blank(kind: Any) -> Any:
    """A value that holds the marker wherever people write, and nothing else."""
    values = {name: CANARY if name in WRITTEN else None for name in _fields_of(kind)}
    if hasattr(kind, "_fields"):
        return kind(**values)
    blank: Any = kind.__new__(kind)
    for name, value in values.items():
        object.__setattr__(blank, name, value)
    return blank


WRONG: tuple[Callable[[View], object], ...] = (
    lambda view: view.add(CANARY, importance=7),
    lambda view: view.add(CANARY, tags=[CANARY * 100]),
    lambda view: view.update("nobody", content=CANARY),
    lambda view: view.add("x", metadata={CANARY: object()}),
    lambda view: view.search(CANARY * 10_000),
    lambda view: view.add(CANARY * 2_000_000),
    lambda view: view.list(filter={"content_contains": CANARY, "max_depth": 99}),
)


@pytest.mark.req("J12", "W5")
def test_metrics_hold_neither_content_nor_keys_nor_vectors() -> None:
    reader, ring = InMemoryMetricReader(), RamKeyring()
    with wellkept.open("ram:", embedder=HashingEmbedder(16), keyring=ring, encrypt="all") as memories:
        stop = instrument(memories, meter_provider=MeterProvider([reader]))
        for _ in everything(memories):
            pass
        for wrong in WRONG:
            with pytest.raises(WellkeptError):
                wrong(memories.view(user="ada"))
        journal = store_of(memories).journal
        ids = [one.id for owner in journal.owners() for one in journal.scan({owner})]
        secrets = [part for owner in ring.owners() if (key := ring.key(owner)) for part in (key.secret, key.blind)]
        secrets.append(ring.signing_seed())
        found = reader.get_metrics_data()
        stop()
    assert found is not None
    told = found.to_json()
    points = [
        point
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    ]
    labels = [dict(point.attributes or {}) for point in points]
    assert len(labels) > 50, "there is something to look through"
    forbidden = [CANARY, TOLD, "0.12345678", *ids]
    forbidden += [form for one in secrets for form in (one.hex(), base64.b64encode(one).decode(), repr(one)[2:-1])]
    assert len(ids) == 3
    assert len(secrets) >= 3
    assert [one for one in forbidden if one in told or any(one in repr(label) for label in labels)] == []
    assert all(len(str(value)) <= 40 for label in labels for value in label.values()), "labels are words, not texts"


@pytest.mark.req("J12", "W5")
def test_events_and_logs_and_watchers_are_told_nothing(
    memories: Memories, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    heard: list[object] = []
    memories.on(Event, heard.append)
    memories.watch(heard.append)
    with caplog.at_level(logging.DEBUG):
        for _ in everything(memories):
            pass
        for wrong in WRONG:
            with pytest.raises(WellkeptError) as refused:
                wrong(memories.view(user="ada"))
            error = refused.value
            heard.append(f"{error} {error!r} {error.hint} {error.operation} {dict(error.details)}")
    assert len(heard) > 20
    for one in heard:
        assert CANARY not in repr(one), one
    assert CANARY not in caplog.text
    assert not any(CANARY in str(value) for record in caplog.records for value in vars(record).values())
