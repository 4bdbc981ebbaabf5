"""Short ways to make owners, memories and writes. Nothing is random and the clock is a counter."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from recollect import ids
from recollect.filters import Where
from recollect.ports import Embedded, Query, Store, Write
from recollect.recall.probes import Probe
from recollect.text import query_text
from recollect.types import Layer, Memory, Operation, Owner, State, Vector

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The first time of every clock here."""

EMBEDDER = "kit"
"""The name of the embedder that the vectors here claim to come from."""

NO_WORDS = query_text.Asked(terms=(), words=(), phrases=(), prefixes=(), names=())
"""What a question asks for that is only a vector."""

EVERYTHING = 1_000
"""A pool that no test fills: every memory that can be a candidate is one."""

_numbers = itertools.count(1)


class Scored(NamedTuple):
    """A memory that a search found, and how well it fits."""

    memory: Memory
    score: float


class Ticker:
    """A clock that goes on by one step each time it is read.

    >>> clock = Ticker()
    >>> (clock() - clock()).total_seconds()
    -1.0
    """

    def __init__(self, start: datetime = START, step: timedelta = timedelta(seconds=1)) -> None:
        self._times = (start + step * count for count in itertools.count())

    def __call__(self) -> datetime:
        """The next time."""
        return next(self._times)


def owner(*names: str, layer: Layer = Layer.USER) -> Owner:
    """An owner; a user unless told otherwise.

    >>> owner("ada").ids
    ('ada',)
    """
    return Owner(layer, names)


def new_id() -> str:
    """An id that was not given out before in this process, in the form of the engine's ids."""
    return ids.uuid7(1_767_268_800_000 + next(_numbers), bytes(10))


def memory(content: str = "a memory", whose: Owner | None = None, **fields: Any) -> Memory:
    """A memory of ada's, or of somebody else's, with those fields.

    >>> memory("Likes tea", tags=("food",)).tags
    ('food',)
    """
    created = fields.pop("created_at", START)
    given = {"id": new_id(), "occurred_at": created, "updated_at": created} | fields
    return Memory(content=content, owner=whose or owner("ada"), created_at=created, **given)


def vector(*values: float) -> Vector:
    """A vector of the kit's embedder.

    >>> vector(1, 0).embedder
    'kit'
    """
    return Vector.of(EMBEDDER, values)


def passages(*rows: tuple[float, ...], embedder: str = EMBEDDER) -> Vector:
    """The vector of a long text in passages of ten characters, one row of numbers for each.

    >>> passages((1, 0), (0, 1)).spans
    ((0, 10), (10, 20))
    """
    spans = [(10 * place, 10 * place + 10) for place in range(len(rows))]
    return Vector.joined([Vector.of(embedder, row) for row in rows], spans)


def added(what: Memory, **fields: Any) -> Write:
    """The write that adds a memory as it is, with its vector; ``fields`` are those of the write."""
    return _write(Operation.ADDED, what, fields)


def updated(what: Memory, *, write: dict[str, Any] | None = None, **changes: Any) -> Write:
    """The write that changes a stored memory: its next version, with its vector left in place."""
    return _next(Operation.UPDATED, what, changes, write)


def forgotten(what: Memory, **fields: Any) -> Write:
    """The write that forgets a stored memory."""
    return _next(Operation.FORGOTTEN, what, {"state": State.FORGOTTEN}, fields)


def restored(what: Memory, **fields: Any) -> Write:
    """The write that brings a forgotten memory back."""
    return _next(Operation.RESTORED, what, {"state": State.ACTIVE}, fields)


def erased(what: Memory, **fields: Any) -> Write:
    """The write that erases a stored memory."""
    return _next(Operation.ERASED, what, {}, fields)


def _next(operation: Operation, what: Memory, changes: dict[str, Any], fields: dict[str, Any] | None) -> Write:
    after = replace(what, **({"version": what.version + 1} | changes))
    kept = {"keeps_vector": True, "vector": None, "recorded_at": what.updated_at + timedelta(seconds=1)}
    return _write(operation, after, kept | (fields or {}))


def _write(operation: Operation, what: Memory, fields: dict[str, Any]) -> Write:
    given = {"recorded_at": what.updated_at, "vector": what.vector} | fields
    given["memory"] = replace(what, updated_at=given["recorded_at"], vector=None)
    return Write(operation=operation, **given)


def put(store: Store, *memories: Memory) -> list[int]:
    """Add memories to a store in one batch and return their sequences."""
    return store.apply([added(one) for one in memories])


def query(*owners: Owner, **fields: Any) -> Query:
    """A listing of the owners. The fields are those of a query; any other is a condition.

    >>> query(owner("ada"), limit=2, min_importance=0.5).where.min_importance
    0.5
    """
    own = {name: fields.pop(name) for name in tuple(fields) if name in Query.__dataclass_fields__}
    return Query(owners=frozenset(owners), where=Where(**({"now": START} | fields)), **own)


def later(store: Store, what: Memory, new: Vector, **fields: Any) -> Embedded:
    """A vector for a memory that is stored already; ``fields`` are those of what is to be stored."""
    number = next(stored.number for stored in store.scan({what.owner}) if stored.memory.id == what.id)
    given: dict[str, Any] = {"number": number, "version": what.version, "vector": new}
    return Embedded(**(given | fields))


def probe(text: str = "", near: Vector | None = None, *, pool: int = EVERYTHING, **fields: Any) -> Probe:
    """A question: a text, a vector, or both; ``fields`` are the others of a probe.

    >>> probe("dark mode").asked.words, probe(near=vector(1, 0)).asked.terms
    (('dark', 'mode'), ())
    """
    return Probe(asked=query_text.parse(text) if text else NO_WORDS, vector=near, pool=pool, **fields)


def nearest(store: Store, wanted: Query, near: Vector, limit: int) -> list[Scored]:
    """The memories whose vectors have the highest cosine with one, the best first."""
    return _best(store, wanted, probe(near=near, pool=limit), "similarity")[:limit]


def by_words(store: Store, wanted: Query, text: str, limit: int) -> list[Scored]:
    """The memories that share the words of a text, or whose neighbours do, the best first."""
    asked = Probe(asked=query_text.parse(text), pool=limit)
    return _best(store, wanted, asked, "keyword")[:limit]


def _best(store: Store, wanted: Query, asked: Probe, signal: str) -> list[Scored]:
    found = store.candidates(wanted, asked)
    if not len(found):
        return []
    numbers, scores = found.numbers.tolist(), found.signals[signal].tolist()
    memories = store.pick(wanted, numbers)
    order = sorted(range(len(numbers)), key=lambda place: (-scores[place], numbers[place]))
    return [Scored(memories[numbers[place]], scores[place]) for place in order]


def plain(what: Memory) -> Memory:
    """The memory without what is kept beside its history: accesses and the vector."""
    return replace(what, access_count=0, last_accessed_at=None, vector=None)


def ids_of(memories: Iterable[Memory]) -> list[str]:
    """The ids, in order."""
    return [one.id for one in memories]
