"""The port for the truth: versions, appended per owner."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wellkept import filters, statistics
from wellkept.errors import Unsupported
from wellkept.filters import Where
from wellkept.types import (
    Access,
    Embedded,
    Guard,
    JournalPage,
    Mark,
    Owner,
    Owners,
    Place,
    Position,
    Quota,
    Sort,
    Stats,
    Stored,
    Usage,
    Vector,
    Write,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A listing: whose memories, which of them, in which order, and from where on.

    ``after`` is the last memory of the page before. ``at`` is a position: the memories as they were then. ``sort`` is
    one of ``ORDERS_OF_STORES``.
    """

    owners: Owners
    where: Where
    sort: Sort = Sort.NEWEST
    limit: int | None = None
    offset: int = 0
    after: Place | None = None
    at: Position | None = None


class Journal(ABC):
    """Versions of memories. Order is per owner: each owner has its own dense sequence, and owners never wait for each
    other. Methods may be called from many threads; errors are those of ``wellkept.errors``.

    Methods that are not abstract have defaults over ``scan``: correct but slow. Override them for speed; the kit in
    ``wellkept.testing`` holds every override to the same answers.
    """

    # -- writing ----------------------------------------------------------------------------------------------

    @abstractmethod
    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Append versions, all or none, and return the position of the owners written to.

        The rules stand in ``wellkept.ports.plan``: call it while no other writer of these owners can write.
        """

    @abstractmethod
    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors of memories that are there already; those of versions that are not the newest are dropped.

        Vectors of another embedder than the store's are kept beside the others until ``adopt``. A vector in use counts
        towards the owner's bytes, and the owner's ``Mark.revision`` rises.
        """

    @abstractmethod
    def adopt(self, embedder: str, dimension: int) -> bool:
        """Make another embedder the store's, if no memory that needs its vector lacks it; every revision rises.

        The vectors of the former one are dropped, and the setting ``calibration``, which says what they mean.
        """

    @abstractmethod
    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Add to the access counts of memories, all or none; those that are not there are passed over.

        The caller buffers, and counts again what an error says was not counted. So an error after which that is not
        known has ``{"outcome": "unknown"}`` in its details. ``wait_ms`` is how long to wait for other writers at most,
        ``None`` as long as any write does: reads must not be held up by their bookkeeping.
        """

    @abstractmethod
    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change settings, all or none."""

    def rewrite(self, versions: Sequence[Stored]) -> None:  # noqa: ARG002  # not every store can
        """Put other facets, payloads and reasons in the place of those of stored versions, all or none: the engine
        encrypts what is there already.

        A version is named by owner, id, version and stamp; one that is not there is passed over. Where it has a
        ``vector``, and is the newest, that takes the place of the memory's vector. Nothing else changes: the facets
        that every memory has are the same, and positions hold. What was there before is gone as after an erasure: from
        the files, from images and from other derived copies.
        """
        raise Unsupported(
            "the store cannot encrypt in place", details={"capability": "rewrite"}, hint="convert it to another store"
        )

    # -- reading ----------------------------------------------------------------------------------------------

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """What the store keeps about itself: ``origin``, ``epoch``, ``embedder``, ``dimension``, ``durability``, and
        what the engine notes. ``StoreSettings`` where they can be damaged.
        """

    @abstractmethod
    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
    ) -> Sequence[Stored]:
        """The newest versions of memories, forgotten and archived ones too, erased ones not; as of a position if given.

        Ids are unique per owner: two owners may each have a memory of one id. Without ``payload`` neither the payload
        nor the facet ``text`` is read.
        """

    @abstractmethod
    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """The ids of the owner's memories that have these keys."""

    @abstractmethod
    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """All memories of the owners as ``get`` gives them, in the order of recording, read from one state."""

    @abstractmethod
    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The journals of the owners behind a position: each owner's in the order of its sequence, nothing missed and
        nothing twice. ``PositionLost`` if the journal no longer holds the position.
        """

    @abstractmethod
    def history(self, owner: Owner, memory_id: str) -> Sequence[Stored]:
        """Every version of one memory, the oldest first; of an erased one, the tombstone."""

    @abstractmethod
    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """The journals of all owners, each in the order of its sequence. For copies and followers of a whole store; it
        may be held back by a long transaction.
        """

    @abstractmethod
    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """Where the journals of the owners end; at a time if given. Times rise per owner, so a time is a position."""

    @abstractmethod
    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """How far each owner is that has anything; cheap, because every search asks."""

    @abstractmethod
    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """What each owner holds, from counters."""

    @abstractmethod
    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> Sequence[Owner]:
        """Everybody the journal tells of, erased memories included, behind an owner.

        In the order of their names (``codec.encode_owner``), so that the owners of a layer and of a user stand
        together. Not for the reads of an identity: it is how a whole store is gone through, and how quotas find all
        owners that count together.
        """

    @abstractmethod
    def unembedded(self, embedder: str, limit: int) -> Sequence[Stored]:
        """Memories of any owner that have no vector of the embedder, forgotten ones too; what moved away needs none."""

    # -- defaults ---------------------------------------------------------------------------------------------

    def select(self, query: Query) -> Sequence[Stored]:
        """The memories of one page, in its order."""
        return filters.page(
            self._matching(query), query.sort, after=query.after, offset=query.offset, limit=query.limit
        )

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many memories match."""
        return len(self.ids(owners, where, at=at))

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[tuple[Owner, str]]:
        """All memories that match, by owner and id, in no order."""
        return [(one.owner, one.id) for one in self._matching(Query(owners=owners, where=where, at=at))]

    def changed(self, owners: Owners, *, after: Position) -> Sequence[tuple[Owner, str]]:
        """The memories of the owners that have versions behind a position, by owner and id, each once.

        ``PositionLost`` as with ``versions``.
        """
        return list(dict.fromkeys((one.owner, one.id) for one in self.versions(owners, after=after)))

    def _matching(self, query: Query) -> Iterator[Stored]:
        fits = filters.matching(query.where)
        return (one for one in self.scan(query.owners, at=query.at) if fits(one))

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts over all memories of the owners."""
        return statistics.tally(self.scan(owners, payload=False, vectors=True), now)

    def count_unembedded(self, embedder: str) -> int:
        """How many memories have no vector of the embedder."""
        return len(self.unembedded(embedder, 2**62))

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:  # noqa: ARG002  # nothing is kept by default
        """Vectors that were stored with these digests: the same text need not be embedded twice."""
        return {}
