"""What a view works with: the store, the embedder, the clock and the bus, and how they act together."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from recollect import codec, validation
from recollect.errors import EmbeddingFailed, InvalidInput, RecollectError
from recollect.events import EventBus
from recollect.ids import uuid7
from recollect.ports import Clock, Embedder, Store
from recollect.types import Vector

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
    """What an open database knows of its embeddings: their number and time since opening, and their name."""

    made: int = 0
    seconds: float = 0.0
    name: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, made: int, seconds: float) -> None:
        """Count a batch."""
        with self.lock:
            self.made += made
            self.seconds += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts of an open database."""

    store: Store
    clock: Clock
    embedder: Embedder | None = None
    bus: EventBus = field(default_factory=EventBus)
    embeddings: Embeddings = field(default_factory=Embeddings)
    entropy: Callable[[int], bytes] = os.urandom

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

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """One vector per text, in one batch; none without an embedder."""
        if self.embedder is None or not texts:
            return [None] * len(texts)
        started = time.perf_counter()
        found = self._call(self.embedder, texts)
        self.embeddings.add(len(found), time.perf_counter() - started)
        return list(found)

    def _call(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        try:
            made = [validation.vector(row, embedder.name) for row in embedder.embed(texts)]
        except InvalidInput as error:
            raise self._failed(f"returned a bad vector: {error.message}") from error
        except Exception as error:  # reason: an embedder is foreign code and may raise anything
            raise self._failed(f"raised {type(error).__name__}") from error
        if len(made) != len(texts):
            raise self._failed(f"returned {len(made)} vectors for {len(texts)} texts")
        if any(vector.dimension != embedder.dimension for vector in made):
            raise self._failed(f"returned vectors that have not {embedder.dimension} dimensions")
        return made

    def _failed(self, what: str) -> EmbeddingFailed:
        name = self.embedder.name if self.embedder else GIVEN
        return EmbeddingFailed(
            f"the embedder {name!r} {what}",
            details={"embedder": name},
            hint="nothing was stored; check the embedder and try again",
        )
