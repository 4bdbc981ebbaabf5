"""The contract of a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Self

from recollect import filters, types
from recollect.errors import RecollectError
from recollect.ports.checks import check_vector, taken
from recollect.types import Layer, Memory, Owner, Sort

if TYPE_CHECKING:  # numpy takes 100 ms, and only searching needs it; values are made by who gives them
    from recollect.ports.queries import Query
    from recollect.ports.values import Embedded, Quota, Record
    from recollect.ports.writes import Write
    from recollect.recall.probes import Candidates, Probe
    from recollect.types import SessionConfig, Stats, Vector, Version


Owners = AbstractSet[Owner]
"""Whose memories an operation may touch. Every read passes one; what is not in it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store promises beyond the contract. The kit checks each in both directions.

    ``durable``: an acknowledged write survives closing, crashing and power loss. ``shared``: several processes may use
    it at once. ``erases``: no byte of erased content remains in what the store keeps.
    """

    durable: bool
    shared: bool
    erases: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A memory and the sequence of its first version: its place in the order of recording."""

    number: int
    memory: Memory


class Store(ABC):
    """Keeps versions and answers for the owners it is asked about.

    Methods may be called from many threads. Errors are those of ``recollect.errors``.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    capabilities: ClassVar[Capabilities]

    @classmethod
    @abstractmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open the store that a URL names, creating it if it is not there."""

    @classmethod
    def exists(cls, url: str) -> bool:  # noqa: ARG003  # by default only opening can tell
        """Whether there is something at a URL that opening would not have to make first."""
        return True

    # -- the narrow waist -------------------------------------------------------------------------------------

    @abstractmethod
    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        """Append versions, all or none, and return their sequences.

        ``Conflict`` if the version stored is not ``Write.expected``, if the memory is another owner's or was erased
        (owners never change, and the id of an erased memory is never used again), or if another memory of the same
        owner, active or forgotten, has the same key. The first vector ever stored decides on embedder and dimension:
        another embedder is an ``EmbedderMismatch``, another dimension ``InvalidInput``. A sequence never becomes
        visible after a higher one. One batch may hold several versions of one memory, and may free a key and take it
        again.

        With a ``quota``, ``QuotaExceeded`` if the writes would leave its owners with more than the limit and with more
        than before (``check_quota`` raises it). Nobody may write between the check and the append.
        """

    @abstractmethod
    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool = False) -> dict[str, Memory]:
        """The memories of those ids, forgotten ones too, that belong to one of the owners."""

    @abstractmethod
    def scan(self, owners: Owners, *, as_of: int | None = None, vectors: bool = False) -> Iterator[Stored]:
        """All memories of the owners, forgotten ones too, in the order of recording; as of a sequence if given.

        ``vectors`` come with versions that are still the newest: those of former versions are not kept.
        """

    @abstractmethod
    def versions(
        self, owners: Owners, *, memory_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[Version]:
        """The journal of the owners (of one memory, if given) behind a sequence, oldest first."""

    @abstractmethod
    def owners(self) -> list[Owner]:
        """Everybody whom the journal tells of, erased memories included, each once and in any order. Who only has
        records may be among them.

        Not for the reads of an identity: it is how a whole store is gone through.
        """

    @abstractmethod
    def sequence(self, at: datetime | None = None) -> int:
        """The highest sequence; of those recorded at or before a time, if given. 0 when there is none."""

    @abstractmethod
    def touch(self, ids: Iterable[str], at: datetime) -> None:
        """Count one access to each memory, of an id that is given twice two; ids that are not there are passed over.

        Bookkeeping: it may be written later, and lost in a crash.
        """

    @abstractmethod
    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Memories, whoever's they are, that have no vector of the embedder; forgotten ones too, oldest first."""

    @abstractmethod
    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors of memories that are there already; those of versions that are not the newest are dropped.

        Vectors of another embedder than the store's are kept beside the others until ``adopt``.
        """

    @abstractmethod
    def adopt(self, embedder: str, dimension: int) -> bool:
        """Make another embedder the store's, if no memory lacks its vector.

        The vectors of the former one are dropped, and the setting ``calibration``, which says what they mean.
        """

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """What is kept in the store about itself: ``embedder``, ``dimension``, ``durability``."""

    @abstractmethod
    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change settings, all or none."""

    @abstractmethod
    def records(self, owners: Owners, kind: str) -> list[Record]:
        """The records of a kind that belong to one of the owners, ordered by name (by its code points)."""

    @abstractmethod
    def all_records(self) -> list[Record]:
        """The records of everybody and of every kind, in any order; ``StoreCorrupt`` if one cannot be read.

        Not for the reads of an identity, as with ``owners``.
        """

    @abstractmethod
    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record; ``None`` if the owner has none of that kind and name."""

    @abstractmethod
    def put_record(self, record: Record) -> None:
        """Keep a record, as durably as a memory; ``Conflict`` if its version is not the one expected.

        Records are the truth, not derived from the journal: ``rebuild`` leaves them as they are.
        """

    @abstractmethod
    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record for good; ``False`` if there is none. A store that erases leaves no byte of it."""

    @abstractmethod
    def close(self) -> None:
        """Release everything. Closing twice is allowed; using a closed store raises ``StoreClosed``."""

    # -- defaults, correct but slow ---------------------------------------------------------------------------

    def journal(self, *, after: int = 0, limit: int | None = None) -> list[Version]:
        """The journal of everybody behind a sequence, oldest first. ``StoreCorrupt`` if one is not what was written."""
        return self.versions(frozenset(self.owners()), after=after, limit=limit)

    def keys(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """The ids of the owner's memories that have one of the keys."""
        wanted = set(keys)
        return {
            stored.memory.key: stored.memory.id
            for stored in self.scan({owner})
            if stored.memory.key is not None and stored.memory.key in wanted
        }

    def select(self, query: Query) -> list[Stored]:
        """The memories that a listing takes, in its order."""
        found = self._matching(query)
        return taken(((filters.sort_value(one.memory, query.sort), one.number, one) for one in found), query)

    def ranked(self, query: Query, value: Callable[[Memory], float]) -> list[Stored]:
        """The memories that a listing takes, by a value that no store can keep: smaller first, of equals the newest.

        The order of the query is ``Sort.RELEVANCE``, and its position begins with such a value. A memory that is given
        to ``value`` has no vector, and may be the store's own. The engine gives a ``decay.Irrelevance``: a store may
        use what that says of itself, and must be right for any other value, too.
        """
        matching = self.select(replace(query, sort=Sort.NEWEST, limit=None, offset=0, after=None))
        return taken(((value(one.memory), one.number, one) for one in matching), query)

    def count(self, query: Query) -> int:
        """How many memories match, whatever the limit, the offset and the position."""
        return sum(1 for _ in self._matching(query))

    def _matching(self, query: Query) -> Iterator[Stored]:
        matches = filters.matching(query.where)
        return (stored for stored in self.scan(query.owners, as_of=query.as_of) if matches(stored.memory))

    def candidates(self, query: Query, probe: Probe) -> Candidates:
        """The memories that may answer a search, with their signals. Any text is allowed in the probe."""
        from recollect.recall import defaults  # lazy: brings in numpy, for stores that have nothing better

        known = self.settings()
        if probe.vector is not None and "embedder" in known:
            check_vector(probe.vector, known["embedder"], int(known["dimension"]))
        found = self.scan(query.owners, as_of=query.as_of, vectors=True)
        return defaults.search(((stored.number, stored.memory) for stored in found), query.where, probe)

    def pick(self, query: Query, numbers: Iterable[int], *, vectors: bool = False) -> dict[int, Memory]:
        """Memories by number: those of the query's owners, as of its moment."""
        wanted = set(numbers)
        found = self.scan(query.owners, as_of=query.as_of, vectors=vectors)
        return {stored.number: stored.memory for stored in found if stored.number in wanted}

    def count_unembedded(self, embedder: str) -> int:
        """How many memories have no vector of the embedder."""
        return len(self.unembedded(embedder, 2**62))

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:  # noqa: ARG002  # nothing is kept by default
        """Vectors that were stored with these digests: the same text need not be embedded twice."""
        return {}

    def usage(self, owners: Owners) -> int:
        """The bytes that the owners' memories take together: ``Stats.bytes_used`` alone."""
        from recollect import statistics  # lazy: as above

        return sum(statistics.footprint(stored.memory) for stored in self.scan(owners, vectors=True))

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts over all memories of the owners."""
        from recollect import statistics  # lazy: as above

        return statistics.tally((stored.memory for stored in self.scan(owners, vectors=True)), now)

    def sizes(self, now: datetime) -> dict[Layer, types.LayerSize]:
        """What each layer that is in use holds, whoever's it is: for those who run the database, not for a view."""
        # No embedder has an empty name, so that every memory lacks its vector.
        owners = {stored.memory.owner for stored in self.unembedded("", 2**62)}
        used = {layer: {owner for owner in owners if owner.layer is layer} for layer in Layer}
        found = {layer: self.stats(theirs, now) for layer, theirs in used.items() if theirs}
        return {
            layer: types.LayerSize(active=stats.active, bytes_used=stats.bytes_used) for layer, stats in found.items()
        }

    def health(self) -> types.Health:
        """Whether the store can work now: by default, whether it answers."""
        try:
            self.sequence()
        except RecollectError as error:
            return types.Health(status=types.Status.UNHEALTHY, latency_ms=0.0, components={"store": error.code})
        return types.Health(status=types.Status.HEALTHY, latency_ms=0.0)

    def check(self, *, repair: bool = False) -> types.Diagnosis:  # noqa: ARG002  # nothing to mend by default
        """Look for damage, and mend what can be mended if asked to."""
        self.sequence()  # a closed store cannot be called sound
        return types.Diagnosis(checks=())

    def accept(self, at: datetime) -> list[str]:  # noqa: ARG002  # nobody edits what is not plain text
        """Take what people changed in the files themselves over as new versions, recorded at a time; the ids.

        Only a store that people can edit has something to do here.
        """
        self.sequence()
        return []

    def compact(self, owners: Owners) -> None:  # noqa: ARG002  # nothing to give back by default
        """Give back the bytes that the owners' memories take without need. What can be read does not change."""
        self.sequence()

    def session_defaults(self) -> SessionConfig | None:
        """How sessions are configured here unless they say otherwise, and how all other memories fade.

        ``None`` where the store has no opinion. One that has limits every session, also those that nobody created.
        """
        return None

    def rebuild(self) -> None:
        """Derive every projection from the journal again."""
        self.sequence()  # a store without projections has only to be there
