"""Versions of memories and the change feed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from wellkept.types.memory import Memory, Operation
from wellkept.types.owners import Owner
from wellkept.types.stored import Position, Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One entry of the journal: the state of a memory after one write.

    ``stamp`` identifies the version in every copy of the store, ``replaced`` is the stamp of the previous version.
    ``write_id`` is the same for all versions that one call wrote.
    ``memory`` is ``None`` once the memory was erased. In a change feed, ``position`` is the position right after the
    version.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     memory = view.add("Lives in Paris")
    ...     _ = view.update(memory.id, content="Lives in Rome")
    ...     first, second = view.history(memory.id)
    >>> first.operation.value, second.operation.value, second.replaced == first.stamp
    ('added', 'updated', True)
    """

    memory_id: str
    owner: Owner
    version: int
    operation: Operation
    recorded_at: datetime
    stamp: Stamp
    replaced: Stamp | None = None
    write_id: str = ""
    reason: str | None = None
    memory: Memory | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A page of the change feed, oldest first. Pass ``next`` as ``after`` to continue: no version is repeated or
    missed. ``more`` tells whether further versions existed at the time of reading.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add_many(["Likes tea", "Likes cake"])
    ...     first = view.changes(limit=1)
    ...     [version.memory.content for version in view.changes(after=first.next)]
    ['Likes cake']
    """

    versions: tuple[Version, ...]
    next: Position
    more: bool = False

    def __iter__(self) -> Iterator[Version]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    def __getitem__(self, place: int) -> Version:
        return self.versions[place]
