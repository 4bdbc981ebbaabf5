"""Metrics through the OpenTelemetry API; the application chooses SDK and exporter.

Nothing is measured until :func:`instrument` is called.
"""

import inspect
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from recollect.errors import ConfigurationError, ScopeDisposed, StoreError
from recollect.events import ContextCompacted, ContextComposed, SessionCompacted
from recollect.memories.database import Memories
from recollect.types import Layer, LayerSize, OperationCompleted
from recollect.working import WorkingMemory, WorkingStats

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

_FRESH_S = 1.0  # longer than one collection takes

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

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     stop = instrument(memories)
    ...     _ = memories.view(user="ada").add("Likes tea")
    ...     stop()
    """
    try:
        from opentelemetry import metrics  # lazy: an extra, and heavy
    except ImportError as error:
        raise ConfigurationError(
            "OpenTelemetry is not installed", operation="instrument", hint="install recollect[otel]"
        ) from error
    if not isinstance(memories, Memories):
        raise ConfigurationError(
            f"memories is a {type(memories).__name__}",
            operation="instrument",
            details={"field": "memories"},
            hint="pass what recollect.open returned",
        )
    names = {} if database is None else {"database": database}
    # One meter per name: otherwise the gauges of a second database would be dropped as duplicates.
    meter = metrics.get_meter("recollect", meter_provider=meter_provider, attributes=names)
    gauges = _Gauges(memories, names, metrics.Observation)
    gauges.register(meter)
    operations, context = _Operations(meter, names), _Context(meter, names)
    ends = (
        memories.watch(operations.add),
        memories.on(ContextComposed, context.composed),
        memories.on(ContextCompacted, context.compacted),
        memories.on(SessionCompacted, _Sessions(meter, names).compacted),
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
        # By component and operation: those with a metric of their own.
        self._apart = {
            ("Embedder", "embed"): meter.create_histogram(
                "agents.memory.longterm.embedding_time_ms", unit="ms", description="How long a batch of texts took"
            ),
            ("AgentMemory", "snapshot"): meter.create_histogram(
                "agents.memory.snapshot_create_ms", unit="ms", description="How long a snapshot took"
            ),
            ("AgentMemory", "restore"): meter.create_histogram(
                "agents.memory.snapshot_restore_ms", unit="ms", description="How long going back to a snapshot took"
            ),
        }
        for operation in ("get", "set"):
            self._apart["WorkingMemory", operation] = self._apart["WorkingScope", operation] = meter.create_histogram(
                f"agents.memory.working.{operation}_latency_ms", unit="ms", description=f"How long {operation} took"
            )

    def add(self, done: OperationCompleted) -> None:
        """Count one operation."""
        operation = {**self._names, "component": done.component, "operation": done.operation}
        place = operation if done.layer is None else {**operation, "layer": done.layer.value}
        self._total.add(1, place)
        self._latency.record(done.duration_ms, place)
        if done.code is not None:
            self._errors.add(1, {**operation, "code": done.code})
            return
        apart = self._apart.get((done.component, done.operation))
        if apart is not None:
            apart.record(done.duration_ms, self._names)
        if done.operation == "search" and done.count is not None:
            self._results.record(done.count, self._names)


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


class _Gauges:
    """Observable gauges. Holds the database weakly: OpenTelemetry never releases a callback."""

    def __init__(self, memories: Memories, names: Attributes, observation: "type[Observation]") -> None:
        self._memories: Callable[[], Memories | None] = weakref.ref(memories)
        self._names = names
        self._observation = observation
        self._sized: tuple[float, Mapping[Layer, LayerSize]] = (-_FRESH_S, {})
        self._fallbacks = 0
        self._seen: weakref.WeakKeyDictionary[WorkingMemory, int] = weakref.WeakKeyDictionary()

    def stop(self) -> None:
        """Observe nothing from now on."""
        self._memories = lambda: None

    def register(self, meter: "Meter") -> None:
        """Create the instruments."""
        for name, look, unit, description in (
            ("memory.storage.size", self._sizes, "{memory}", "Active memories, by layer"),
            ("memory.size.bytes", self._bytes, "By", "Bytes used, by layer"),
            ("agents.memory.working.entries", self._entries, "{entry}", "Entries of working memory"),
            ("agents.memory.working.scopes", self._scopes, "{scope}", "Scopes that were not disposed"),
            ("agents.memory.context.tokens", self._tokens, "{token}", "Tokens that contexts hold"),
        ):
            meter.create_observable_gauge(name, [self._callback(look)], unit=unit, description=description)
        meter.create_observable_counter(
            "agents.memory.working.scope_fallback_total",
            [self._callback(self._fallen_back)],
            unit="{read}",
            description="Reads in scopes that a level further down answered",
        )

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
        # Cached for the other gauge of the same collection: the query reads a row for each memory.
        self._sized = time.monotonic(), _sizes(memories)
        for layer, size in self._sized[1].items():
            yield size.active, {"layer": layer.value}

    def _bytes(self, memories: Memories) -> Figures:
        at, found = self._sized
        sizes = found if time.monotonic() - at < _FRESH_S else _sizes(memories)
        for layer, size in sizes.items():
            yield size.bytes_used, {"layer": layer.value}

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
