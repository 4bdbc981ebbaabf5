"""Writes that wait for a disk that failed; only where the store was opened with ``durability="relaxed"``.

They are visible in this process and nowhere else, and lost with it: ``health`` says how many there are. They are
written, in their order, before anything else is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.errors import RecollectError
from recollect.ports import Write
from recollect.stores.journal import Journal
from recollect.stores.jsonl import changes
from recollect.stores.jsonl.commit import Change, Files

LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch that is not on the disk."""

    writes: Sequence[Write]
    change: Change
    sequence: int


class Buffer:
    """The batches that wait. ``refused`` are those that what others wrote meanwhile left no place for."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self.refused = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def takes(self, change: Change) -> bool:
        """Whether a change may wait. Erasing may not: whoever erases is told when it is done."""
        return not change.rewritten and len(self._waiting) < LIMIT

    def add(self, one: Waiting) -> None:
        """Let a batch wait."""
        self._waiting.append(one)

    def drain(self, files: Files) -> None:
        """Write what waits, as far as the disk takes it."""
        while self._waiting:
            files.commit(self._waiting[0].change, self._waiting[0].sequence)
            del self._waiting[0]

    def replay(self, journal: Journal, files: Files) -> None:
        """Put what waits behind what others wrote: with sequences of its own, if it still fits."""
        before, self._waiting = self._waiting, []
        for one in before:
            try:
                batch = journal.stage(one.writes)
            except RecollectError:
                self.refused += 1
                continue
            change = changes.of_batch(journal, files, batch)
            self._waiting.append(Waiting(one.writes, change, journal.take(batch)[-1]))
