"""The indexes of owners in RAM, kept in step with the journal."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from recollect import codec
from recollect.ports import Query, check_vector
from recollect.recall import defaults
from recollect.recall.columns import Array
from recollect.recall.entries import Entry, entry_of
from recollect.recall.index import Index
from recollect.recall.parts import Part
from recollect.recall.probes import Candidates, Probe
from recollect.recall.search import candidates as search
from recollect.stores.journal import Journal
from recollect.types import Memory, Owner, State


@dataclass(slots=True)
class _Held:
    index: Index
    sequence: int


class Indexes:
    """One index for each owner that was searched. Vectors that come later make all of them worthless."""

    def __init__(self) -> None:
        self._held: dict[Owner, _Held] = {}

    def candidates(self, journal: Journal, query: Query, probe: Probe, allowed: Sequence[int] | None) -> Candidates:
        """What may answer a search; of those let through, if a filter says so."""
        settings = journal.settings
        if probe.vector is not None and "embedder" in settings:
            check_vector(probe.vector, settings["embedder"], int(settings["dimension"]))
        owners = [owner for owner in query.owners if owner in journal.owned]
        passed = None if allowed is None else np.array(allowed, np.int64)
        wild = [_beginning(journal, query, prefix) for prefix in probe.asked.prefixes]
        parts = [Part(index=self._refreshed(journal, owner), allowed=passed, wild=wild) for owner in owners]

        def exact(numbers: Array) -> list[bytes]:
            return [journal.vectors[journal.ids[number]].data for number in numbers.tolist()]

        return search(parts, probe, codec.to_micros(query.where.now) / 1e6, exact)

    def _refreshed(self, journal: Journal, owner: Owner) -> Index:
        held = self._held.get(owner)
        dimension = int(journal.settings.get("dimension", 0))
        if held is None or held.index.dimension != dimension:
            held = self._held[owner] = _Held(Index(dimension), 0)
        if held.sequence < journal.last:
            start = bisect_right(journal.entries, held.sequence, key=attrgetter("sequence"))
            numbers = {entry.number for entry in journal.entries[start:] if entry.owner == owner}
            if numbers:
                _follow(held.index, journal, numbers)
            held.sequence = journal.last
        return held.index


def _follow(index: Index, journal: Journal, numbers: set[int]) -> None:
    """Take in what changed."""
    heads = (journal.heads[journal.ids[number]] for number in sorted(numbers))
    active = [(head.number, head.memory) for head in heads if head.memory and head.memory.state is State.ACTIVE]
    index.remove(numbers - {number for number, _ in active})
    index.add(_entry(journal, number, memory) for number, memory in active)
    index.settle()


def _entry(journal: Journal, number: int, memory: Memory) -> Entry:
    entry, vector = entry_of(number, memory), journal.vectors.get(memory.id)
    return entry if vector is None else replace(entry, vector=vector.data, pieces=vector.pieces)


def _beginning(journal: Journal, query: Query, prefix: str) -> Array:
    """The memories with a word that begins so."""
    current = journal.current(query.owners)
    return np.fromiter((entry.number for entry, memory in current if defaults.begins(memory, prefix)), np.int64)
