"""The order of an owner's versions, from the lines alone.

A version comes after the one that it replaced, and after the line that its writer saw last; stamps decide the rest. In
a folder that nobody merged, that is the order of writing. In the union of two folders, the versions that were made side
by side are ordered by their stamps.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recollect.stores.jsonl.lines import Line
from recollect.types import Stamp


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
