"""What a view works with: the store, the embedder, the clock and the bus, and how they act together."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from recollect import codec
from recollect.calibration import Calibration
from recollect.errors import RecollectError
from recollect.events import EventBus
from recollect.ids import uuid7
from recollect.plans import Plan
from recollect.ports import Clock, Embedder, Lexicon, Reranker, Store

ATTEMPTS = 100
"""How often a write is tried again when other writers are faster; each time one of them got through."""

GIVEN = "given"
"""The embedder's name for vectors that callers bring along where no embedder is configured."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def verb(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a public operation: errors that leave it carry its name."""
    name = method.__name__

    @wraps(method)
    def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except RecollectError as error:
            error.operation = error.operation or name
            raise

    return wrapped


@dataclass(slots=True)
class Embeddings:
    """What an open database knows of its embeddings: their number and time since opening, and their name.

    ``behind`` says that some memories wait for their vectors, ``scale`` what the cosines of the embedder mean.
    """

    made: int = 0
    seconds: float = 0.0
    name: str | None = None
    behind: bool = False
    scale: Calibration | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, made: int, seconds: float) -> None:
        """Count a batch."""
        with self.lock:
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
    entropy: Callable[[int], bytes] = os.urandom
    sleep: Callable[[float], None] = time.sleep
    reranker: Reranker | None = None
    lexicon: Lexicon | None = None
    plan: Plan | None = None

    def new_ids(self, now: datetime, count: int) -> list[str]:
        """Fresh, time-ordered ids."""
        time_ms = codec.to_micros(now) // 1000
        random = self.entropy(10 * count)
        return [uuid7(time_ms, random[start : start + 10]) for start in range(0, 10 * count, 10)]

    def vector_name(self) -> str:
        """The embedder that vectors given by callers are counted to."""
        if self.embedder is not None:
            return self.embedder.name
        if self.embeddings.name is None:
            # Once there is a vector, the name stands; before, another process may still decide it.
            self.embeddings.name = self.store.settings().get("embedder")
        return self.embeddings.name or GIVEN
