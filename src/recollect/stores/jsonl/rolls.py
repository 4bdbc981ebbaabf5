"""The active memories of owners in the order of recording, kept in step with the journal."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from recollect.ports import Owners
from recollect.stores.journal import Entry, Journal
from recollect.types import Memory, Owner, State


class Roll:
    """The active memories of one owner, and their numbers. ``fading`` counts those that expire some day."""

    def __init__(self, owner: Owner) -> None:
        self.memories: list[Memory] = []
        self.numbers: list[int] = []
        self.fading = 0
        self._owner = owner
        self._sequence = 0

    def follow(self, journal: Journal) -> None:
        """Take in what was written since the last time."""
        if self._sequence < journal.last:
            for head in list(self._changed(journal)):
                self._take(head)
            self._sequence = journal.last

    def _changed(self, journal: Journal) -> Iterator[Entry]:
        if not self._sequence:
            return (journal.heads[memory_id] for memory_id in journal.owned.get(self._owner, ()))
        start = bisect_right(journal.entries, self._sequence, key=attrgetter("sequence"))
        written = (entry for entry in journal.entries[start:] if entry.owner == self._owner)
        return (journal.heads[entry.memory_id] for entry in written)

    def _take(self, head: Entry) -> None:
        memory = head.memory if head.memory and head.memory.state is State.ACTIVE else None
        place = bisect_left(self.numbers, head.number)
        replaced = slice(place, place + (self.numbers[place : place + 1] == [head.number]))
        self.fading -= sum(one.expires_at is not None for one in self.memories[replaced])
        self.fading += memory is not None and memory.expires_at is not None
        self.numbers[replaced] = [] if memory is None else [head.number]
        self.memories[replaced] = [] if memory is None else [memory]


class Rolls:
    """The rolls of the owners that were asked for."""

    def __init__(self) -> None:
        self._kept: dict[Owner, Roll] = {}

    def of(self, journal: Journal, owners: Owners) -> list[Roll]:
        """Those of some owners, up to date; not of those who have no memories."""
        found = []
        for owner in owners:
            if owner in journal.owned:
                roll = self._kept.setdefault(owner, Roll(owner))
                roll.follow(journal)
                found.append(roll)
        return found


def merged(rolls: Sequence[Roll]) -> list[Memory]:
    """The memories of some rolls in the order of recording; not to be changed."""
    if len(rolls) == 1:
        return rolls[0].memories
    memories = [memory for roll in rolls for memory in roll.memories]
    numbers = [number for roll in rolls for number in roll.numbers]
    return [memories[place] for place in sorted(range(len(numbers)), key=numbers.__getitem__)]
