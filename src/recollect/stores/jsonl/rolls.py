"""The active memories of owners in the order of recording, kept in step with the journal."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from recollect import filters
from recollect.filters import Where
from recollect.ports import Owners
from recollect.stores.journal import Entry, Journal
from recollect.types import Memory, Owner, State

if TYPE_CHECKING:  # numpy takes 100 ms
    from recollect.stores.jsonl.grams import Grams

MANY = 1_000
"""Memories: fewer are looked through as quickly as anything that would be kept to spare that."""

PATIENCE = 5
"""Questions for texts that are answered without marks. Making them takes as long as some thirty such questions, which
a command line never asks; who asked a few will ask more.
"""

ASKED = 32
"""Questions for tags whose answers are kept."""

Tags = tuple[str, ...]


class Roll:
    """The active memories of one owner, and what of each is kept beside it, at the same place in another list."""

    def __init__(self, owner: Owner) -> None:
        self.memories: list[Memory] = []
        self.numbers: list[int] = []
        self.expiring = 0
        self._owner = owner
        self._sequence = 0
        self._tags: list[int] = []
        self._known_tags: dict[Tags, int] = {}
        self._fitting: dict[tuple[Tags, Tags, Tags], tuple[int, set[int]]] = {}
        self._text_asked = 0
        self._grams: Grams | None = None
        self._unmarked: set[int] = set()

    def follow(self, journal: Journal) -> None:
        """Take in what was written since the last time."""
        if self._sequence < journal.last:
            for head in list(self._changed(journal)):
                self._take(head)
            self._sequence = journal.last

    def _changed(self, journal: Journal) -> Iterable[Entry]:
        if not self._sequence:
            return (journal.heads[memory_id] for memory_id in journal.owned.get(self._owner, ()))
        start = bisect_right(journal.entries, self._sequence, key=attrgetter("sequence"))
        written = (entry for entry in journal.entries[start:] if entry.owner == self._owner)
        return (journal.heads[entry.memory_id] for entry in written)

    def _take(self, head: Entry) -> None:
        place = bisect_left(self.numbers, head.number)
        if self.numbers[place : place + 1] == [head.number]:
            self.expiring -= self.memories[place].expires_at is not None
            del self.memories[place], self.numbers[place], self._tags[place]
        memory = head.memory
        if memory is not None and memory.state is State.ACTIVE:
            self.expiring += memory.expires_at is not None
            self.memories.insert(place, memory)
            self.numbers.insert(place, head.number)
            self._tags.insert(place, self._known_tags.setdefault(memory.tags, len(self._known_tags)))
            self._unmarked.add(head.number)

    def places(self, where: Where) -> Sequence[int]:
        """Where those stand that have the tags which a filter asks for, and may have the texts."""
        places: Sequence[int] = range(len(self.memories))
        if where.text or where.content_contains is not None:
            places = self._with_pieces(filters.pieces(where), places)
        if where.tags or where.any_tags or where.no_tags:
            fitting, tags = self._with_tags(where), self._tags
            places = [place for place in places if tags[place] in fitting]
        return places

    def _with_tags(self, where: Where) -> set[int]:
        """The numbers of all combinations of tags that a filter lets through; only new ones are looked at again."""
        asked = (where.tags, where.any_tags, where.no_tags)
        seen, fitting = self._fitting.pop(asked, (0, set()))
        new = islice(self._known_tags.items(), seen, None)
        fitting.update(number for tags, number in new if filters.has_tags(tags, where))
        if len(self._fitting) >= ASKED:
            del self._fitting[next(iter(self._fitting))]  # the one that was not asked for longest
        self._fitting[asked] = len(self._known_tags), fitting
        return fitting

    def _with_pieces(self, pieces: Sequence[str], places: Sequence[int]) -> Sequence[int]:
        self._text_asked += 1
        if len(places) < MANY or self._text_asked <= PATIENCE:
            return places
        from recollect.stores.jsonl import grams  # lazy: numpy takes 100 ms, and most filters are for something else

        telling = list(filter(grams.tells, pieces))
        if not telling:
            return places
        if self._grams is None or len(self._grams) > 2 * len(places):
            self._grams, self._unmarked = grams.Grams(), set(self.numbers)
        if len(self._unmarked) > len(places) // 8:
            marked = [place for place in places if self.numbers[place] in self._unmarked]
            contents = [self.memories[place].content for place in marked]
            self._grams.add([self.numbers[place] for place in marked], contents)
            self._unmarked = set()
        possible = sorted(self._grams.candidates(telling) | self._unmarked)
        found = [bisect_left(self.numbers, number) for number in possible]
        return [one for one, number in zip(found, possible, strict=True) if self.numbers[one : one + 1] == [number]]


class Rolls:
    """The rolls of the owners that were asked for."""

    def __init__(self) -> None:
        self._kept: dict[Owner, Roll] = {}

    def narrowed(self, journal: Journal, owners: Owners, where: Where) -> tuple[list[Memory], Where]:
        """Active memories in the order of recording, and what of a filter is still to be asked of them.

        The list may be the roll's own: not to be changed.
        """
        rolls, left = self._seen(journal, owners, where)
        chosen = [(roll, roll.places(where)) for roll in rolls]
        if len(chosen) == 1:
            roll, places = chosen[0]
            if len(places) == len(roll.memories):
                return roll.memories, left
            return [roll.memories[place] for place in places], left
        memories = [roll.memories[place] for roll, places in chosen for place in places]
        numbers = [roll.numbers[place] for roll, places in chosen for place in places]
        return [memories[place] for place in sorted(range(len(numbers)), key=numbers.__getitem__)], left

    def numbers(self, journal: Journal, owners: Owners, where: Where) -> list[int] | None:
        """The numbers of what a filter lets through, without a look at the memories; none if it takes that."""
        rolls, left = self._seen(journal, owners, where)
        if filters.conditions(left):
            return None
        return [roll.numbers[place] for roll in rolls for place in roll.places(where)]

    def _seen(self, journal: Journal, owners: Owners, where: Where) -> tuple[list[Roll], Where]:
        """The rolls of owners, and what of a filter they cannot tell."""
        rolls = [self._of(owner, journal) for owner in owners if owner in journal.owned]
        lasting = not any(roll.expiring for roll in rolls)
        return rolls, replace(where, tags=(), any_tags=(), no_tags=(), include_forgotten=lasting)

    def _of(self, owner: Owner, journal: Journal) -> Roll:
        roll = self._kept.get(owner)
        if roll is None:
            roll = self._kept[owner] = Roll(owner)
        roll.follow(journal)
        return roll
