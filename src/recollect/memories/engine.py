"""What a view works with: the store, the embedder, the clock and the bus, and how they act together."""

import threading
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakValueDictionary

from recollect import codec, entitlements, types
from recollect.entitlements import Feature, Plan
from recollect.errors import RecollectError, StoreError
from recollect.events import EventBus
from recollect.ids import ENTROPY, Entropy, uuid7
from recollect.ports import Clock, Embedder, Lexicon, Reranker, Store
from recollect.settings.schema import ListSettings, Settings
from recollect.types import Identity, Layer, Memory, Owner

if TYPE_CHECKING:
    from recollect.instrument import Noted
    from recollect.memories.agent import AgentMemory
    from recollect.recall.calibration import Calibration

ATTEMPTS = 100
"""How often a write is tried again when other writers are faster; each time one of them got through."""

BEHIND = "behind"
"""The setting that says that there are memories without vectors."""

GIVEN = "given"
"""The embedder's name for vectors that callers bring along where no embedder is configured."""

PAGE = ListSettings().page_size
"""How many memories a page has unless somebody asks for more or fewer."""

P = ParamSpec("P")
R = TypeVar("R")


class Actor(Protocol):
    """What has operations: the database, a view, an agent's handle."""

    _engine: "Engine"


S = TypeVar("S", bound=Actor)


def verb(method: Callable[Concatenate[S, P], R], needs: Feature | None = None) -> Callable[Concatenate[S, P], R]:
    """Mark a public operation: errors that leave it carry its name, and watchers are told how it went.

    One that ``needs`` a feature works only where the plan has that.
    """
    name = method.__name__

    @wraps(method)
    def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        engine = self._engine
        try:
            if not engine.bus.watchers:
                if needs is not None and engine.plan is not None:
                    entitlements.check(engine.plan, needs)
                return method(self, *args, **kwargs)
            from recollect import instrument  # lazy: most processes are not watched

            with instrument.timing(engine.bus, type(self).__name__, name) as noted:
                _note_actor(noted, self)
                if needs is not None:
                    entitlements.check(engine.plan, needs)
                result = method(self, *args, **kwargs)
                _note_result(noted, result)
                return result
        except RecollectError as error:
            error.operation = error.operation or name
            if isinstance(error, StoreError):
                from recollect import logs  # lazy: logging takes 14 ms, and stores seldom fail

                logs.store_failed(type(self).__name__, name, error)
            raise

    return wrapped


def _note_actor(noted: "Noted", actor: Actor) -> None:
    """Who acts, and in which layer if it sees only one."""
    identity: Identity | None = getattr(actor, "identity", None)
    if identity is not None:
        noted.agent_id, noted.session_id = identity.agent, identity.session
    seen: tuple[Layer, ...] = getattr(actor, "layers", ())
    if len(seen) == 1:
        noted.layer = seen[0]


def _note_result(noted: "Noted", result: object) -> None:
    """The layer and the number of what an operation returned, if it says so."""
    if isinstance(result, Memory):
        noted.layer = result.owner.layer
    elif isinstance(result, Sized):
        noted.count = len(result)


class Embeddings:
    """What an open database knows of its embeddings: their number and time since opening, and their name.

    ``behind`` says that some memories wait for their vectors, ``down`` that the embedder did not answer the last time,
    ``scale`` what the cosines of the embedder mean, and ``unscaled`` how many searches had to do without that.
    """

    def __init__(self) -> None:
        self.made = 0
        self.seconds = 0.0
        self.name: str | None = None
        self.behind = False
        self.down = False
        self.scale: Calibration | None = None
        self.unscaled = 0
        self._lock = threading.Lock()

    def add(self, made: int, seconds: float) -> None:
        """Count a batch."""
        with self._lock:
            self.made += made
            self.seconds += seconds


@dataclass(slots=True, kw_only=True)
class Engine:
    """The parts of an open database. Views share it, so that all of them go over to another embedder at once."""

    store: Store
    clock: Clock
    embedder: Embedder | None = None
    bus: EventBus = field(default_factory=EventBus)
    embeddings: Embeddings = field(default_factory=Embeddings)
    entropy: Callable[[int], bytes] = field(default_factory=Entropy)
    sleep: Callable[[float], None] = time.sleep
    reranker: Reranker | None = None
    lexicon: Lexicon | None = None
    plan: Plan | None = None
    settings: Settings = field(default_factory=Settings)
    agents: "WeakValueDictionary[int, AgentMemory]" = field(default_factory=WeakValueDictionary)
    crowded: dict[Owner, int] = field(default_factory=dict)  # sessions that compaction cannot help until they hold more

    @property
    def defaults(self) -> "types.SessionConfig":
        """How sessions are configured unless they say otherwise."""
        return self.settings.session_config(self.store.session_defaults() or types.SessionConfig())

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
            self.embeddings.name = self.store.settings().get("embedder")
        return self.embeddings.name or GIVEN
