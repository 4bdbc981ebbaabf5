"""Metrics through the OpenTelemetry API; the application chooses SDK and exporter.

Nothing is measured until :func:`instrument` is called.
"""

import inspect
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from wellkept import extras
from wellkept.errors import ConfigurationError, LockTimeout, ScopeDisposed, StoreBusy, StoreCorrupt, StoreError
from wellkept.events import (
    ContextCompacted,
    ContextComposed,
    MemoriesMerged,
    MemoryPromoted,
    RetentionCleanupCompleted,
    SessionCompacted,
)
from wellkept.memories.database import Memories
from wellkept.sessions.records import count_active
from wellkept.types import Layer, LayerSize, OperationCompleted
from wellkept.working import WorkingMemory, WorkingStats

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation

_FRESH_S = 1.0  # longer than one collection takes

_CONTENTION = frozenset({StoreBusy.code, LockTimeout.code})
_WRITES = ("add", "add_many", "update", "forget", "forget_many", "restore")
_LATENCIES = (
    # name, description, component, operations
    ("memory.operations.write.duration_ms", "How long writes took", "View", _WRITES),
    ("memory.operations.query.duration_ms", "How long queries took", "View", ("search", "list", "count")),
    ("agents.memory.longterm.store_latency_ms", "How long storing took", "View", ("add", "add_many")),
    ("agents.memory.longterm.retrieve_latency_ms", "How long reads by id took", "View", ("get", "get_many")),
    ("agents.memory.longterm.search_latency_ms", "How long searches took", "View", ("search",)),
    ("agents.memory.longterm.embedding_time_ms", "How long a batch of texts took", "Embedder", ("embed",)),
    ("agents.memory.snapshot_create_ms", "How long a snapshot took", "AgentMemory", ("snapshot",)),
    ("agents.memory.snapshot_restore_ms", "How long going back to a snapshot took", "AgentMemory", ("restore",)),
)

Attributes = Mapping[str, str]
Figures = Iterator[tuple[float, Attributes]]


def instrument(
    memories: Memories, *, meter_provider: "MeterProvider | None" = None, database: str | None = None
) -> Callable[[], None]:
    """Measure the operations of a database; returns a function that stops it.

    Call it right after opening: working memory and contexts are measured only for agents created later. Without a
    ``meter_provider`` the global one is used. If a process has several databases, each needs a name for the attribute
    ``database``. ``docs/guides/observability.md`` lists the metrics. Raises ``ConfigurationError`` if OpenTelemetry is
    not installed.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     stop = instrument(memories)
    ...     _ = memories.view(user="ada").add("Likes tea")
    ...     stop()
    """
    extras.require("otel")
    from opentelemetry import metrics  # lazy: an extra, and heavy

    if not isinstance(memories, Memories):
        raise ConfigurationError(
            f"memories is a {type(memories).__name__}",
            operation="instrument",
            details={"field": "memories"},
            hint="pass what wellkept.open returned",
        )
    names = {} if database is None else {"database": database}
    # One meter per name: otherwise the gauges of a second database would be dropped as duplicates.
    meter = metrics.get_meter("wellkept", meter_provider=meter_provider, attributes=names)
    gauges = _Gauges(memories, names, metrics.Observation)
    gauges.register(meter)
    operations, context, upkeep = _Operations(meter, names), _Context(meter, names), _Upkeep(meter, names)
    ends = (
        memories.watch(operations.add),
        memories.watch(gauges.count_corruption),
        memories.on(ContextComposed, context.composed),
        memories.on(ContextCompacted, context.compacted),
        memories.on(SessionCompacted, _Sessions(meter, names).compacted),
        memories.on(RetentionCleanupCompleted, upkeep.completed),
        memories.on(MemoriesMerged, upkeep.merged),
        memories.on(MemoryPromoted, upkeep.promoted),
        gauges.stop,
    )

    def stop() -> None:
        for end in ends:
            end()

    return stop


class _Operations:
    """Counters and histograms of operations."""

    def __init__(self, meter: "Meter", names: Attributes) -> None:
        self._names = names
        self._total = meter.create_counter(
            "memory.operations.total", unit="{operation}", description="Operations, failed ones too"
        )
        self._errors = meter.create_counter(
            "memory.operations.errors", unit="{error}", description="Operations that failed, by code"
        )
        self._latency = meter.create_histogram(
            "memory.operations.latency", unit="ms", description="How long operations took"
        )
        self._results = meter.create_histogram(
            "memory.search.results", unit="{memory}", description="Results of a search"
        )
        self._contention = meter.create_counter(
            "memory.locks.contention.count", unit="{failure}", description="Operations that waited for a lock in vain"
        )
        self._longterm_results = meter.create_histogram(
            "agents.memory.longterm.search_results", unit="{memory}", description="Results of a search"
        )
        self._apart: dict[tuple[str, str], list[Histogram]] = {}
        for name, description, component, operations in _LATENCIES:
            histogram = meter.create_histogram(name, unit="ms", description=description)
            for operation in operations:
                self._apart.setdefault((component, operation), []).append(histogram)
        for operation in ("get", "set"):
            histogram = meter.create_histogram(
                f"agents.memory.working.{operation}_latency_ms", unit="ms", description=f"How long {operation} took"
            )
            self._apart["WorkingMemory", operation] = self._apart["WorkingScope", operation] = [histogram]

    def add(self, done: OperationCompleted) -> None:
        """Count one operation."""
        operation = {**self._names, "component": done.component, "operation": done.operation}
        place = operation if done.layer is None else {**operation, "layer": done.layer.value}
        self._total.add(1, place)
        self._latency.record(done.duration_ms, place)
        if done.code is not None:
            self._errors.add(1, {**operation, "code": done.code})
            if done.code in _CONTENTION and not done.passed_on:
                self._contention.add(1, self._names)
            return
        for histogram in self._apart.get((done.component, done.operation), ()):
            histogram.record(done.duration_ms, self._names)
        if (done.component, done.operation) == ("View", "search") and done.count is not None:
            self._results.record(done.count, self._names)
            self._longterm_results.record(done.count, self._names)


class _Context:
    """Counters and histograms of context windows."""

    def __init__(self, meter: "Meter", names: Attributes) -> None:
        self._names = names
        self._composed = meter.create_histogram(
            "agents.memory.context.composed_tokens", unit="{token}", description="Tokens of a composed prompt"
        )
        self._left_out = meter.create_counter(
            "agents.memory.context.left_out", unit="{item}", description="Items and memories that a prompt left out"
        )
        self._compactions = meter.create_counter(
            "agents.memory.context.compactions", unit="{compaction}", description="Compactions of contexts"
        )
        self._freed = meter.create_counter(
            "agents.memory.context.freed_tokens", unit="{token}", description="Tokens that compactions made free"
        )

    def composed(self, event: ContextComposed) -> None:
        """Count a prompt."""
        self._composed.record(event.total_tokens, self._names)
        self._left_out.add(event.left_out, self._names)

    def compacted(self, event: ContextCompacted) -> None:
        """Count a compaction."""
        how = {**self._names, "strategy": event.strategy}
        self._compactions.add(1, how)
        self._freed.add(max(0, event.tokens_before - event.tokens_after), how)


class _Sessions:
    """The counter of session compactions."""

    def __init__(self, meter: "Meter", names: Attributes) -> None:
        self._names = names
        self._compactions = meter.create_counter(
            "memory.compaction.count", unit="{compaction}", description="Compactions of sessions"
        )

    def compacted(self, event: SessionCompacted) -> None:
        """Count a compaction."""
        self._compactions.add(1, {**self._names, "automatic": event.automatic})


class _Upkeep:
    """The counters of what upkeep freed, merged and promoted."""

    def __init__(self, meter: "Meter", names: Attributes) -> None:
        self._names = names
        self._freed = meter.create_counter(
            "agents.memory.retention.bytes_freed", unit="By", description="Bytes freed by upkeep"
        )
        self._merged = meter.create_counter(
            "agents.memory.consolidation.merged", unit="{memory}", description="Memories replaced by one like them"
        )
        self._promoted = meter.create_counter(
            "agents.memory.sessions.promoted", unit="{memory}", description="Memories of sessions copied to users"
        )

    def completed(self, event: RetentionCleanupCompleted) -> None:
        """Count a run."""
        self._freed.add(event.bytes_freed, {**self._names, "automatic": event.automatic})

    def merged(self, event: MemoriesMerged) -> None:
        """Count the sources of a merge."""
        self._merged.add(len(event.source_ids), {**self._names, "layer": event.owner.layer.value})

    def promoted(self, event: MemoryPromoted) -> None:
        """Count a promotion."""
        del event
        self._promoted.add(1, self._names)


class _Gauges:
    """Observable gauges. Holds the database weakly: OpenTelemetry never releases a callback."""

    def __init__(self, memories: Memories, names: Attributes, observation: "type[Observation]") -> None:
        self._memories: Callable[[], Memories | None] = weakref.ref(memories)
        self._names = names
        self._observation = observation
        self._sized: tuple[float, Mapping[Layer, LayerSize]] = (-_FRESH_S, {})
        self._fallbacks = 0
        self._failed = self._skipped = 0
        self._seen: weakref.WeakKeyDictionary[WorkingMemory, int] = weakref.WeakKeyDictionary()

    def stop(self) -> None:
        """Observe nothing from now on."""
        self._memories = lambda: None

    def register(self, meter: "Meter") -> None:
        """Create the instruments."""
        for name, look, unit, description in (
            ("memory.storage.size", self._sizes, "{memory}", "Active memories, by layer"),
            ("memory.size.bytes", self._bytes, "By", "Bytes used, by layer"),
            ("memory.entries.total", self._totals, "{memory}", "Memories that are not erased, by layer"),
            ("agents.memory.longterm.entries", self._active, "{memory}", "Active memories, by layer"),
            ("agents.memory.longterm.storage_bytes", self._bytes, "By", "Bytes used, by layer"),
            ("memory.sessions.active", self._sessions, "{session}", "Sessions that are open"),
            ("agents.memory.working.entries", self._entries, "{entry}", "Entries of working memory"),
            ("agents.memory.working.scopes", self._scopes, "{scope}", "Scopes that were not disposed"),
            ("agents.memory.context.tokens", self._tokens, "{token}", "Tokens that contexts hold"),
        ):
            meter.create_observable_gauge(name, [self._callback(look)], unit=unit, description=description)
        for name, look, unit, description in (
            (
                "agents.memory.working.scope_fallback_total",
                self._fallen_back,
                "{read}",
                "Reads in scopes that a level further down answered",
            ),
            (
                "memory.errors.corruption.count",
                self._corrupted,
                "{error}",
                "Operations that met damage, and damaged lines that were skipped",
            ),
        ):
            meter.create_observable_counter(name, [self._callback(look)], unit=unit, description=description)

    def count_corruption(self, done: OperationCompleted) -> None:
        """Count an operation that failed because the store is damaged."""
        if done.code == StoreCorrupt.code and not done.passed_on:
            self._failed += 1

    def _callback(self, look: Callable[[Memories], Figures]) -> "Callable[[CallbackOptions], Iterable[Observation]]":
        def observe(options: "CallbackOptions") -> "Iterable[Observation]":  # noqa: ARG001  # required by the API
            memories = self._memories()
            if memories is None:
                return []
            try:
                return [self._observation(figure, {**self._names, **which}) for figure, which in look(memories)]
            except StoreError:
                return []  # closed or failing: the metrics of operations show that

        return observe

    def _sizes(self, memories: Memories) -> Figures:
        # Cached for the other gauges of the same collection: the query reads a row for each memory.
        self._sized = time.monotonic(), _sizes(memories)
        return self._active(memories)

    def _active(self, memories: Memories) -> Figures:
        return ((size.active, {"layer": layer.value}) for layer, size in self._last_sizes(memories))

    def _totals(self, memories: Memories) -> Figures:
        return ((size.total, {"layer": layer.value}) for layer, size in self._last_sizes(memories))

    def _bytes(self, memories: Memories) -> Figures:
        return ((size.bytes_used, {"layer": layer.value}) for layer, size in self._last_sizes(memories))

    def _last_sizes(self, memories: Memories) -> Iterable[tuple[Layer, LayerSize]]:
        at, found = self._sized
        return (found if time.monotonic() - at < _FRESH_S else _sizes(memories)).items()

    def _sessions(self, memories: Memories) -> Figures:
        yield count_active(memories._engine.records), {}

    def _corrupted(self, memories: Memories) -> Figures:
        """Damaged lines that were repaired since stay counted: a counter must not decrease."""
        self._skipped = max(self._skipped, memories._engine.store.damaged())
        yield self._failed + self._skipped, {}

    def _entries(self, memories: Memories) -> Figures:
        yield sum(stats.entries for stats in _working(memories).values()), {}

    def _scopes(self, memories: Memories) -> Figures:
        yield sum(stats.scopes for stats in _working(memories).values()), {}

    def _tokens(self, memories: Memories) -> Figures:
        yield sum(agent._context.tokens_used for agent in memories.agents()), {}

    def _fallen_back(self, memories: Memories) -> Figures:
        """The sum over all agents, past ones included: a counter must not decrease."""
        for working, stats in _working(memories).items():
            self._fallbacks += stats.scope_fallbacks - self._seen.get(working, 0)
            self._seen[working] = stats.scope_fallbacks
        yield self._fallbacks, {}


# These bypass the instrumentation: collecting metrics must not count as an operation.


def _sizes(memories: Memories) -> Mapping[Layer, LayerSize]:
    found: Mapping[Layer, LayerSize] = inspect.unwrap(Memories.sizes)(memories)
    return found


def _working(memories: Memories) -> dict[WorkingMemory, WorkingStats]:
    """The working memory of each agent, once: its handles share it."""
    found = {}
    for working in dict.fromkeys(agent._working for agent in memories.agents()):
        with suppress(ScopeDisposed):  # the last handle was closed meanwhile
            found[working] = WorkingMemory.stats(working)
    return found
