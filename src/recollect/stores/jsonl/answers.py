"""Quick answers from what is in RAM: without copying memories that nobody gets to see."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from operator import is_
from typing import TYPE_CHECKING

from recollect import codec, filters, statistics
from recollect.filters import Where
from recollect.lifecycle.decay import Irrelevance
from recollect.ports import Owners, Query, Quota, Stored, Write
from recollect.stores.held import HeldStore
from recollect.stores.jsonl.rolls import Rolls
from recollect.types import Memory, Operation, Sort, Stats

if TYPE_CHECKING:  # numpy takes 100 ms, and only searching needs it
    from recollect.recall.probes import Candidates, Probe
    from recollect.stores.jsonl.searching import Indexes

_BY_NUMBER = (Sort.NEWEST, Sort.OLDEST)


class QuickStore(HeldStore):
    """Overrides the defaults that copy everything."""

    def __init__(self) -> None:
        super().__init__()
        self._indexes: Indexes | None = None
        self._forget_answers()

    def select(self, query: Query) -> list[Stored]:
        """The memories that a listing takes; only those are copied."""
        if query.sort not in _BY_NUMBER:
            return self.ranked(query, filters.SORT_VALUES[query.sort])
        with self._reading():
            found, number = self._found(query), self._journal.number
            if query.sort is Sort.OLDEST:
                start = 0 if query.after is None else bisect_right(found, query.after[1], key=number)
                start += query.offset
                return self._given(found[start : None if query.limit is None else start + query.limit])
            end = len(found) if query.after is None else bisect_left(found, query.after[1], key=number)
            end = max(0, end - query.offset)
            return self._given(found[0 if query.limit is None else max(0, end - query.limit) : end][::-1])

    def ranked(self, query: Query, value: Callable[[Memory], float]) -> list[Stored]:
        """The same by a value. Only numbers are made on the way, which the garbage collector does not look at."""
        with self._reading():
            found, values = self._valued(query, value)
            found, values = found[::-1], values[::-1]  # of equals the newest comes first
            places: Iterable[int] = range(len(found))
            if query.after is not None:
                last, number = query.after
                behind = bisect_right(found, -number, key=lambda one: -self._journal.number(one))
                places = [place for place in places if (values[place], place) >= (last, behind)]
            if query.limit is None:
                ordered = sorted(places, key=values.__getitem__)
            else:
                ordered = heapq.nsmallest(query.offset + query.limit, places, key=values.__getitem__)
            return self._given(found[place] for place in ordered[query.offset :])

    def _valued(self, query: Query, value: Callable[[Memory], float]) -> tuple[list[Memory], list[float]]:
        """What a filter lets through, with its values; of what fades, no more than may come on the page."""
        found = self._found(query)
        plain = value.of if isinstance(value, Irrelevance) else value
        of = (lambda memory: plain(self._counted(memory))) if self._journal.accesses else plain
        if isinstance(value, Irrelevance) and query.as_of is None:
            return self._journal.fading.leading(query, found, value, of)
        return found, list(map(of, found))

    def _counted(self, memory: Memory) -> Memory:
        """A memory with its accesses; not to be given away."""
        accesses = self._journal.accesses.get(memory.id)
        if accesses is None:
            return memory
        return codec.changed_memory(memory, access_count=accesses.count, last_accessed_at=accesses.last_at)

    def _given(self, memories: Iterable[Memory]) -> list[Stored]:
        return [Stored(self._journal.number(one), self._journal.dressed(one)) for one in memories]

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
            return statistics.tally((self._with_vector(memory) for _, memory in self._journal.current(owners)), now)

    def candidates(self, query: Query, probe: "Probe") -> "Candidates":
        """What may answer a search, by the indexes in RAM. The past and the forgotten are searched by the default."""
        if query.as_of is not None or query.where.include_forgotten:
            return super().candidates(query, probe)
        from recollect.stores.jsonl.searching import Indexes  # lazy: numpy takes 100 ms, and most calls need none

        with self._reading():
            if self._indexes is None:
                self._indexes = Indexes()
            allowed = None if filters.anything(query.where) else self._allowed(query)
            return self._indexes.candidates(self._journal, query, probe, allowed)

    def _allowed(self, query: Query) -> list[int]:
        """The numbers of what a filter lets through."""
        found = self._rolls.numbers(self._journal, query.owners, query.where)
        return list(map(self._journal.number, self._found(query))) if found is None else found

    def _forget_indexes(self) -> None:
        """Something changed that no index can follow."""
        self._indexes = None

    def _forget_answers(self) -> None:
        """Memories are gone: what was made from them goes, too."""
        self._folded, self._spaced = cache(str.casefold), cache(_spaced)
        self._asked: tuple[object, ...] = (None,) * 4
        self._answer: list[Memory] = []
        self._rolls = Rolls()

    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        """As ever; what is erased leaves no copy."""
        try:
            return super().apply(writes, quota=quota)
        finally:
            if any(write.operation is Operation.ERASED for write in writes):
                with self._lock:
                    self._forget_answers()

    def _found(self, query: Query) -> list[Memory]:
        """What a filter lets through, the journal's own. The last answer is kept: who lists a page asks for the total
        as well. It is the same question only if it is the same object: equal ones may ask for 1 and for true.
        """
        asked = (self._journal.last, query.owners, query.where, query.as_of)
        if not all(map(is_, asked, self._asked)):
            found, where = self._current(query)
            for condition in filters.conditions(where, folded=self._folded, spaced=self._spaced):
                found = list(filter(condition, found))
            self._asked, self._answer = asked, found
        return self._answer

    def _current(self, query: Query) -> tuple[list[Memory], Where]:
        """What there is to filter, and what is still to be asked of it."""
        if query.as_of is not None or query.where.include_forgotten:
            return self._journal.memories(query.owners, query.as_of), query.where
        return self._rolls.narrowed(self._journal, query.owners, query.where)

    def _with_vector(self, memory: Memory) -> Memory:
        return self._journal.dressed(memory, vectors=True) if memory.id in self._journal.vectors else memory


def _spaced(content: str) -> str:
    from recollect.text import words  # lazy: brings in the stemmer, which most filters do not need

    return words.spaced(content)
