"""Which lines count, and the order of an owner's versions: from the lines alone.

The lines of a batch count only when all of them were found, or when somebody saw the batch complete.

A version comes after the one that it replaced, and after the line that its writer saw last; stamps decide the rest. In
a folder that nobody merged, that is the order of writing. In the union of two folders, the versions that were made side
by side are ordered by their stamps.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wellkept.stores.jsonl.lines import Line
from wellkept.types import Stamp


class Numbers(NamedTuple):
    """Which sequence each version has, the last one that was ever given, and the line that was written last."""

    by_stamp: Mapping[Stamp, int]
    last: int = 0
    newest: Stamp | None = None


def ordered(lines: Iterable[Line]) -> list[Line]:
    """Lines by their links and stamps, each stamp once; links in a circle count for nothing."""
    known: dict[Stamp, Line] = {}
    for line in lines:
        known.setdefault(line.stored.stamp, line)
    waits: dict[Stamp, int] = {}
    followers: dict[Stamp, list[Stamp]] = {}
    for stamp, line in known.items():
        before = {
            one for one in (line.after, line.stored.replaced) if one is not None and one in known and one != stamp
        }
        waits[stamp] = len(before)
        for one in before:
            followers.setdefault(one, []).append(stamp)
    ready = [stamp for stamp, count in waits.items() if count == 0]
    heapq.heapify(ready)
    found: list[Line] = []
    while ready:
        stamp = heapq.heappop(ready)
        found.append(known.pop(stamp))
        for one in followers.get(stamp, ()):
            waits[one] -= 1
            if waits[one] == 0:
                heapq.heappush(ready, one)
    return found + [known[stamp] for stamp in sorted(known)]


def numbered(natural: list[Line], seen: Numbers) -> Numbers:
    """The sequences of lines in their natural order: those seen keep theirs, the others come behind.

    The newest version of each memory has the highest sequence: where a version that arrives late belongs below the one
    on top, the one on top is numbered again, so that followers end with it.
    """
    given = {
        line.stored.stamp: seen.by_stamp[line.stored.stamp] for line in natural if line.stored.stamp in seen.by_stamp
    }
    last = max(seen.last, max(given.values(), default=0))
    for line in natural:
        if line.stored.stamp not in given:
            last += 1
            given[line.stored.stamp] = last
    tops = {line.stored.id: line.stored.stamp for line in natural}
    highest = dict(tops)
    for line in natural:
        if given[line.stored.stamp] > given[highest[line.stored.id]]:
            highest[line.stored.id] = line.stored.stamp
    for memory_id, stamp in tops.items():
        if highest[memory_id] != stamp:
            last += 1
            given[stamp] = last
    return Numbers(given, last)


def is_natural(natural: list[Line], numbers: Numbers) -> bool:
    """Whether numbers say no more than the lines themselves."""
    return numbers.last == len(natural) and all(
        numbers.by_stamp[line.stored.stamp] == place for place, line in enumerate(natural, start=1)
    )


class Batches:
    """Batches that are complete, and lines that wait for the others of theirs. A crash leaves lines that wait for ever:
    they stay in their files, and nobody is given them.

    A writer links its line to one that counts. So a batch to which a later line is linked was complete once: what is
    missing now was damaged or removed, and the rest of the batch counts.
    """

    def __init__(self) -> None:
        self._complete: set[str] = set()
        self._waiting: dict[str, dict[int, tuple[str, Line]]] = {}

    def __len__(self) -> int:
        return sum(len(lines) for lines in self._waiting.values())

    def counts(self, line: Line) -> bool:
        """Whether the batch of a line is complete."""
        return line.batch is None or line.batch.size == 1 or line.batch.id in self._complete

    def forget(self, folder: str) -> None:
        """Drop the lines of a folder that wait, before the folder is read anew."""
        for batch, lines in list(self._waiting.items()):
            kept = {place: one for place, one in lines.items() if one[0] != folder}
            if kept:
                self._waiting[batch] = kept
            else:
                del self._waiting[batch]

    def add(self, folder: str, lines: Sequence[Line]) -> list[tuple[str, Line]]:
        """Take in lines of a folder; returns every line, of any folder, whose batch became complete."""
        released: list[tuple[str, Line]] = []
        for batch in (*(name for line in lines for name in line.completes), *_seen_complete(lines)):
            released += self._release(batch)
        for line in lines:
            if self.counts(line) or line.batch is None:
                continue
            found = self._waiting.setdefault(line.batch.id, {})
            found[line.batch.place] = (folder, line)
            if len(found) == line.batch.size:
                released += self._release(line.batch.id)
        return released

    def complete(self, batch: str) -> None:
        """Note a batch that this process wrote."""
        self._complete.add(batch)

    def _release(self, batch: str) -> list[tuple[str, Line]]:
        self._complete.add(batch)
        lines = self._waiting.pop(batch, {})
        return [lines[place] for place in sorted(lines)]


def _seen_complete(lines: Sequence[Line]) -> set[str]:
    """The batches to which a line is linked that is none of theirs. The line that the link names may be the one that is
    missing: then it stood behind the one with the next lower stamp.
    """
    batches = {line.stored.stamp: line.batch.id if line.batch else "" for line in lines}
    stamps: list[Stamp] = []
    found = set()
    for line in lines:
        if line.after is None:
            continue
        seen = batches.get(line.after)
        if seen is None:
            stamps = stamps or sorted(batches)
            place = bisect_left(stamps, line.after)
            seen = batches[stamps[place - 1]] if place else ""
        if seen and (line.batch is None or line.batch.id != seen):
            found.add(seen)
    return found
