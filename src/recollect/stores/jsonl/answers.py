"""Quick answers from what is in RAM: without copying memories that nobody gets to see."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from recollect import filters, tally
from recollect.ports import Owners, Query, Stored
from recollect.stores.held import HeldStore
from recollect.stores.journal import Entry
from recollect.types import Memory, Sort, Stats

if TYPE_CHECKING:  # numpy takes 100 ms, and only searching needs it
    from recollect.recall.probes import Candidates, Probe
    from recollect.stores.jsonl.searching import Indexes

_BY_ACCESS = (Sort.MOST_ACCESSED, Sort.RECENTLY_ACCESSED)


class QuickStore(HeldStore):
    """Overrides the defaults that copy everything."""

    def __init__(self) -> None:
        super().__init__()
        self._indexes: Indexes | None = None

    def select(self, query: Query) -> list[Stored]:
        """The memories that a listing takes; only those are copied."""
        with self._reading():
            found = [(self._place(entry, memory, query.sort), entry, memory) for entry, memory in self._found(query)]
            if query.after is not None:
                value, number = query.after
                last = (value, number if query.sort is Sort.OLDEST else -number)
                found = [one for one in found if one[0] > last]
            found.sort(key=lambda one: one[0])
            end = None if query.limit is None else query.offset + query.limit
            return [
                Stored(entry.number, self._journal.dressed(memory)) for _, entry, memory in found[query.offset : end]
            ]

    def count(self, query: Query) -> int:
        """How many memories match."""
        with self._reading():
            return len(self._found(query))

    def pick(self, query: Query, numbers: Iterable[int], *, vectors: bool = False) -> dict[int, Memory]:
        """Memories by number."""
        if query.as_of is not None:
            return super().pick(query, numbers, vectors=vectors)
        with self._reading():
            known = self._journal.ids
            heads = [self._journal.heads[known[number]] for number in numbers if number in known]
            return {
                head.number: self._journal.dressed(head.memory, vectors=vectors)
                for head in heads
                if head.memory is not None and head.owner in query.owners
            }

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts over all memories of the owners."""
        with self._reading():
            return tally.tally((self._with_vector(memory) for _, memory in self._journal.current(owners)), now)

    def candidates(self, query: Query, probe: "Probe") -> "Candidates":
        """What may answer a search, by the indexes in RAM. The past and the forgotten are searched by the default."""
        if query.as_of is not None or query.where.include_forgotten:
            return super().candidates(query, probe)
        from recollect.stores.jsonl.searching import Indexes  # lazy: numpy takes 100 ms, and most calls need none

        with self._reading():
            if self._indexes is None:
                self._indexes = Indexes()
            allowed = None if filters.anything(query.where) else [entry.number for entry, _ in self._found(query)]
            return self._indexes.candidates(self._journal, query, probe, allowed)

    def _forget_indexes(self) -> None:
        """Something changed that no index can follow."""
        self._indexes = None

    def _found(self, query: Query) -> list[tuple[Entry, Memory]]:
        """What a filter lets through. Most name a tag, types or ids: looking at those first spares the rest."""
        where, found = query.where, self._journal.current(query.owners, query.as_of)
        if filters.anything(where):
            return [one for one in found if filters.visible(one[1], where.now)]
        if where.ids is not None:
            found = [one for one in found if one[0].memory_id in where.ids]
        if where.types is not None:
            found = [one for one in found if one[1].type in where.types]
        if where.tags:
            has_first = cache(partial(filters.tagged, wanted=where.tags[0]))  # few tags, many memories
            found = [one for one in found if has_first(one[1].tags)]
        return [one for one in found if filters.matches(one[1], where)]

    def _place(self, entry: Entry, memory: Memory, sort: Sort) -> tuple[float, int]:
        number = entry.number if sort is Sort.OLDEST else -entry.number
        return filters.sort_value(self._journal.dressed(memory) if sort in _BY_ACCESS else memory, sort), number

    def _with_vector(self, memory: Memory) -> Memory:
        return self._journal.dressed(memory, vectors=True) if memory.id in self._journal.vectors else memory
