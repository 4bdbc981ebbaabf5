"""Upkeep: what a run would do, what it did, and what it must not touch."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from wellkept.types.memory import State
from wellkept.types.owners import Owner
from wellkept.types.query import Filter
from wellkept.types.representation import hiding


class UpkeepJob(StrEnum):
    """The jobs of upkeep.

    >>> [job.value for job in UpkeepJob]
    ['retention', 'consolidation', 'session_end', 'compaction', 'quarantine']
    """

    RETENTION = "retention"
    CONSOLIDATION = "consolidation"
    SESSION_END = "session_end"
    COMPACTION = "compaction"
    QUARANTINE = "quarantine"


class UpkeepAction(StrEnum):
    """What a step of upkeep does to a memory. Only ``erase`` cannot be undone.

    ``merge`` supersedes it by a memory that says the same, ``promote`` copies it to the layer of its user.

    >>> UpkeepAction("forget").name
    'FORGET'
    """

    ARCHIVE = "archive"
    FORGET = "forget"
    ERASE = "erase"
    RESTORE = "restore"
    MERGE = "merge"
    PROMOTE = "promote"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepStep:
    """One memory of a plan: the version and the state that it had, what is done to it, and why.

    ``bytes_used`` is the size of the memory with all its versions, without its vector. ``into`` is the id of the memory
    that a merge or a promotion makes.

    >>> from wellkept.types import Layer
    >>> step = UpkeepStep(
    ...     memory_id="m1",
    ...     owner=Owner(Layer.USER, ("ada",)),
    ...     version=1,
    ...     state=State.FORGOTTEN,
    ...     action=UpkeepAction.ERASE,
    ...     reason="forgotten 90 days ago",
    ...     bytes_used=120,
    ... )
    >>> step.undoable, step.bytes_freed
    (False, 120)
    """

    memory_id: str
    owner: Owner
    version: int
    state: State
    action: UpkeepAction
    reason: str
    bytes_used: int
    into: str | None = None

    @property
    def undoable(self) -> bool:
        """Whether ``undo`` can take the step back."""
        return self.action is not UpkeepAction.ERASE

    @property
    def bytes_freed(self) -> int:
        """The bytes that no longer count towards limits: what is forgotten still does."""
        return self.bytes_used if self.action in (UpkeepAction.ERASE, UpkeepAction.ARCHIVE) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Memories that say the same, and the text of the one that replaces them.

    ``differing`` are the words that not all of them have. ``proposed``: a summariser wrote the text; otherwise it is
    that of one of the sources.

    >>> from wellkept.types import Layer
    >>> ada = Owner(Layer.USER, ("ada",))
    >>> Merge(id="m3", owner=ada, content="Likes the tea", sources=("m1", "m2"), differing=("the",)).proposed
    False
    """

    id: str
    owner: Owner
    content: str
    sources: tuple[str, ...]
    differing: tuple[str, ...]
    proposed: bool = False

    __repr__ = hiding("content", "differing")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerShare:
    """How many of the memories of an owner a plan takes out of recall or erases.

    >>> from wellkept.types import Layer
    >>> OwnerShare(owner=Owner(Layer.USER, ("ada",)), memories=40, taken=10, erased=0, bytes_freed=0).share
    0.25
    """

    owner: Owner
    memories: int
    taken: int
    erased: int
    bytes_freed: int

    @property
    def share(self) -> float:
        """The share that is taken, from 0 to 1."""
        return self.taken / self.memories if self.memories else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepPlan:
    """What a run would do, and to whom. Making it changes nothing; ``memories.upkeep.apply`` takes it, once.

    ``owners`` are all that the job looked at; ``errors`` has a line for each that could not be read. ``merges`` are the
    memories that a consolidation would make, ``notes`` what a summariser did wrong, so that its text is not used.
    ``clock_doubt`` says why the clock is doubtful, if it is: then the plan is not applied unless the caller vouches for
    the clock. ``sessions`` counts, of users whose sessions end, the sessions instead of memories.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     plan = memories.upkeep.plan()
    >>> plan.steps, plan.bytes_freed
    ((), 0)
    """

    id: str
    job: UpkeepJob
    made_at: datetime
    steps: tuple[UpkeepStep, ...]
    owners: tuple[OwnerShare, ...]
    errors: tuple[str, ...] = ()
    clock_doubt: str | None = None
    merges: tuple[Merge, ...] = ()
    sessions: tuple[OwnerShare, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes_freed(self) -> int:
        """The bytes that no longer count towards limits afterwards, without vectors."""
        return sum(step.bytes_freed for step in self.steps)

    def count(self, action: UpkeepAction) -> int:
        """How many memories an action is planned for."""
        return sum(step.action is action for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepRun:
    """What a run did. ``completed_at`` is ``None`` if it was interrupted; it can be undone all the same.

    ``errors`` has a line for each owner that failed or was left out; the others were processed. ``merged`` counts the
    memories that were replaced by one that says the same. ``undone_at`` is when it was undone.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     run = memories.upkeep.run()
    >>> run.owners_processed, run.errors
    (0, ())
    """

    id: str
    job: UpkeepJob
    started_at: datetime
    completed_at: datetime | None = None
    working_removed: int = 0
    forgotten: int = 0
    erased: int = 0
    archived: int = 0
    restored: int = 0
    merged: int = 0
    promoted: int = 0
    quarantined: int = 0
    snapshots_removed: int = 0
    bytes_freed: int = 0
    owners_processed: int = 0
    errors: tuple[str, ...] = ()
    automatic: bool = False
    undone_at: datetime | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What an undo brought back, and the ids of erased memories, which stay erased. ``removed`` are the memories that
    the run had made, by a merge or a promotion: they are gone.

    >>> Undone(run_id="r1", ids=("m1",), erased=()).ids
    ('m1',)
    """

    run_id: str
    ids: tuple[str, ...]
    erased: tuple[str, ...]
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What upkeep must not touch and nobody may erase: the memories of an owner, or of all, that match a filter.

    >>> import wellkept
    >>> from wellkept.types import Filter
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     hold = memories.upkeep.hold(Filter(tags=["legal"]), reason="case 17")
    >>> hold.reason, hold.owner
    ('case 17', None)
    """

    id: str
    filter: Filter
    reason: str
    placed_at: datetime
    owner: Owner | None = None
