"""A clock that is set by hand, embedders that count or fail, and databases that close themselves."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.guarded import guarded, guarded_index
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.ports import Embedder, Store
from wellkept.recall.calibration import PLAIN
from wellkept.settings import RetryPolicy
from wellkept.stores.jsonl import JsonlStore
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START
from wellkept.types import DurabilityName

DIMENSION = 16
ONCE = RetryPolicy(attempts=1)
"""Nothing is repeated, and nobody waits."""
one_store = pytest.mark.parametrize("opener", ["ram"], indirect=True)
"""For a test of what is decided before a store is asked: it runs on one store instead of three."""


class HandClock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime = START) -> None:
        self.time = start

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **span: float) -> datetime:
        self.time += timedelta(**span)
        return self.time


class CountingEmbedder(HashingEmbedder):
    """Remembers the batches that it was asked for."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[Any]:
        self.batches.append(list(texts))
        return super().embed(texts)


class BrokenEmbedder:
    """Answers with whatever it was given."""

    calibration = PLAIN
    lexicon = None
    name = f"hashing-{DIMENSION}"
    dimension = DIMENSION

    def __init__(self, answer: Callable[[Sequence[str]], Iterable[Any]]) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Iterable[Any]:
        return self.answer(texts)


class Switched(CountingEmbedder):
    """Works while it is switched on."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> list[Any]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return super().embed(texts)


class Named(HashingEmbedder):
    """Another embedder of some dimension."""

    def __init__(self, name: str = "other", dimension: int = DIMENSION) -> None:
        super().__init__(dimension)
        self.name = name


class Opener:
    """Opens databases of one kind, and closes them all at the end of a test.

    Calling it again opens the same file if the store is one.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._folder = folder
        self._opened: list[wellkept.Memories] = []

    def __call__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        embedder: Embedder | str | None = None,
        name: str = "memory",
        plan: wellkept.entitlements.Plan | str | None = None,
        settings: dict[str, Any] | None = None,
        retry: RetryPolicy | None = ONCE,
    ) -> wellkept.Memories:
        path = self._folder / f"{name}.db"
        # How durable a write is, other tests find out; these need only be fast.
        relaxed: DurabilityName | None = None if path.exists() else "relaxed"
        given: dict[str, Any] = {
            "clock": clock,
            "embedder": embedder,
            "plan": plan,
            "settings": settings,
            "retry": retry,
        }
        if self.kind == "ram":
            memories = wellkept.open(store=guarded(RamStore()), index=guarded_index(), **given)
        else:
            memories = wellkept.open(f"{self.kind}:{path}", durability=relaxed, **given)
        self._opened.append(memories)
        return memories

    def close(self) -> None:
        for memories in self._opened:
            memories.close()


_NUMBERS = itertools.count()


def somebody(memories: wellkept.Memories) -> wellkept.View:
    """A view that nobody used before: one database serves many examples, which is faster than one each."""
    return memories.view(user=f"user {next(_NUMBERS)}")


def store_of(memories: wellkept.Memories) -> Store:
    """The store that a database works on, to look at what is kept. Stores are public; this way to one is not."""
    return memories._engine.store


def set_sleep(memories: wellkept.Memories, sleep: Callable[[float], None]) -> None:
    """Call this instead of waiting, where a database repeats what failed."""
    memories._engine.shared.sleep = sleep


def sequence(memories: wellkept.Memories) -> int:
    """How many versions were ever written, by all owners together: tells whether anything changed."""
    journal = store_of(memories).journal
    return sum(mark.seq for mark in journal.marks(set(journal.owners())).values())


def places(view: wellkept.View) -> list[wellkept.types.Position]:
    """The positions of a view: the one before everything, and those right behind each version."""
    start = view.position(at=datetime.min.replace(tzinfo=UTC))
    return [start, *(version.position for version in view.changes() if version.position)]


def plain(what: wellkept.Memory) -> wellkept.Memory:
    """The memory without what is kept beside its history: accesses and the vector."""
    return replace(what, access_count=0, last_accessed_at=None, vector=None)


def embedders(view: wellkept.View) -> dict[str, str | None]:
    """Whose vector each memory has, by content; forgotten ones too."""
    listed = view.list(filter=wellkept.Filter(include_forgotten=True))
    found = view.get_many([memory.id for memory in listed], include_vector=True, include_forgotten=True)
    return {memory.content: memory.vector.embedder if memory.vector else None for memory in found.values()}


class OneOwnerStore(JsonlStore):
    """A store in files that writes one owner at a time."""

    capabilities = replace(JsonlStore.capabilities, batches=False)
