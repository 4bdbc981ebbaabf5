"""The index of the store: in RAM, following the journal; in tables of the server for owners with many memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from wellkept.indexes.ram import RamIndex
from wellkept.indexes.split import SplitIndex
from wellkept.ports.index import Index, Key, Near
from wellkept.recall import candidates as gathered
from wellkept.recall.candidates import Candidates
from wellkept.stores.postgres.search_tables import TableIndex
from wellkept.types import Component, Mark, Owner, Owners, Status, Stored

_SHRUNK = 2  # an owner goes back to RAM when half as many are left, so that it does not go to and fro


class PostgresIndex(SplitIndex):
    """Searches owners of up to ``ram_rows`` memories in RAM and larger ones in the server's tables.

    ``count`` tells how many memories an owner has. An owner moves when the index is asked how far it is: it then says
    that it has nothing, and is loaded into the other place.
    """

    def __init__(self, tables: TableIndex, count: Callable[[Owner], int], ram_rows: int) -> None:
        self._tables = tables
        self._count = count
        self._ram_rows = ram_rows
        self._ram = RamIndex()
        self._large: frozenset[Owner] = frozenset()

    def _of(self, owner: Owner) -> Index:
        return self._tables if owner in self._large else self._ram

    # -- following --------------------------------------------------------------------------------------------

    def followed(self, owner: Owner) -> Mark | None:
        """How far the owner's index is; ``None`` if it is in the wrong place."""
        mark = None if owner in self._large else self._ram.followed(owner)
        if mark is not None:
            if mark.seq <= self._ram_rows or self._ram.corpus({owner}, ()).memories <= self._ram_rows:
                return mark
            self._ram.drop([owner])
            return None
        mark = self._tables.followed(owner)
        if mark is not None and self._tables.size(owner) * _SHRUNK <= self._ram_rows:
            self._tables.drop([owner])
            mark = None
        self._large = self._large - {owner} if mark is None else self._large | {owner}
        return mark

    def following(self, owner: Owner) -> AbstractContextManager[object]:
        """A lock of the owner's own."""
        return self._ram.following(owner)

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        """Load an owner where it belongs. Every memory has a version, so that few versions need no counting."""
        if upto.seq > self._ram_rows and self._count(owner) > self._ram_rows:
            self._large |= {owner}
            self._tables.load(owner, stored, dimension, upto)
        else:
            if owner in self._large:
                self._tables.drop([owner])
                self._large -= {owner}
            self._ram.load(owner, stored, dimension, upto)

    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        """Take in what changed."""
        self._of(owner).follow(owner, stored, gone, upto)

    def drop(self, owners: Iterable[Owner] | None = None) -> None:
        """Forget both places."""
        some = None if owners is None else list(owners)
        self._ram.drop(some)
        self._tables.drop(some)
        self._large = frozenset() if some is None else self._large - set(some)

    # -- searching --------------------------------------------------------------------------------------------

    def _parts(self, owners: Iterable[Owner]) -> list[tuple[Index, Owners]]:
        """Who is to be asked about which owners."""
        wanted = frozenset(owners)
        large = wanted & self._large
        parts: list[tuple[Index, Owners]] = [(self._ram, wanted - large), (self._tables, large)]
        return [(index, some) for index, some in parts if some]

    def candidates(self, *keys: Sequence[Key | Near], beside: Sequence[Key | Near] = ()) -> Candidates:
        """The candidates of both places; each passes over owners that are not its own."""
        if not self._large:
            return self._ram.candidates(*keys, beside=beside)
        return gathered.joined([index.candidates(*keys, beside=beside) for index in (self._ram, self._tables)])

    def health(self) -> Component:
        """Whether every owner that was searched is held in RAM."""
        if not self._large:
            return Component()
        return Component(
            status=Status.DEGRADED,
            message=f"slow: {len(self._large)} owners have more than {self._ram_rows} memories, and are searched by the"
            " server; raise ram_rows in the URL if this process has the memory for them",
        )
