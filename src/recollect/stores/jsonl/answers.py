"""Quick answers from what is in RAM: without copying memories that nobody gets to see."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, partial
from operator import is_
from typing import TYPE_CHECKING

from recollect import filters, tally
from recollect.ports import Owners, Query, Quota, Stored, Write, taken
from recollect.stores.held import HeldStore
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
            return self.ranked(query, partial(filters.sort_value, sort=query.sort))
        with self._reading():
            found = self._found(query)
            sign = 1 if query.sort is Sort.OLDEST else -1
            if query.sort is Sort.NEWEST:
                found = found[::-1]
            if query.after is not None:
                last = sign * query.after[1]
                found = found[bisect_right(found, last, key=lambda one: sign * self._journal.number(one)) :]
            end = None if query.limit is None else query.offset + query.limit
            return self._given(found[query.offset : end])

    def ranked(self, query: Query, value: Callable[[Memory], float]) -> list[Stored]:
        """The same by a value."""
        with self._reading():
            accesses, number, dressed = self._journal.accesses, self._journal.number, self._journal.dressed
            places = (
                (value(dressed(one) if one.id in accesses else one), number(one), one) for one in self._found(query)
            )
            return self._given(taken(places, query))

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
            return tally.tally((self._with_vector(memory) for _, memory in self._journal.current(owners)), now)

    def candidates(self, query: Query, probe: "Probe") -> "Candidates":
        """What may answer a search, by the indexes in RAM. The past and the forgotten are searched by the default."""
        if query.as_of is not None or query.where.include_forgotten:
            return super().candidates(query, probe)
        from recollect.stores.jsonl.searching import Indexes  # lazy: numpy takes 100 ms, and most calls need none

        with self._reading():
            if self._indexes is None:
                self._indexes = Indexes()
            allowed = None if filters.anything(query.where) else list(map(self._journal.number, self._found(query)))
            return self._indexes.candidates(self._journal, query, probe, allowed)

    def _forget_indexes(self) -> None:
        """Something changed that no index can follow."""
        self._indexes = None

    def _forget_answers(self) -> None:
        """Memories are gone: what was made from them goes, too."""
        self._folded, self._spaced = cache(str.casefold), cache(_spaced)
        self._asked: tuple[object, ...] = (None,) * 4
        self._answer: list[Memory] = []

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
            found = self._journal.memories(query.owners, query.as_of)
            for condition in filters.conditions(query.where, folded=self._folded, spaced=self._spaced):
                found = [one for one in found if condition(one)]
            self._asked, self._answer = asked, found
        return self._answer

    def _with_vector(self, memory: Memory) -> Memory:
        return self._journal.dressed(memory, vectors=True) if memory.id in self._journal.vectors else memory


def _spaced(content: str) -> str:
    from recollect import words  # lazy: brings in the stemmer, which most filters do not need

    return words.spaced(content)
