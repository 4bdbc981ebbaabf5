"""Which memories may be the most relevant, without working out for all of them how relevant they are by now."""

import heapq
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice, repeat
from math import inf
from operator import attrgetter

from recollect.lifecycle.decay import Irrelevance
from recollect.ports import Query
from recollect.types import DecayPolicy, Memory, Owner

PAGES = 3
"""Of fewer memories than on so many pages, all are worked out as quickly."""

REST = 20
"""Pages that are worked out from all memories after one for which most had to be. So it is where thousands are equal
because they were imported at once: to find out takes a third of the time of working them out.
"""

_ID = attrgetter("id")
_SLACK = 1e-12  # powers are right but for their last digits

Value = Callable[[Memory], float]


class Fading:
    """How irrelevant memories were when that was last worked out.

    Until it is changed or used, a memory only fades: it is as irrelevant as it was, or more. So whatever was already
    more irrelevant than a page full of others are now need not be looked at.
    """

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._policies: dict[Owner, DecayPolicy] = {}
        self._at = datetime.min.replace(tzinfo=UTC)
        self._rests: dict[frozenset[Owner], int] = {}

    def changed(self, *ids: str) -> None:
        """Say that memories were changed or used."""
        if self._known:  # not while everything is read
            for memory_id in ids:
                self._known.pop(memory_id, None)

    def leading(
        self, query: Query, memories: list[Memory], order: Irrelevance, value: Value
    ) -> tuple[list[Memory], list[float]]:
        """Those of the memories, as they are now, among which the page of a query must be; and their values.

        ``value`` is what the order says of a memory with its accesses. What is given stays in its order.
        """
        owners = frozenset(query.owners)
        count = inf if query.limit is None else query.offset + query.limit
        if len(memories) < PAGES * count or self._rests_for(owners):
            return memories, list(map(value, memories))
        self._judge_by(order)
        bounds = self._bounds(memories, value)
        last = self._last(query, memories, bounds, value)
        leading = [one for one, bound in zip(memories, bounds, strict=True) if bound <= last]
        values = list(map(value, leading))
        self._known.update(zip(map(_ID, leading), values, strict=True))
        if query.after is None and len(leading) > len(memories) // 2:
            self._rests[owners] = REST
        return leading, values

    def _rests_for(self, owners: frozenset[Owner]) -> bool:
        left = self._rests.pop(owners, 0)
        if left > 1:
            self._rests[owners] = left - 1
        return left > 0

    def _judge_by(self, order: Irrelevance) -> None:
        """What was worked out by other policies or for a later time says nothing."""
        alike = all(self._policies.setdefault(owner, policy) == policy for owner, policy in order.policies.items())
        if not alike or order.now < self._at:
            self._known, self._policies = {}, dict(order.policies)
        self._at = order.now

    def _bounds(self, memories: Sequence[Memory], value: Value) -> list[float]:
        """What the values are at least."""
        bounds = list(map(self._known.get, map(_ID, memories), repeat(-inf)))
        if -inf in bounds:
            for place, memory in enumerate(memories):
                if bounds[place] == -inf:
                    bounds[place] = self._known[memory.id] = value(memory)
        return bounds

    def _last(self, query: Query, memories: Sequence[Memory], bounds: Sequence[float], value: Value) -> float:
        """A value that none on the page is behind: before it are enough that are behind the query's position."""
        count = query.offset + (query.limit or 0)
        after = -inf if query.after is None else query.after[0] + _SLACK
        nearest = heapq.nsmallest(count, bounds if query.after is None else (one for one in bounds if one > after))
        if not 0 < len(nearest) == count:
            return inf
        likely = (one for one, bound in zip(memories, bounds, strict=True) if after < bound <= nearest[-1])
        return max(map(value, islice(likely, count))) + _SLACK
