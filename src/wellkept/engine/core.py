"""What operations work with: the store, the embedder, the clock and the bus, and how a public operation runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from wellkept import authorization, codec, entitlements, instrument, logs, open_files
from wellkept.engine.circuit_breaker import CircuitBreaker
from wellkept.engine.journal import (
    ADMINISTRATOR,
    BOOKKEEPING,
    Bookkeeping,
    Caller,
    EngineJournal,
    EngineRecords,
    Shared,
)
from wellkept.entitlements import Feature, Plan
from wellkept.errors import WellkeptError
from wellkept.events import EventBus
from wellkept.ids import ENTROPY, Entropy, StampClock, uuid7
from wellkept.ports import (
    Clock,
    Embedder,
    Images,
    Index,
    Journal,
    Keyring,
    Lexicon,
    Reranker,
    Store,
)
from wellkept.sensitivity import Detector
from wellkept.settings.schema import ListSettings, Settings
from wellkept.types import (
    Access,
    Component,
    Grant,
    Identity,
    Layer,
    Memory,
    Need,
    Owner,
    Quota,
    SessionConfig,
    Stamp,
    Stored,
    Write,
)

if TYPE_CHECKING:
    from wellkept.recall.calibration import Calibration

ATTEMPTS = 100
"""How often a write is tried again when other writers are faster; each time one of them got through."""

BEHIND = "behind"
"""The setting that says that there are memories without vectors."""

GIVEN = "given"
"""The embedder's name for vectors that callers bring along where no embedder is configured."""

PAGE = ListSettings().page_size
"""How many memories a page has unless somebody asks for more or fewer."""

_BUFFERED = 1_000
_MOST_BUFFERED = 100_000  # while the store cannot be written: some 20 MB
_PATIENCE_MS = 20  # of a read that wants its counts written: as long as a usual commit
_CLOSING_MS = 1_000
_COUNTED = 10_000  # owners whose embeddings are counted

P = ParamSpec("P")
R = TypeVar("R")


class Actor(Protocol):
    """What has operations: the database, a view, an agent's handle.

    Its name in the audit log is that of its class, or ``_audited_as`` if it has that.
    """

    _engine: Engine


S = TypeVar("S", bound=Actor)


class Audited(Enum):
    """When an operation is entered in the audit log: ``AS_READ`` where the settings ask for reads, ``IF_DONE`` if it
    did something.
    """

    NEVER = "never"
    AS_READ = "as read"
    ALWAYS = "always"
    IF_DONE = "if done"


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared of an operation, once, at its method.

    ``changes`` names the arguments that change the ``need`` when they are set: the first of them that is decides.
    ``announced``: where nothing may be done without an entry, there is one before it runs. ``takes_id``: its first
    argument is an id. ``feature`` is what the plan must include.
    """

    name: str
    need: Need
    changes: tuple[tuple[str, Need], ...]
    audited: Audited
    announced: bool
    takes_id: bool
    feature: Feature | None

    def needed(self, given: Mapping[str, object]) -> Need:
        """What a call with these keyword arguments needs."""
        for argument, need in self.changes:
            if given.get(argument) is True:  # what is no flag is refused by the method
                return need
        return self.need


def operation(
    need: Need,
    *,
    audited: Audited | None = None,
    announced: bool = True,
    feature: Feature | None = None,
    **changes: Need,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Mark a public operation, and declare what it needs: a grant, and a feature of the plan if it has one.

    Errors that leave it carry its name, and watchers are told how it went. ``changes`` names keyword arguments of the
    method that change the need when they are set: one that lowers it, such as ``dry_run=Need.READ``, before one that
    raises it, such as ``permanent=Need.ERASE``. What needs no more than reading is entered in the audit log as a read,
    and all else always, unless ``audited`` says otherwise.
    """
    ordered = tuple(sorted(changes.items(), key=lambda change: change[1].covers(need)))  # those that lower it first
    entered = audited or (Audited.AS_READ if need is Need.READ else Audited.ALWAYS)

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        code = method.__code__
        takes_id = code.co_argcount > 1 and f"_{code.co_varnames[1]}".endswith("_id")
        declared = Declared(method.__name__, need, ordered, entered, announced, takes_id, feature)

        @wraps(method)
        def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            audit = self._engine.live.audit
            if audit is None:
                return run(self, *args, **kwargs)
            return audit.over(self, declared, args, lambda: run(self, *args, **kwargs))

        def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            engine = self._engine
            calls = engine.calls
            calls.depth += 1
            try:
                if not engine.bus.watchers:
                    _permit(engine, declared, kwargs)
                    return method(self, *args, **kwargs)
                with instrument.timing(engine.bus, type(self).__name__, declared.name) as noted:
                    _note_actor(noted, self)
                    _permit(engine, declared, kwargs)
                    result = method(self, *args, **kwargs)
                    _note_result(noted, result)
                    return result
            except WellkeptError as error:
                if not error.operation:
                    error.operation = declared.name
                    logs.operation_failed(type(self).__name__, declared.name, error)
                raise
            except (OSError, ImportError) as error:  # of a module that is imported on demand
                told = open_files.too_many(error)
                if told is None:
                    raise
                told.operation = declared.name
                logs.operation_failed(type(self).__name__, declared.name, told)
                raise told from error
            finally:
                calls.depth -= 1
                if not calls.depth:
                    calls.write_id = None

        wrapped.declared = declared  # type: ignore[attr-defined]  # the audit log and the table of verbs read it
        return wrapped

    return decorate


def long_term(
    need: Need, *, audited: Audited | None = None, **changes: Need
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Mark an operation of long-term memory: it works only where the plan has that."""
    return operation(need, audited=audited, announced=True, feature=Feature.LONG_TERM_MEMORY, **changes)


def _permit(engine: Engine, declared: Declared, given: Mapping[str, object]) -> None:
    """Refuse what the grant or the plan does not allow."""
    if (grant := engine.journal.grant) is not None:
        authorization.check(grant, declared.needed(given), engine.clock())
    if declared.feature is not None and engine.plan is not None:
        entitlements.check(engine.plan, declared.feature)


def _note_actor(noted: instrument.Noted, actor: Actor) -> None:
    """Who acts, and in which layer if it sees only one."""
    identity: Identity | None = getattr(actor, "identity", None)
    if identity is not None:
        noted.agent_id, noted.session_id = identity.agent, identity.session
    seen: tuple[Layer, ...] = getattr(actor, "layers", ())
    if len(seen) == 1:
        noted.layer = seen[0]


def _note_result(noted: instrument.Noted, result: object) -> None:
    """The layer and the number of what an operation returned, if it says so."""
    if isinstance(result, Memory):
        noted.layer = result.owner.layer
    elif isinstance(result, Sized):
        noted.count = len(result)


class Audit(Protocol):
    """What an operation passes through if it is to be entered in the audit log: see ``wellkept.privacy.audit``."""

    def over(self, actor: Actor, declared: Declared, args: tuple[object, ...], run: Callable[[], R]) -> R:
        """Run an operation and enter it, whether it succeeds or not."""

    def health(self) -> Component:
        """Whether the log can be written."""

    def close(self) -> None:
        """Release the log."""


class SessionLimits(Protocol):
    """What the engine asks about sessions when it writes into one: see ``wellkept.sessions.limits``."""

    def append(self, engine: Engine, writes: Sequence[Write], quotas: Sequence[Quota]) -> None:
        """Append within the limit of every session, after making room where that is needed and allowed."""

    def forget(self, session: Owner) -> None:
        """Read the configuration of a session anew."""


class Calls(threading.local):
    """The call of the surface that a thread is in: how many calls deep, and the id of what it writes."""

    depth = 0
    write_id: str | None = None


class Embeddings:
    """What an open database knows of its embeddings: their number and time since opening by owner, and their name.

    ``behind`` says that some memories wait for their vectors, ``lost`` that the store lost some, ``breaker`` whether
    the embedder may be asked, ``answered_at`` when it answered last, ``scale`` what its cosines mean, and ``unscaled``
    how many searches had to do without that.
    """

    def __init__(self) -> None:
        self._made: dict[Owner, tuple[int, float]] = {}
        self.name: str | None = None
        self.behind = False
        self.lost = False
        self.breaker = CircuitBreaker()
        self.answered_at: datetime | None = None
        self.scale: Calibration | None = None
        self.unscaled = 0
        self._lock = threading.Lock()

    def add(self, owner: Owner, made: int, seconds: float) -> None:
        """Count embeddings of an owner's memories; of more than ``_COUNTED`` owners, only the last ones are known."""
        with self._lock:
            before, took = self._made.pop(owner, (0, 0.0))
            self._made[owner] = before + made, took + seconds
            if len(self._made) > _COUNTED:
                del self._made[next(iter(self._made))]

    def of(self, owners: Iterable[Owner]) -> tuple[int, float]:
        """How many embeddings were made of the memories of some owners, and how many seconds they took."""
        with self._lock:
            found = [self._made.get(owner, (0, 0.0)) for owner in owners]
        return sum(made for made, _ in found), sum(seconds for _, seconds in found)


class AccessBuffer:
    """Counts reads of memories, and hands them to the journal now and then. Bookkeeping: a crash may lose some.

    A read neither fails nor waits because of it: what cannot be written now is kept, and written later.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pending: dict[tuple[Owner, str], tuple[int, int]] = {}
        self._due = _BUFFERED  # with so many memories it is time to write
        self._told = 0  # what the log was told since it was written last: 1 that it is put off, 2 that some are lost

    def count(self, memories: Sequence[Stored], micros: int) -> list[Stored]:
        """One read of each memory; the memories with the reads that the journal has not heard of before this one."""
        found = []
        with self._lock:
            pending = self._own()
            for one in memories:
                place = (one.owner, one.id)
                known = pending.get(place)
                if known is None:
                    pending[place] = (1, micros)
                    found.append(one)
                else:
                    pending[place] = (known[0] + 1, micros)
                    found.append(one._replace(access_count=one.access_count + known[0], last_accessed_at=known[1]))
            full = len(pending) >= self._due
        if full:
            self.flush(wait_ms=0)
        return found

    def _own(self) -> dict[tuple[Owner, str], tuple[int, int]]:
        """What is pending; what was counted before a fork is the parent's to write."""
        if os.getpid() != self._process:
            self._process, self._pending, self._due = os.getpid(), {}, _BUFFERED
        return self._pending

    def add(self, access: Access) -> None:
        """Count reads that were counted elsewhere before."""
        with self._lock:
            _merge(self._own(), {(access.owner, access.id): (access.times, access.last_at)})

    def dressed(self, one: Stored) -> Stored:
        """A memory with the reads that the journal has not heard of yet."""
        pending = self._pending.get((one.owner, one.id))
        if pending is None or os.getpid() != self._process:
            return one
        return one._replace(access_count=one.access_count + pending[0], last_accessed_at=pending[1])

    def flush(self, *, wait_ms: int = _PATIENCE_MS) -> None:
        """Write what is pending, as before an answer that depends on it; where that fails, it is put off."""
        with self._lock:
            pending = self._own()
            if not pending:
                return
            self._pending, self._due = {}, _BUFFERED
        counted = [Access(owner, memory_id, *reads) for (owner, memory_id), reads in pending.items()]
        try:
            self._journal.count_accesses(counted, wait_ms=wait_ms)
        except WellkeptError as error:
            self._put_off(pending, error)
        else:
            self._told = 0

    def _put_off(self, pending: dict[tuple[Owner, str], tuple[int, int]], error: WellkeptError) -> None:
        """Keep what was not written for the next time. What may have been written is not written twice."""
        if error.details.get("outcome") == "unknown":
            logs.accesses_lost(len(pending), error.code)
            return
        with self._lock:
            _merge(pending, self._own())
            excess = max(len(pending) - _MOST_BUFFERED, 0)
            for oldest in list(islice(pending, excess)):
                del pending[oldest]
            self._pending, self._due = pending, len(pending) + max(_BUFFERED, len(pending) // 10)
            told, self._told = self._told, max(self._told, 2 if excess else 1)
        if excess and told < 2:
            logs.accesses_lost(excess, error.code)
        elif not told:
            logs.accesses_put_off(len(pending), error.code)

    def close(self) -> None:
        """Write what is pending, or give it up."""
        self.flush(wait_ms=_CLOSING_MS)
        with self._lock:
            lost = len(self._own())
            self._pending = {}
        if lost:
            logs.accesses_lost(lost, "CLOSED")


def _merge(
    pending: dict[tuple[Owner, str], tuple[int, int]], later: Mapping[tuple[Owner, str], tuple[int, int]]
) -> None:
    """Add reads to others; what was read last comes last."""
    for place, (times, last_at) in later.items():
        before, before_at = pending.pop(place, (0, 0))
        pending[place] = before + times, max(before_at, last_at)


@dataclass(slots=True, kw_only=True)
class Live:
    """What may change while a database is open, for all callers at once. Without a ``chosen_index``, the index is the
    store's.
    """

    embedder: Embedder | None = None
    lexicon: Lexicon | None = None
    embeddings: Embeddings = field(default_factory=Embeddings)
    chosen_index: Index | None = None
    index: Index | None = None  # made when it is first asked for
    audit: Audit | None = None


@dataclass(kw_only=True)
class Engine:
    """The parts of an open database, as one caller may use them: ``journal`` and ``records`` hold the caller to the
    grant. All else is the same for all callers.

    It works with a journal, records and an index, wherever they come from; what concerns all that is stored, such as
    health and repairs, is asked of ``store``.
    """

    caller: Caller | Bookkeeping
    store: Store
    shared: Shared
    stamps: StampClock
    live: Live = field(default_factory=Live)
    calls: Calls = field(default_factory=Calls)
    bus: EventBus = field(default_factory=EventBus)
    entropy: Callable[[int], bytes] = field(default_factory=Entropy)
    reranker: Reranker | None = None
    plan: Plan | None = None
    settings: Settings = field(default_factory=Settings)
    session_limits: SessionLimits | None = None
    detectors: tuple[Detector, ...] = ()
    quotas_told: dict[frozenset[Owner], int] = field(default_factory=dict)  # the percentages that were logged last
    accesses: AccessBuffer = field(init=False)
    clock: Clock = field(init=False)
    journal: EngineJournal = field(init=False)
    records: EngineRecords = field(init=False)

    def __post_init__(self) -> None:
        self.clock = self.shared.clock
        self.accesses = AccessBuffer(EngineJournal(self.shared, BOOKKEEPING))
        self._hold_to(self.caller)

    def acting(self, caller: Caller | Bookkeeping) -> Engine:
        """The engine of another caller."""
        engine = copy(self)
        engine._hold_to(caller)
        return engine

    def _hold_to(self, caller: Caller | Bookkeeping) -> None:
        self.caller = caller
        self.journal = EngineJournal(self.shared, caller)
        self.records = EngineRecords(self.shared, caller)

    def check(self, need: Need, owners: Iterable[Owner]) -> None:
        """Raise ``Unauthorized`` unless the caller's grant allows this now."""
        self.journal.check(need, owners)

    @property
    def grant(self) -> Grant:
        """What the caller may do."""
        return self.journal.grant or ADMINISTRATOR.grant

    @property
    def embedder(self) -> Embedder | None:
        """What makes vectors, if anything does."""
        return self.live.embedder

    @property
    def lexicon(self) -> Lexicon | None:
        """What knows words by their pieces."""
        return self.live.lexicon

    @property
    def embeddings(self) -> Embeddings:
        """What is known of the embeddings."""
        return self.live.embeddings

    @property
    def audit(self) -> Audit | None:
        """What enters operations into the audit log."""
        return self.live.audit

    @property
    def keyring(self) -> Keyring | None:
        """The keys that encrypt memories, if there are any."""
        return self.shared.cipher.keyring

    def use_keyring(self, keyring: Keyring) -> None:
        """Encrypt from now on."""
        self.shared.cipher.use(keyring)
        self.live.index = None

    @property
    def index(self) -> Index:
        """The index that searches ask, made when it is first asked for. What is encrypted in the store is neither in an
        index that keeps it elsewhere nor in an image.
        """
        if self.live.index is None:
            self.live.index = _index(self.base_index, self.store.images, self.keyring)
        return self.live.index

    @property
    def base_index(self) -> Index | None:
        """The chosen index, or that of the store; without one, memories are indexed in RAM."""
        return self.store.index if self.live.chosen_index is None else self.live.chosen_index

    @property
    def defaults(self) -> SessionConfig:
        """How sessions are configured unless they say otherwise."""
        return self.settings.session_config(self.store.session_defaults() or SessionConfig())

    def write_id(self, stamp: Stamp) -> str:
        """The id of the write that a version belongs to: the first stamp that was made in this call of the surface."""
        calls = self.calls
        if not calls.depth:
            return stamp
        if calls.write_id is None:
            calls.write_id = stamp
        return calls.write_id

    def new_ids(self, now: datetime, count: int) -> list[str]:
        """Fresh, time-ordered ids."""
        time_ms = codec.to_micros(now) // 1000
        random = self.entropy(ENTROPY * count)
        return [uuid7(time_ms, random[start : start + ENTROPY]) for start in range(0, ENTROPY * count, ENTROPY)]

    def vector_name(self) -> str:
        """The embedder that vectors given by callers are counted to."""
        if self.embedder is not None:
            return self.embedder.name
        if self.embeddings.name is None:
            # Once there is a vector, the name stands; before, another process may still decide it.
            self.embeddings.name = self.journal.settings().get("embedder")
        return self.embeddings.name or GIVEN

    def note_quota(self, owners: frozenset[Owner], percent: int) -> bool:
        """Remember what the log hears of a quota; whether it is another percentage than the last time."""
        if self.quotas_told.get(owners) == percent:
            return False
        if len(self.quotas_told) >= _COUNTED:
            self.quotas_told.clear()
        self.quotas_told[owners] = percent
        return True

    def allows(self, feature: Feature) -> bool:
        """Whether the plan includes a feature. Without a plan everything is included."""
        return self.plan is None or self.plan.allows(feature)

    def require(self, feature: Feature) -> None:
        """Refuse what the plan does not include."""
        entitlements.check(self.plan, feature)


def _index(base: Index | None, images: Images | None, keyring: Keyring | None) -> Index:
    if base is not None and keyring is not None:
        from wellkept.indexes.private import PrivateIndex  # lazy: numpy takes 100 ms, and many processes never search

        return PrivateIndex(base, keyring)
    if base is not None:
        return base
    from wellkept.indexes.ram import RamIndex  # lazy: as above

    if images is None or keyring is None:
        return RamIndex(images)
    from wellkept.indexes.private import EncryptedImages  # lazy: as above

    return RamIndex(EncryptedImages(images, keyring))
