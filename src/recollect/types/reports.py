"""What the database says about itself: statistics, health, and what a check found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from recollect.types.memory import MemoryType
from recollect.types.owners import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class TagUsage:
    """A tag and how many active memories carry it.

    >>> TagUsage(tag="style", count=2).count
    2
    """

    tag: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Statistics of the memories in a view.

    ``bytes_used`` counts content and metadata as encoded, and vectors. ``bytes_limit`` is ``None`` without a
    plan. The embedding figures are those of the open database since it was opened.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add("Prefers dark mode", type="preference", tags=["ui"])
    ...     stats = view.stats()
    >>> stats.active, stats.forgotten, dict(stats.by_type)[MemoryType.PREFERENCE], stats.top_tags[0].tag
    (1, 0, 1, 'ui')
    """

    active: int = 0
    forgotten: int = 0
    bytes_used: int = 0
    bytes_limit: int | None = None
    by_type: Mapping[MemoryType, int] = field(default_factory=dict)
    top_tags: tuple[TagUsage, ...] = ()
    oldest: datetime | None = None
    newest: datetime | None = None
    embeddings_made: int = 0
    average_embedding_ms: float = 0.0

    @property
    def percent_used(self) -> float:
        """How much of the limit is used, in percent; 0 without a limit."""
        return 100.0 * self.bytes_used / self.bytes_limit if self.bytes_limit else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What forgetting many memories at once took, or would take if it was only tried (``dry_run``).

    >>> Removal(ids=("a", "b"), permanent=False).count
    2
    """

    ids: tuple[str, ...]
    permanent: bool
    dry_run: bool = False

    @property
    def count(self) -> int:
        """How many memories."""
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSize:
    """What all owners of a layer hold together: active memories, and the bytes of all, forgotten ones too.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="ada").add("Likes tea")
    ...     _ = memories.view(user="bob").add("Likes cake")
    ...     memories.sizes()["user"].active
    2
    """

    active: int
    bytes_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCompleted:
    """How an operation went, for those who watch: never with content, keys or queries.

    ``component`` is the class it belongs to, ``code`` that of the error if it failed: one of Recollect's, or the name
    of a foreign exception. ``layer`` is there if the operation was about one layer, ``count`` if it returned several.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     ada = memories.view(user="ada")
    ...     stop = memories.watch(lambda done: print(done.component, done.operation, done.code, done.layer))
    ...     _ = ada.add("Likes tea")
    View add None user
    """

    component: str
    operation: str
    duration_ms: float
    code: str | None = None
    layer: Layer | None = None
    count: int | None = None
    agent_id: str | None = None
    session_id: str | None = None


class Status(StrEnum):
    """How well a part is.

    >>> Status.HEALTHY.value
    'healthy'
    """

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the database can work now, how long it took to find out, and its components.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     memories.health().status.value
    'healthy'
    """

    status: Status
    latency_ms: float
    components: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that ``doctor`` found wrong, and what repairs it.

    >>> Finding(check="heads", message="2 heads differ", repair="rebuild").repair
    'rebuild'
    """

    check: str
    message: str
    repair: str
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer of ``doctor``: what was checked, what was found, and facts worth knowing.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     diagnosis = memories.doctor()
    >>> diagnosis.healthy, diagnosis.findings
    (True, ())
    """

    checks: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong, or everything wrong was repaired."""
        return all(finding.repaired for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionReport:
    """The answer of ``convert``: what this call copied, and what was compared in the end, which is everything.

    ``copied`` counts versions: 0 if there was nothing new. ``versions``, ``memories`` and ``owners`` are what source
    and target hold now, erased memories counting only as versions; ``checksum`` is over all versions, and the same for
    every copy of the same history.

    >>> import recollect
    >>> with recollect.open("notes.db") as memories:
    ...     _ = memories.view(user="ada").add("Likes tea")
    >>> report = recollect.convert("notes.db", "copy.db")
    >>> report.copied, report.versions, report.memories, report.owners
    (1, 1, 1, 1)
    """

    copied: int
    versions: int
    memories: int
    owners: int
    checksum: str
