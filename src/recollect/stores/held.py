"""Stores that hold everything in RAM: they answer from there, and differ in what they keep besides."""

import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from recollect.ports import Embedded, Owners, Quota, Store, Stored, Write, check_quota
from recollect.stores.journal import Accesses, Batch, Entry, Journal
from recollect.types import Memory, Owner, Vector, Version


class HeldStore(Store):
    """Answers from a :class:`Journal`.

    A subclass says how it is entered for reading and for writing, and keeps what changes before it becomes visible: a
    method ``_keep...`` that raises leaves everything as it was.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._journal = Journal()

    @abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """Hold the lock, in a store that is open and up to date."""

    @abstractmethod
    def _writing(self, operation: str) -> AbstractContextManager[None]:
        """The same, and nobody else writes."""

    def _keep(self, batch: Batch) -> None:
        """Keep the versions of a batch."""

    def _keep_vectors(self, vectors: Sequence[tuple[Entry, Vector]], settings: Mapping[str, str]) -> None:
        """Keep vectors that came later, and the settings that the first one brings."""

    def _keep_adoption(self, embedder: str, dimension: int) -> None:
        """Keep that another embedder took over: the waiting vectors are the vectors from now on."""

    def _keep_settings(self, values: Mapping[str, str]) -> None:
        """Keep settings."""

    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        """Check the whole batch first, keep it, and only then change anything."""
        with self._writing("apply"):
            batch = self._journal.stage(writes)
            if quota is not None:
                before = self._journal.used(quota.owners)
                check_quota(quota, before, before + batch.growth(quota.owners))
            if batch.entries:
                self._keep(batch)
            return self._journal.take(batch)

    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool = False) -> dict[str, Memory]:
        """Look each id up among the heads."""
        wanted = list(ids)
        with self._reading():
            return self._journal.get(owners, wanted, vectors=vectors)

    def scan(self, owners: Owners, *, as_of: int | None = None, vectors: bool = False) -> Iterator[Stored]:
        """Copy everything under the lock, so that the answer is one state and not a mixture."""
        with self._reading():
            return iter(self._journal.scan(owners, as_of=as_of, vectors=vectors))

    def versions(
        self, owners: Owners, *, memory_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[Version]:
        """Walk the journal."""
        with self._reading():
            return self._journal.versions(owners, memory_id=memory_id, after=after, limit=limit)

    def owners(self) -> list[Owner]:
        """Whoever has an id, be it that of an erased memory."""
        with self._reading():
            return list(self._journal.owned)

    def sequence(self, at: datetime | None = None) -> int:
        """The highest sequence, up to a time if given."""
        with self._reading():
            return self._journal.sequence(at)

    def touch(self, ids: Iterable[str], at: datetime) -> None:
        """Count at once; ids that are not there are passed over."""
        with self._reading():
            for memory_id in ids:
                self._journal.touch(memory_id, Accesses(1, at))

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Look at every head."""
        with self._reading():
            found = zip(range(limit), self._journal.unembedded(embedder), strict=False)
            return [Stored(entry.number, self._journal.dressed(memory)) for _, (entry, memory) in found]

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Check everything first, as ``apply`` does."""
        with self._writing("embed"):
            fitting, settings = self._journal.fitting(vectors)
            if not fitting:
                return
            self._keep_vectors(fitting, settings)
            self._journal.settings |= settings
            for head, vector in fitting:
                self._journal.place_vector(head.memory_id, vector, replaces=False)

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Exchange all vectors at once, or none."""
        with self._writing("adopt"):
            if self._journal.settings.get("embedder") == embedder:
                return True
            if not self._journal.ready(embedder):
                return False
            self._keep_adoption(embedder, dimension)
            self._journal.adopt(embedder, dimension)
            return True

    def settings(self) -> dict[str, str]:
        """A copy."""
        with self._reading():
            return dict(self._journal.settings)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change the given ones and leave the others."""
        with self._writing("set_settings"):
            self._keep_settings(values)
            self._journal.settings |= values

    def usage(self, owners: Owners) -> int:
        """Add up all of the owners' memories."""
        with self._reading():
            return self._journal.used(owners)

    def keys(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Look each key up."""
        wanted = list(keys)
        with self._reading():
            known = self._journal.keys
            return {key: known[owner, key] for key in wanted if (owner, key) in known}
