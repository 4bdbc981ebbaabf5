"""The store that keeps everything in this process: the simplest correct one. Other stores are compared with it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Self

from recollect.errors import ConfigurationError, StoreClosed
from recollect.ports import Capabilities, Owners, Record, check_record
from recollect.stores.held import HeldStore
from recollect.stores.journal import Journal
from recollect.types import Owner


class RamStore(HeldStore):
    """Keeps memories in this process until it is closed.

    >>> store = RamStore.from_url("ram:")
    >>> store.sequence()
    0
    """

    name = "ram"
    capabilities = Capabilities(durable=False, shared=False, erases=True)

    def __init__(self) -> None:
        super().__init__()
        self._closed = False
        self._records: dict[tuple[Owner, str, str], Record] = {}

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

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Hold the lock; the check is inside it, so that no write lands behind a close."""
        with self._lock:
            if self._closed:
                raise StoreClosed("the store is closed", hint="open a new one")
            yield

    def _writing(self, operation: str) -> AbstractContextManager[None]:  # noqa: ARG002  # nobody else is told
        return self._reading()

    def records(self, owners: Owners, kind: str) -> list[Record]:
        """Look at every record."""
        with self._reading():
            found = [one for one in self._records.values() if one.kind == kind and one.owner in owners]
        return sorted(found, key=lambda one: one.name)

    def all_records(self) -> list[Record]:
        """As they are."""
        with self._reading():
            return list(self._records.values())

    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        """Look it up."""
        with self._reading():
            return self._records.get((owner, kind, name))

    def put_record(self, record: Record) -> None:
        """Take the place of the version before."""
        place = (record.owner, record.kind, record.name)
        with self._reading():
            known = self._records.get(place)
            check_record(record, known.version if known else 0)
            self._records[place] = record

    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        """Forget it."""
        with self._reading():
            return self._records.pop((owner, kind, name), None) is not None

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            self._closed = True
            self._journal = Journal()
            self._records.clear()
