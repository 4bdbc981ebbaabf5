"""Which lines count: those of a batch only when all of its lines were found, or when somebody saw it complete."""

from bisect import bisect_left
from collections.abc import Sequence

from recollect.stores.jsonl.lines import Line
from recollect.types import Stamp


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
