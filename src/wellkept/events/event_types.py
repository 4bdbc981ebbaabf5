"""The events: immutable typed values."""

from dataclasses import dataclass
from datetime import datetime

from wellkept.types import Layer, MemoryType, Owner
from wellkept.types.representation import hiding


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events. A handler for ``Event`` receives every event.

    >>> from datetime import UTC
    >>> Event(at=datetime(2026, 1, 7, tzinfo=UTC)).at.year
    2026
    """

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStored(Event):
    """A memory was added. ``content_length`` is the length of its content in bytes, as UTF-8.

    >>> import wellkept
    >>> heard = []
    >>> with wellkept.open("ram:") as memories:
    ...     _ = memories.on(MemoryStored, heard.append)
    ...     _ = memories.view(user="ada").add("Prefers tea")
    >>> heard[0].content_length
    11
    """

    memory_id: str
    owner: Owner
    type: MemoryType
    importance: float
    content_length: int
    encrypted: bool = False
    embedding_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRetrieved(Event):
    """A memory was read by its id. ``was_decrypted``: its content had to be decrypted for that.

    >>> MemoryRetrieved.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    type: MemoryType
    was_decrypted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated(Event):
    """A memory got a new version.

    >>> MemoryUpdated.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryForgotten(Event):
    """A memory was forgotten, or erased if ``permanent``.

    >>> MemoryForgotten.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    permanent: bool
    reason: str | None = None

    __repr__ = hiding("reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryArchived(Event):
    """A memory was archived: it is kept, but takes no part in recall, and its bytes count for nothing.

    >>> MemoryArchived.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    reason: str | None = None

    __repr__ = hiding("reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuarantined(Event):
    """A memory was put into quarantine: it takes no part in recall until somebody releases or erases it.

    >>> MemoryQuarantined.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRestored(Event):
    """A forgotten or archived memory is active again.

    >>> MemoryRestored.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesMerged(Event):
    """Memories that say the same were replaced by one. The sources are superseded by it.

    >>> MemoriesMerged.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    source_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPromoted(Event):
    """A memory of a session that ended was copied to the layer of its user, whose is the new memory.

    >>> MemoryPromoted.__mro__[1] is Event
    True
    """

    memory_id: str
    owner: Owner
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCompleted(Event):
    """A search has completed. ``owners`` are those whose memories were searched, the most specific first.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.on(SearchCompleted, lambda event: print([owner.ids for owner in event.owners]))
    ...     _ = memories.view(user="ada", project="api").search("tea")
    [('ada',), ('api',)]
    """

    owners: tuple[Owner, ...]
    query: str
    result_count: int
    duration_ms: float
    layers: tuple[Layer, ...]

    __repr__ = hiding("query")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWarning(Event):
    """A write used at least 80 % of the plan's limit; emitted after each write that can grow the usage.

    ``owners`` are those whose memories count together: an agent, its user and the user's sessions, or a wider layer.

    >>> import wellkept
    >>> heard = []
    >>> small = wellkept.entitlements.Plan(name="Small", features=["long_term_memory"], limit_bytes=200)
    >>> with wellkept.open("ram:", embedder=None, plan=small) as memories:
    ...     _ = memories.on(QuotaWarning, heard.append)
    ...     _ = memories.view(user="ada").add("Prefers tea " * 14)
    >>> heard[0].percent_used > 80, heard[0].bytes_limit
    (True, 200)
    """

    plan: str
    owners: tuple[Owner, ...]
    bytes_used: int
    bytes_limit: int
    percent_used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCompacted(Event):
    """A session was compacted, on request or because it was nearly full (``automatic``).

    ``archived`` and ``erased`` count memories; only a purge erases. ``condensed`` ones lost verbose metadata.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.on(SessionCompacted, lambda event: print(event.session_id, event.erased, event.automatic))
    ...     session = memories.view(user="ada").sessions.create("monday")
    ...     _ = session.view.forget(session.view.add("Use OAuth").id)
    ...     _ = session.compact(purge=True)
    monday 1 False
    """

    owner: Owner
    session_id: str
    archived: int
    erased: int
    condensed: int
    bytes_before: int
    bytes_after: int
    automatic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemorySet(Event):
    """A key of an agent's working memory was set. Without ``scope_id``, on the root level.

    >>> WorkingMemorySet.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    key: str
    type_name: str
    is_update: bool
    scope_id: str | None = None
    scope_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryRemoved(Event):
    """A key was removed from working memory, or moved from a scope to its parent.

    >>> WorkingMemoryRemoved.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    key: str
    scope_id: str | None = None
    scope_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryCleared(Event):
    """All entries of the root level of a working memory were removed.

    >>> WorkingMemoryCleared.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    entries_cleared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingScopeCreated(Event):
    """A scope of working memory was created. Without ``parent_id``, its parent is the root level.

    >>> WorkingScopeCreated.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    scope_id: str
    scope_name: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingScopeDisposed(Event):
    """A scope of working memory was disposed; ``entries_cleared`` counts its own entries.

    >>> WorkingScopeDisposed.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    scope_id: str
    scope_name: str
    entries_cleared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextComposed(Event):
    """A prompt was composed; ``included`` and ``left_out`` count items and recalled memories.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.on(ContextComposed, lambda event: print(event.included, event.left_out))
    ...     me = memories.agent("debugger")
    ...     _ = me.context.add("user", "Tea or coffee?")
    ...     _ = me.context.compose()
    1 0
    """

    agent_id: str
    user_id: str
    budget_tokens: int
    total_tokens: int
    included: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted(Event):
    """A context window was compacted; ``dropped`` and ``summarised`` count items.

    >>> ContextCompacted.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    strategy: str
    tokens_before: int
    tokens_after: int
    dropped: int
    summarised: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCreated(Event):
    """A snapshot of an agent's state was created; ``working_entries`` counts the entries of all scopes.

    >>> SnapshotCreated.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    working_entries: int
    context_items: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRestored(Event):
    """An agent's state was restored from a snapshot.

    >>> SnapshotRestored.__mro__[1] is Event
    True
    """

    agent_id: str
    user_id: str
    working_entries: int
    context_items: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFailed(Event):
    """An entry could not be written into the audit log ``file``, for the reason ``error``, such as ``ENOSPC``.

    ``refused`` says that the operation ``verb`` was refused for it; otherwise it was done, and its entry is missing.

    >>> AuditFailed.__mro__[1] is Event
    True
    """

    verb: str
    file: str
    error: str
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCleanupCompleted(Event):
    """A run of retention has ended. ``entries_deleted`` counts memories that were forgotten or erased.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.on(RetentionCleanupCompleted, lambda event: print(event.entries_deleted, event.automatic))
    ...     _ = memories.upkeep.run()
    0 False
    """

    run_id: str
    entries_deleted: int
    snapshots_deleted: int
    bytes_freed: int
    duration_ms: float
    automatic: bool
