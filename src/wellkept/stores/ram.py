"""The store that keeps everything in this process: the simplest correct one. Other stores are compared with it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

from wellkept import codec
from wellkept.errors import ConfigurationError, StoreClosed
from wellkept.ports import Capabilities, Lease, Record, Records, Store, check_record
from wellkept.settings import UrlForm
from wellkept.stores.in_memory import InMemoryJournal
from wellkept.types import Guard, Owner, Owners


class _Held(NamedTuple):
    lease: Lease
    until: datetime


class RamRecords(Records):
    """Records and leases in a dictionary."""

    def __init__(self, reading: Callable[[], AbstractContextManager[None]], clock: Callable[[], datetime]) -> None:
        self._reading = reading
        self._clock = clock
        self.kept: dict[tuple[Owner, str, str], Record] = {}
        self.leases: dict[str, _Held] = {}

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """Look it up."""
        with self._reading():
            return self.kept.get((owner, kind, name))

    def put(self, record: Record) -> None:
        """Take the place of the version before."""
        self._keep(record, lambda _: record.version - 1)

    def restore(self, record: Record) -> None:
        """Take the place of any version before."""
        self._keep(record, lambda stored: min(stored, record.version - 1))

    def _keep(self, record: Record, expected: Callable[[int], int]) -> None:
        place = (record.owner, record.kind, record.name)
        with self._reading():
            stored = self.kept[place].version if place in self.kept else 0
            check_record(record.kind, record.name, stored, expected(stored))
            self.kept[place] = record

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove it."""
        with self._reading():
            return self.kept.pop((owner, kind, name), None) is not None

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """Look at every record."""
        with self._reading():
            found = [
                one
                for one in self.kept.values()
                if (owners is None or one.owner in owners) and kind in (None, one.kind) and one.name > after
            ]
        found.sort(key=lambda one: (one.name, codec.encode_owner(one.owner), one.kind))
        return found if limit is None else found[:limit]

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Taken if nobody holds it, or its time is over, or it is the holder's own."""
        with self._reading():
            now, held = self._clock(), self.leases.get(name)
            until = now + timedelta(milliseconds=ttl_ms)
            if held is not None and held.until > now and held.lease.holder != holder:
                return None
            kept = held is not None and held.until > now
            token = held.lease.token + (0 if kept else 1) if held else 1
            lease = Lease(name=name, holder=holder, token=token)
            self.leases[name] = _Held(lease, until)
            return lease

    def release(self, lease: Lease) -> None:
        """Its time is over; the token stays, so that the next one is higher."""
        with self._reading():
            held = self.leases.get(lease.name)
            if held is not None and held.lease == lease:
                self.leases[lease.name] = _Held(lease, self._clock())

    def tokens(self) -> dict[str, int]:
        """The tokens of the leases that hold now."""
        now = self._clock()
        return {name: held.lease.token for name, held in self.leases.items() if held.until > now}


class RamJournal(InMemoryJournal):
    """The journal of a store in RAM."""

    def __init__(self, store: "RamStore") -> None:
        super().__init__(os.urandom)
        self._store = store

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Hold the lock; the check is inside it, so that no write follows a close."""
        with self._lock:
            self._store.check_open()
            yield

    def _versions_of_guards(self, guards: Sequence[Guard]) -> Mapping[tuple[Owner, str, str], int]:
        return {place: record.version for place, record in self._store.records.kept.items()} if guards else {}

    def _tokens_of_guards(self, guards: Sequence[Guard]) -> Mapping[str, int]:
        return self._store.records.tokens() if guards else {}


class RamStore(Store):
    """Keeps memories in this process until it is closed.

    >>> store = RamStore.from_url("ram:")
    >>> store.journal.owners()
    []
    """

    name = "ram"
    capabilities = Capabilities(durable=False, shared=False, erases=True, leases=True)
    url_form = UrlForm(sample="ram:", durability=False)
    records: RamRecords

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._closed = False
        journal = RamJournal(self)
        self.journal = journal
        self.records = RamRecords(journal._reading, clock)  # one lock for both

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """A new, empty store: what is kept in a process has no name to find it by."""
        if url != "ram:" or durability is not None:
            raise ConfigurationError(
                "a store in RAM has neither a name nor a durability",
                hint="use 'ram:' alone, or a path for what shall last",
            )
        return cls()

    @classmethod
    def exists(cls, url: str) -> bool:  # noqa: ARG003  # whatever it is
        """Never: what is kept in a process cannot be opened again."""
        return False

    def check_open(self) -> None:
        """Refuse to work after ``close``."""
        if self._closed:
            raise StoreClosed("the store is closed", hint="open a new one")

    def close(self) -> None:
        """Drop everything."""
        self._closed = True
        self.records.kept.clear()
