"""Pages of a listing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wellkept.types.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a listing, iterable. ``cursor=page.next_cursor`` gets the next page.

    With ``sort="relevance"``, ``reasons`` has the factors of each memory's relevance, parallel to ``memories``.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add_many(["one", "two", "three"])
    ...     page = view.list(limit=2)
    ...     rest = view.list(limit=2, cursor=page.next_cursor)
    >>> [m.content for m in page], [m.content for m in rest], page.total, rest.next_cursor
    (['three', 'two'], ['one'], 3, None)
    """

    memories: tuple[Memory, ...]
    next_cursor: str | None
    total: int
    reasons: tuple[Mapping[str, float], ...] = ()

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What a memory replaced, the oldest first, and what replaced it since, the newest last.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     rome = view.add("Lives in Rome")
    ...     berlin = view.add("Lives in Berlin", supersedes=[rome.id])
    ...     [memory.content for memory in view.lineage(berlin.id).replaced]
    ['Lives in Rome']
    """

    replaced: tuple[Memory, ...] = ()
    replaced_by: tuple[Memory, ...] = ()
