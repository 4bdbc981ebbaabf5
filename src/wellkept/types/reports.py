"""Reports: statistics, health, diagnosis, conversion."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from wellkept.types.memory import MemoryType
from wellkept.types.owners import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class TagUsage:
    """A tag and the number of active memories that have it.

    >>> TagUsage(tag="style", count=2).count
    2
    """

    tag: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Statistics of the memories in a view.

    ``forgotten`` counts expired memories as well. ``bytes_used`` counts encoded content and metadata of all versions,
    and vectors; what is archived counts for nothing. ``bytes_limit`` is ``None`` without a plan. ``bytes_counted`` is
    what counts towards the limit: an agent, its user and the user's sessions count together, each wider layer by
    itself; of several, the fullest. The embedding figures count the memories in view, since the opening of the
    database; questions do not count.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add("Prefers dark mode", type="preference", tags=["ui"])
    ...     stats = view.stats()
    >>> stats.active, stats.forgotten, dict(stats.by_type)[MemoryType.PREFERENCE], stats.top_tags[0].tag
    (1, 0, 1, 'ui')
    """

    active: int = 0
    forgotten: int = 0
    archived: int = 0
    superseded: int = 0
    quarantined: int = 0
    bytes_used: int = 0
    bytes_limit: int | None = None
    bytes_counted: int | None = None
    by_type: Mapping[MemoryType, int] = field(default_factory=dict)
    top_tags: tuple[TagUsage, ...] = ()
    oldest: datetime | None = None
    newest: datetime | None = None
    embeddings_made: int = 0
    average_embedding_ms: float = 0.0

    @property
    def percent_used(self) -> float:
        """The used share of the limit in percent; 0 without a limit."""
        counted = self.bytes_used if self.bytes_counted is None else self.bytes_counted
        return 100.0 * counted / self.bytes_limit if self.bytes_limit else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The memories that a bulk forget removed, or would remove (``dry_run``), and the ids for which there was nothing.

    >>> removal = Removal(ids=("a", "b"), permanent=False, failed=("c",))
    >>> removal.count, removal.deleted, removal.failed
    (2, 2, ('c',))
    """

    ids: tuple[str, ...]
    permanent: bool
    dry_run: bool = False
    failed: tuple[str, ...] = ()

    @property
    def deleted(self) -> int:
        """How many memories were forgotten or erased: none in a dry run."""
        return 0 if self.dry_run else len(self.ids)

    @property
    def count(self) -> int:
        """The number of memories."""
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSize:
    """The totals over all owners of a layer: active memories, and all that are not erased with their bytes.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="ada").add("Likes tea")
    ...     _ = memories.view(user="bob").add("Likes cake")
    ...     memories.sizes()["user"].active
    2
    """

    active: int
    total: int
    bytes_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCompleted:
    """The outcome of an operation, as passed to watchers; never with content, keys or queries.

    ``component`` is the class of the operation, ``code`` the error code if it failed, or the class name of a foreign
    exception. ``passed_on`` tells that it failed in another operation that it called, which was reported before.
    ``layer`` is set if the operation concerned one layer, ``count`` if it returned a collection.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     ada = memories.view(user="ada")
    ...     stop = memories.watch(lambda done: print(done.component, done.operation, done.code, done.layer))
    ...     _ = ada.add("Likes tea")
    View add None user
    """

    component: str
    operation: str
    duration_ms: float
    code: str | None = None
    passed_on: bool = False
    layer: Layer | None = None
    count: int | None = None
    agent_id: str | None = None
    session_id: str | None = None


class Status(StrEnum):
    """The health of a component.

    >>> Status.HEALTHY.value
    'healthy'
    """

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The health of one part of the database, and a few words about it.

    >>> Component(status=Status.DEGRADED, message="3 lines are damaged").status.value
    'degraded'
    """

    status: Status = Status.HEALTHY
    message: str = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The result of a health check: overall status, latency of the check, and the components.

    It is unhealthy if the store is, else degraded if any component is not healthy.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     health = memories.health()
    >>> health.status.value, {name: one.status.value for name, one in health.components.items()}
    ('healthy', {'store': 'healthy', 'index': 'healthy', 'embedder': 'healthy', 'handlers': 'healthy'})
    """

    status: Status
    latency_ms: float
    components: Mapping[str, Component] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem found by ``doctor``, and its repair.

    >>> Finding(check="heads", message="2 heads differ", repair="rebuild").repair
    'rebuild'
    """

    check: str
    message: str
    repair: str
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of ``doctor``: the checks made, the problems found, and facts about the store.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     diagnosis = memories.doctor()
    >>> diagnosis.healthy, diagnosis.findings
    (True, ())
    """

    checks: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether no problem was found, or all were repaired."""
        return all(finding.repaired for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionReport:
    """The result of ``convert``: what this call copied, and the totals of the final comparison of everything.

    ``copied`` counts versions, 0 if there was nothing new. ``versions``, ``memories`` and ``owners`` are the totals of
    source and target; erased memories count only as versions. ``checksum`` covers all versions and is the same for
    every copy of the same history. ``damaged`` counts what is left behind because the source cannot read it itself: its
    ``doctor`` says more.

    >>> import wellkept
    >>> with wellkept.open("notes.db") as memories:
    ...     _ = memories.view(user="ada").add("Likes tea")
    >>> report = wellkept.convert("notes.db", "copy.db")
    >>> report.copied, report.versions, report.memories, report.owners
    (1, 1, 1, 1)
    """

    copied: int
    versions: int
    memories: int
    owners: int
    checksum: str
    damaged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of an import: into which session, from which form of an export, and what became of its memories.

    ``known`` ones were here already, ``erased`` ones were erased here and stay so, ``omitted`` ones had been moved out
    of the session before it was exported. ``created`` says that the session is new.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     sessions = memories.view(user="ada").sessions
    ...     exported = sessions.create("monday").export()
    ...     sessions.import_session(exported, "tuesday").created
    True
    """

    session_id: str
    form: str
    created: bool
    added: int
    known: int
    erased: int = 0
    omitted: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """The answer of ``scrub``: where bytes of erased memories may remain, as sentences; nowhere if there are none.

    >>> import wellkept
    >>> with wellkept.open("memory.db") as memories:
    ...     memories.scrub().remains
    ()
    """

    remains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """The answer of ``migrate``: which schema a database had and has, and what the older one could not hold.

    ``copy`` names the copy that was made beside the database before it was changed; ``None`` if nothing was changed.

    >>> MigrationReport(before=2, after=1, losses=("2 labels are dropped",)).losses[0]
    '2 labels are dropped'
    """

    before: int
    after: int
    losses: tuple[str, ...] = ()
    copy: str | None = None
    dry_run: bool = False
