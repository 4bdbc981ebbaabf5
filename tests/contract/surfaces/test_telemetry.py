"""Metrics, as OpenTelemetry's own SDK collects them."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import MeterProvider as AnyProvider
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter, PeriodicExportingMetricReader

import wellkept
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener
from tests.support.workload import PLANTED, everything
from wellkept import Memories
from wellkept.errors import ConfigurationError, InvalidLayer, LockTimeout, NotFound, StoreBusy, StoreCorrupt
from wellkept.logs import METADATA
from wellkept.stores.ram import RamStore
from wellkept.telemetry import instrument
from wellkept.testing import FaultyStore
from wellkept.types import ConsolidationPolicy, RetentionPolicy, SessionEndPolicy

# The metrics that the sources list, by source and section.
SOURCE_NAMES = {
    "long-term memory, 7.2": {
        "agents.memory.longterm.entries",
        "agents.memory.longterm.storage_bytes",
        "agents.memory.longterm.store_latency_ms",
        "agents.memory.longterm.retrieve_latency_ms",
        "agents.memory.longterm.search_latency_ms",
        "agents.memory.longterm.embedding_time_ms",
        "agents.memory.longterm.search_results",
    },
    "persistence, 7.2": {
        "agents.memory.snapshots.total",
        "agents.memory.snapshots.size_bytes",
        "agents.memory.snapshot_create_ms",
        "agents.memory.snapshot_restore_ms",
        "agents.memory.retention.bytes_freed",
    },
    "layered memory, observability": {
        "memory.operations.total",
        "memory.operations.errors",
        "memory.operations.latency",
        "memory.search.results",
        "memory.storage.size",
    },
    "session store, 15.1": {
        "memory.sessions.active",
        "memory.entries.total",
        "memory.size.bytes",
        "memory.operations.write.duration_ms",
        "memory.operations.query.duration_ms",
        "memory.locks.contention.count",
        "memory.compaction.count",
        "memory.errors.corruption.count",
    },
    "working memory, 7.2": {
        "agents.memory.working.entries",
        "agents.memory.working.scopes",
        "agents.memory.working.get_latency_ms",
        "agents.memory.working.set_latency_ms",
        "agents.memory.working.scope_fallback_total",
    },
}
# What they measure does not exist yet: snapshots that are stored.
LATER = {
    "agents.memory.snapshots.total",
    "agents.memory.snapshots.size_bytes",
}
OWN_NAMES = {
    "agents.memory.context.tokens",
    "agents.memory.context.composed_tokens",
    "agents.memory.context.left_out",
    "agents.memory.context.compactions",
    "agents.memory.context.freed_tokens",
    "agents.memory.consolidation.merged",
    "agents.memory.sessions.promoted",
}
NAMES = set().union(*SOURCE_NAMES.values()) - LATER | OWN_NAMES


class Collected:
    """The points of all metrics, by name."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def metrics(self) -> Iterator[Any]:
        found = self.reader.get_metrics_data()
        for resource in found.resource_metrics if found else ():
            for scope in resource.scope_metrics:
                yield from scope.metrics

    def points(self, name: str) -> dict[tuple[tuple[str, Any], ...], Any]:
        return {
            tuple(sorted((point.attributes or {}).items())): point
            for metric in self.metrics()
            if metric.name == name
            for point in metric.data.data_points
        }

    def values(self, name: str) -> dict[tuple[str, ...], Any]:
        """The value of a counter or gauge, or the count of a histogram, by the values of the attributes."""
        return {
            tuple(value for _, value in which): point.value if hasattr(point, "value") else point.count
            for which, point in self.points(name).items()
        }


@pytest.fixture
def collected() -> Iterator[Collected]:
    collected = Collected()
    yield collected
    collected.provider.shutdown()


@pytest.mark.req("H15")
def test_operations_errors_latency_and_results(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada", project="api")
    view.add("Use tabs", layer="project")
    view.add("Likes tabs", layer="user")
    view.search("tabs", min_score=0)
    view.search("tabs", limit=1, min_score=0)
    with pytest.raises(InvalidLayer):
        view.add("x", layer="planet")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        view.update("missing", title="x")
    total = {
        ("Memories", "view"): 1,
        ("View", "project", "add"): 1,
        ("View", "user", "add"): 1,
        ("View", "add"): 1,
        ("View", "search"): 2,
        ("View", "update"): 1,
    }
    # Sorted by attribute: component, layer, operation.
    assert collected.values("memory.operations.total") == total
    assert collected.values("memory.operations.latency") == total
    assert all(point.sum > 0 for point in collected.points("memory.operations.latency").values())
    # Sorted by attribute: code, component, operation.
    assert collected.values("memory.operations.errors") == {
        ("INVALID_LAYER", "View", "add"): 1,
        ("MEMORY_NOT_FOUND", "View", "update"): 1,
    }
    [results] = collected.points("memory.search.results").values()
    assert (results.count, results.sum, results.min, results.max) == (2, 3, 1, 2)


@pytest.mark.req("H15")
def test_size_by_layer(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada", project="api")
    view.add_many(["one", "two"])
    view.add("three", layer="project")
    memories.view(user="bob").add("four")
    sizes = memories.sizes()
    assert collected.values("memory.storage.size") == {("project",): 1, ("user",): 3}
    assert collected.values("memory.size.bytes") == {(layer.value,): one.bytes_used for layer, one in sizes.items()}


@pytest.mark.req("J13")
def test_sizes_and_latencies_of_long_term_memory(opener: Opener, collected: Collected) -> None:
    memories = opener(embedder=CountingEmbedder())
    instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada", project="api")
    one, _ = view.add_many(["one", "two"])
    view.add("three", layer="project")
    view.get(one.id)
    view.get_many([one.id])
    view.update(one.id, title="One")
    view.search("one", min_score=0)
    view.list()
    view.count()
    view.forget(one.id)
    sizes = memories.sizes()
    assert collected.values("agents.memory.longterm.entries") == {("project",): 1, ("user",): 1}
    assert collected.values("memory.entries.total") == {("project",): 1, ("user",): 2}
    assert collected.values("agents.memory.longterm.storage_bytes") == {
        (layer.value,): size.bytes_used for layer, size in sizes.items()
    }
    assert {name: collected.values(name) for name in NAMES if name.endswith(("latency_ms", "duration_ms"))} == {
        "agents.memory.longterm.store_latency_ms": {(): 2},
        "agents.memory.longterm.retrieve_latency_ms": {(): 2},
        "agents.memory.longterm.search_latency_ms": {(): 1},
        "memory.operations.write.duration_ms": {(): 4},
        "memory.operations.query.duration_ms": {(): 3},
        "agents.memory.working.get_latency_ms": {},
        "agents.memory.working.set_latency_ms": {},
    }
    [results] = collected.points("agents.memory.longterm.search_results").values()
    assert (results.count, results.sum) == (1, 3)


@pytest.mark.req("J13")
def test_open_sessions_are_counted(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    ada, bob = memories.view(user="ada").sessions, memories.view(user="bob").sessions
    assert collected.values("memory.sessions.active") == {(): 0}
    for sessions in (ada, bob):
        sessions.create("monday")
        sessions.create("tuesday")
    ada.close("monday")
    bob.delete("monday")
    assert collected.values("memory.sessions.active") == {(): 2}


@pytest.mark.req("J13")
def test_locks_that_were_not_had_are_counted_once(collected: Collected) -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        instrument(memories, meter_provider=collected.provider)
        session = memories.view(user="ada").sessions.create("monday")
        session.view.add("Use OAuth", tags=["security"])
        for error in (LockTimeout("held"), StoreBusy("busy"), StoreCorrupt("bad")):
            store.fail("select", error)
            with pytest.raises(type(error)):
                session.forget(topic="security")  # calls View.forget_many, which fails
        assert collected.values("memory.locks.contention.count") == {(): 2}
        assert collected.values("memory.errors.corruption.count") == {(): 1}


@pytest.mark.req("J13", "J4")
def test_damaged_lines_are_counted(tmp_path: Path, collected: Collected) -> None:
    url = f"jsonl:{tmp_path / 'memory'}"
    with wellkept.open(url, embedder=None) as memories:
        memories.view(user="ada").add_many(["one", "two"])
    [file] = (tmp_path / "memory").rglob("memory.jsonl")
    first, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(first.replace(b"one", b"0ne") + b"\nnonsense\n" + rest)
    with wellkept.open(url, embedder=None) as memories:
        instrument(memories, meter_provider=collected.provider)
        memories.view(user="ada").count()
        assert collected.values("memory.errors.corruption.count") == {(): 2}
        memories.doctor(repair=True)
        assert collected.values("memory.errors.corruption.count") == {(): 2}, "a counter does not fall"


def test_working_memory_and_scopes(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    me, other = memories.agent("debugger"), memories.agent("writer")
    me.working.set("goal", "fix")
    other.working.set("goal", "write")
    scope = me.working.create_scope("task")
    scope.set("step", 1)
    assert (scope.get("step"), scope.get("goal"), scope.get("goal"), me.working.get("goal")) == (1, "fix", "fix", "fix")
    assert collected.values("memory.operations.total")["WorkingScope", "get"] == 3
    assert collected.values("agents.memory.working.entries") == {(): 3}
    assert collected.values("agents.memory.working.scopes") == {(): 1}
    assert collected.values("agents.memory.working.get_latency_ms") == {(): 4}
    assert collected.values("agents.memory.working.set_latency_ms") == {(): 3}
    assert collected.values("agents.memory.working.scope_fallback_total") == {(): 2}
    assert ("WorkingMemory", "stats") not in collected.values("memory.operations.total"), "looking is no operation"


@pytest.mark.slow
def test_a_counter_does_not_fall_when_an_agent_ends(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    for expected in (1, 2):
        me = memories.agent("debugger")
        me.working.set("goal", "fix")
        with me.working.create_scope("task") as scope:
            scope.get("goal")
        assert collected.values("agents.memory.working.scope_fallback_total") == {(): expected}
        del me, scope
        gc.collect()
    assert collected.values("agents.memory.working.scope_fallback_total") == {(): 2}
    assert collected.values("agents.memory.working.entries") == {(): 0}


@pytest.mark.req("J13")
def test_compactions_of_sessions(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    session = memories.view(user="ada").sessions.create("monday", config={"limit_bytes": 1_000})
    session.compact()
    session.view.add("x" * 800, importance=0)
    session.view.add("y" * 600)
    counted = {which: point.value for which, point in collected.points("memory.compaction.count").items()}
    assert counted == {(("automatic", False),): 1, (("automatic", True),): 1}


@pytest.mark.req("P4")
def test_bytes_freed_by_retention(memories: Memories, clock: HandClock, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada")
    view.forget(view.add("Likes tea").id)
    memories.upkeep.set_retention(RetentionPolicy(forgotten_age="1d", automatic=False))
    clock.forward(days=2)
    run = memories.upkeep.run()
    assert run.erased == 1
    counted = {which: point.value for which, point in collected.points("agents.memory.retention.bytes_freed").items()}
    assert counted == {(("automatic", False),): run.bytes_freed}


def test_merges_and_promotions_are_counted(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
    memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8, automatic=False))
    memories.view(user="ada").add_many(["Uses vim", "Uses vim."])
    memories.upkeep.run(job="consolidation")
    with memories.view(user="ada").sessions.create() as session:
        session.view.add("Is allergic to nuts", importance=0.9)
    [merged] = collected.points("agents.memory.consolidation.merged").items()
    [promoted] = collected.points("agents.memory.sessions.promoted").items()
    assert (merged[0], merged[1].value) == ((("layer", "user"),), 2)
    assert promoted[1].value == 1


def test_context_and_snapshots(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    me = memories.agent("debugger")
    for number in range(4):
        me.context.add("user", f"{number}" * 40)
    prompt = me.context.compose(budget_tokens=40)
    done = me.context.compact(20, strategy="oldest")
    me.restore(me.snapshot())
    [composed] = collected.points("agents.memory.context.composed_tokens").values()
    assert (composed.count, composed.sum) == (1, prompt.receipt.total_tokens)
    assert collected.values("agents.memory.context.left_out") == {(): len(prompt.receipt.left_out)}
    assert len(prompt.receipt.left_out) > 0
    assert collected.values("agents.memory.context.compactions") == {("oldest",): 1}
    freed = done.receipt.tokens_before - done.receipt.tokens_after
    assert collected.values("agents.memory.context.freed_tokens") == {("oldest",): freed}
    assert collected.values("agents.memory.context.tokens") == {(): me.context.tokens_used}
    assert collected.values("agents.memory.snapshot_create_ms") == {(): 1}
    assert collected.values("agents.memory.snapshot_restore_ms") == {(): 1}
    assert collected.values("memory.operations.latency")["ContextWindow", "compose"] == 1


def test_embedding_times_of_writes_and_questions(opener: Opener, collected: Collected) -> None:
    memories = opener(embedder=CountingEmbedder())
    instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada")
    view.add_many(["one", "two"])
    view.search("one")
    assert collected.values("agents.memory.longterm.embedding_time_ms") == {(): 2}


@pytest.mark.req("H15", "J13")
def test_all_metrics_are_there_and_no_attribute_holds_content(collected: Collected) -> None:
    kept: list[Memories] = []

    def prepare(memories: Memories) -> None:
        kept.append(memories)
        instrument(memories, meter_provider=collected.provider)

    agents = everything_and_collect(prepare, collected)
    assert {metric.name for metric in agents} == NAMES
    attributes = [point.attributes for metric in agents for point in metric.data.data_points]
    assert len(attributes) > 80
    assert PLANTED not in repr(attributes) + repr([(m.name, m.unit, m.description) for m in agents])
    known = {"component", "operation", "layer", "code", "strategy", "automatic"}
    assert {name for some in attributes for name in some} == known
    for values in ("debugger", "monday"):
        assert values not in repr(attributes), "ids would make a series for each agent and session"


def everything_and_collect(prepare: Any, collected: Collected) -> list[Any]:
    """Collects while the database is still open: gauges of a closed one have nothing to say."""
    found: list[Any] = []

    def collect_at_last(memories: Memories) -> None:
        prepare(memories)
        close = memories.close
        memories.close = lambda: (found.extend(collected.metrics()), close())[1]  # type: ignore[method-assign, func-returns-value]

    everything(collect_at_last)
    return found


def test_every_metric_and_log_field_is_documented() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "observability.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in guide.splitlines() if line.startswith(("| `memory.", "| `agents."))]
    assert sorted(rows) == sorted(f"`{name}`" for name in NAMES)
    [fields] = [line for line in guide.splitlines() if line.startswith("| `metadata`")]
    assert [name for name in METADATA if f"`{name}`" not in fields] == []


def test_two_databases_are_told_apart_by_name(opener: Opener, collected: Collected) -> None:
    one, two = opener(name="one"), opener(name="two")
    instrument(one, meter_provider=collected.provider, database="one")
    instrument(two, meter_provider=collected.provider, database="two")
    one.view(user="ada").add("Likes tea")
    two.view(team="core").add_many(["a", "b"])
    assert collected.values("memory.storage.size") == {("one", "user"): 1, ("two", "team"): 2}
    assert set(collected.values("memory.operations.total")) >= {
        ("View", "one", "user", "add"),
        ("View", "two", "team", "add_many"),
    }


def test_measuring_ends(memories: Memories, collected: Collected) -> None:
    stop = instrument(memories, meter_provider=collected.provider)
    view = memories.view(user="ada")
    view.add("Likes tea")
    stop()
    view.add("Likes cake")
    assert collected.values("memory.operations.total")["View", "user", "add"] == 1
    assert collected.values("memory.storage.size") == {}


def test_gauges_of_a_closed_database_say_nothing(memories: Memories, collected: Collected) -> None:
    instrument(memories, meter_provider=collected.provider)
    memories.view(user="ada").add("Likes tea")
    memories.close()
    assert collected.values("memory.storage.size") == {}
    assert collected.values("memory.operations.total")["View", "user", "add"] == 1
    assert collected.values("memory.operations.errors") == {}


def test_metrics_keep_no_database_alive(collected: Collected) -> None:
    memories = wellkept.open("ram:", embedder=None)
    instrument(memories, meter_provider=collected.provider)
    memories.view(user="ada").add("Likes tea")
    gone = weakref.ref(memories)
    del memories
    gc.collect()
    assert gone() is None
    assert collected.values("memory.storage.size") == {}


class BrokenExporter(MetricExporter):
    """Fails whenever it is given something."""

    calls = 0

    def export(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        raise ConnectionError("no collector")

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **kwargs: Any) -> None:
        return None


def test_a_failing_exporter_fails_no_write(memories: Memories) -> None:
    exporter = BrokenExporter()
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instrument(memories, meter_provider=provider)
    view = memories.view(user="ada")
    memory = view.add("Likes tea")
    reader.collect()
    view.update(memory.id, content="Likes cake")
    provider.shutdown()
    assert exporter.calls > 0
    assert view.add("after the end").content == "after the end"


class BrokenProvider(AnyProvider):
    """Gives meters whose counters fail."""

    def get_meter(self, name: str, *args: Any, **kwargs: Any) -> Any:
        meter = NoOpMeter(name)

        def fail(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("no meter")

        def counter(*args: Any, **kwargs: Any) -> Any:
            made = NoOpMeter.create_counter(meter, "x")
            made.add = fail  # type: ignore[method-assign]
            return made

        meter.create_counter = counter  # type: ignore[method-assign]
        return meter


def test_a_failing_meter_fails_no_write(memories: Memories) -> None:
    instrument(memories, meter_provider=BrokenProvider())
    assert memories.view(user="ada").add("Likes tea").version == 1
    assert memories.health().components["handlers"].message == "2 calls failed"


@pytest.mark.parametrize("wrong", [None, "memory.db", object()])
def test_what_is_no_database_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        instrument(wrong)
    assert caught.value.details["field"] == "memories"
