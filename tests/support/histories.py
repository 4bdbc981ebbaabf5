"""Random lives of a database through the engine, and pictures of all that one answers."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

import wellkept
from tests.support.converted import heads, told
from tests.support.stand_ins import DIMENSION, ONCE, HandClock, Named, Switched
from wellkept import Filter, Memories, View
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import Conflict, EmbeddingFailed
from wellkept.ports import Store
from wellkept.testing.builders import START
from wellkept.types import Sort, Version

PEOPLE = ({"user": "ada"}, {"user": "bob", "session": "monday"}, {"team": "core"}, {"agent": "scout", "user": "ada"})
WORDS = ("tea", "dark mode", "Straße", "tabs", "the build is slow", "{}", "Paris\nRome")
KEYS = ("k1", "k2", "ü")
EVERYTHING = Filter(include_forgotten=True)
END = START + timedelta(days=30)

Step = Callable[["Life"], None]


@dataclass
class Life:
    """A database, and what happened in it so far."""

    store: Store
    clock: HandClock = field(default_factory=HandClock)
    embedder: Switched = field(default_factory=Switched)
    ids: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memories: Memories = wellkept.open(store=self.store, clock=self.clock, embedder=self.embedder, retry=ONCE)

    def view(self, person: int) -> View:
        return self.memories.view(**PEOPLE[person])  # type: ignore[arg-type]  # only ids

    def one(self, choice: int) -> tuple[View, str] | None:
        if not self.ids:
            return None
        person, id = self.ids[choice % len(self.ids)]
        return self.view(person), id


def _add(person: int, content: str, fields: dict[str, Any], lasting: timedelta | None) -> Step:
    """Lasting from then on: an expiry that is over already would be refused."""

    def step(life: Life) -> None:
        expires_at = None if lasting is None else life.clock.time + lasting
        with suppress(Conflict):
            life.ids.append((person, life.view(person).add(content, expires_at=expires_at, **fields).id))

    return step


def _on(choice: int, what: Callable[[View, str], object]) -> Step:
    def step(life: Life) -> None:
        chosen = life.one(choice)
        if chosen is not None:
            with suppress(wellkept.errors.NotFound):
                what(*chosen)

    return step


def _move(seconds: float) -> Step:
    def step(life: Life) -> None:
        life.clock.forward(seconds=seconds)

    return step


def _switch(on: bool) -> Step:
    def step(life: Life) -> None:
        life.embedder.error = None if on else ConnectionError("down")

    return step


def _reembed(life: Life) -> None:
    life.embedder.error = None
    with suppress(EmbeddingFailed):
        life.memories.reembed(Named())


def steps() -> st.SearchStrategy[list[Step]]:
    """What may happen, in any order; the clock may run backwards."""
    choice = st.integers(0, 30)
    fields = st.fixed_dictionaries(
        {"importance": st.sampled_from([0.0, 0.5, 1.0])},
        optional={
            "key": st.sampled_from(KEYS),
            "tags": st.sampled_from([["a"], ["a", "b.c"]]),
            "metadata": st.sampled_from([{"n": 1}, {"n": 1.0}, {"n": True, "l": [None]}]),
            "occurred_at": st.just(START - timedelta(days=400)),
        },
    )
    words = st.sampled_from(WORDS)
    lasting = st.sampled_from([None, None, timedelta(seconds=5), END - START + timedelta(days=1)])
    add = st.builds(_add, st.integers(0, len(PEOPLE) - 1), words, fields, lasting)
    on = st.one_of(
        words.map(lambda text: lambda view, id: view.update(id, content=text)),
        st.just(lambda view, id: view.update(id, importance=0.9, add_tags=["seen"])),
        st.just(lambda view, id: view.forget(id, reason="no longer true")),
        st.just(lambda view, id: view.restore(id)),
        st.just(lambda view, id: view.forget(id, permanent=True, reason="asked for")),
        st.just(lambda view, id: view.get(id)),
        st.just(lambda view, id: view.search("tea Paris build")),
    )
    change = st.builds(_on, choice, on)
    move = st.sampled_from([1.0, 60.0, -30.0, 1e-6]).map(_move)
    rare = st.one_of(st.booleans().map(_switch), st.just(_reembed))
    return st.lists(st.one_of(add, add, change, change, change, move, rare), min_size=1, max_size=40)


def plain(versions: Iterable[Version]) -> list[Version]:
    """Versions without their positions, which are their store's own."""
    return [replace(version, position=None) for version in versions]


def picture(store: Store) -> dict[str, Any]:
    """All that a database answers, accesses first: asking counts as one."""
    journal = store.journal
    owners = sorted(journal.owners(), key=str)
    kept = journal.settings()
    seen: dict[str, Any] = {
        "heads": heads(store),
        "owners": owners,
        "keys": [journal.keyed(owner, KEYS) for owner in owners],
        "journal": told(journal),
        "usage": journal.usage(set(owners)),
        "settings": {k: v for k, v in kept.items() if k not in ("durability", "conversion", "origin", "epoch")},
    }
    known = kept.get("embedder")
    embedder = None if known is None else Named() if known == Named().name else HashingEmbedder(DIMENSION)
    memories = wellkept.open(store=store, clock=lambda: END, embedder=embedder)
    if embedder is not None:
        memories.reembed()  # as plain files do when they are opened: missing vectors are made
    for person in PEOPLE:
        seen[str(person)] = _answers(memories.view(**person))  # type: ignore[arg-type]  # only ids
    return seen


def _answers(view: View) -> dict[str, Any]:
    # Each owner's versions in their order: how those of several are put together is the store's own.
    changes = sorted(view.changes(), key=lambda version: str(version.owner))
    listed = {sort: list(view.list(filter=EVERYTHING, sort_by=sort)) for sort in Sort}
    ids = [version.memory_id for version in changes]
    moments = sorted({version.recorded_at for version in changes})
    places: list[datetime | str] = [*moments, view.position()]
    return {
        "listed": listed,
        "got": view.get_many(ids, include_vector=True, include_forgotten=True),
        "histories": [plain(view.history(id)) for id in ids],
        "changes": plain(changes),
        "past": [list(view.list(as_of=moment, filter=EVERYTHING)) for moment in places],
        "past hits": [_hits(view, as_of=moment) for moment in moments[-3:]],
        "hits": _hits(view, explain=True),
        "stats": replace(view.stats(), embeddings_made=0, average_embedding_ms=0.0),
        "after": [(one.id, one.access_count) for one in view.list()],
    }


def _hits(view: View, **fields: Any) -> list[Any]:
    return [list(view.search(query, **fields)) for query in ("dark mode", "Paris tea", "slow build in Straße")]
