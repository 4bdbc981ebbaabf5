"""A store that fails when it is told to."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ParamSpec, Self, TypeVar

from recollect.errors import ConfigurationError
from recollect.ports import Capabilities, Embedded, Owners, Query, Quota, Record, Store, Stored, Write
from recollect.recall.probes import Candidates, Probe
from recollect.types import Diagnosis, Health, Layer, LayerSize, Memory, Owner, SessionConfig, Stats, Vector, Version

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Fault:
    method: str
    call: int
    error: BaseException
    after: bool


class FaultyStore(Store):
    """Wraps a store, passes every call on, and raises where it was told to.

    For tests of what stands above a store: that it reports the error and leaves no trace when the
    call failed before it was made, and copes when it failed after.

    >>> from recollect.errors import StoreFull
    >>> from recollect.stores.ram import RamStore
    >>> store = FaultyStore(RamStore())
    >>> store.fail("sequence", StoreFull("no space left"), call=2)
    >>> store.sequence()
    0
    >>> store.sequence()
    Traceback (most recent call last):
    ...
    recollect.errors.StoreFull: no space left
    >>> store.sequence(), store.calls["sequence"]
    (0, 3)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: Counter[str] = Counter()
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()

    def fail(self, method: str, error: BaseException, *, call: int = 1, after: bool = False) -> None:
        """Raise an error in the n-th call of a method from now on.

        ``after`` makes the call first: the work is done, and only the answer is lost.
        """
        if method.startswith("_") or not callable(getattr(Store, method, None)):
            raise ValueError(f"a store has no method {method!r}")
        with self._lock:
            self._faults.append(_Fault(method, self.calls[method] + call, error, after))

    def _pass_on(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        name = method.__name__
        with self._lock:
            self.calls[name] += 1
            due = [one for one in self._faults if (one.method, one.call) == (name, self.calls[name])]
        for fault in due:
            if not fault.after:
                raise fault.error
        result = method(*args, **kwargs)
        for fault in due:
            raise fault.error
        return result

    # What a class says of itself, this one takes from the store that it wraps.
    @property
    def name(self) -> str:  # type: ignore[override]  # see above
        """The name of the wrapped store."""
        return self.store.name

    @property
    def version(self) -> str:  # type: ignore[override]  # see above
        """The version of the wrapped store."""
        return self.store.version

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]  # see above
        """The capabilities of the wrapped store."""
        return self.store.capabilities

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Refuse: a faulty store is made around another one."""
        raise ConfigurationError(
            f"no URL names a faulty store: {url[:40]!r}, {durability!r}",
            hint="use FaultyStore(store)",
        )

    @classmethod
    def exists(cls, url: str) -> bool:  # noqa: ARG003  # whatever it is
        """Never: no URL names a faulty store."""
        return False

    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        return self._pass_on(self.store.apply, writes, quota=quota)

    def get(self, owners: Owners, ids: Iterable[str], *, vectors: bool = False) -> dict[str, Memory]:
        return self._pass_on(self.store.get, owners, ids, vectors=vectors)

    def scan(self, owners: Owners, *, as_of: int | None = None, vectors: bool = False) -> Iterator[Stored]:
        return self._pass_on(self.store.scan, owners, as_of=as_of, vectors=vectors)

    def versions(
        self,
        owners: Owners,
        *,
        memory_id: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Version]:
        return self._pass_on(self.store.versions, owners, memory_id=memory_id, after=after, limit=limit)

    def journal(self, *, after: int = 0, limit: int | None = None) -> list[Version]:
        """As the wrapped store does."""
        return self._pass_on(self.store.journal, after=after, limit=limit)

    def owners(self) -> list[Owner]:
        return self._pass_on(self.store.owners)

    def sequence(self, at: datetime | None = None) -> int:
        return self._pass_on(self.store.sequence, at)

    def touch(self, ids: Iterable[str], at: datetime) -> None:
        self._pass_on(self.store.touch, ids, at)

    def count_unembedded(self, embedder: str) -> int:
        """As the wrapped store does."""
        return self._pass_on(self.store.count_unembedded, embedder)

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        return self._pass_on(self.store.unembedded, embedder, limit)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        self._pass_on(self.store.embed, vectors)

    def adopt(self, embedder: str, dimension: int) -> bool:
        return self._pass_on(self.store.adopt, embedder, dimension)

    def settings(self) -> dict[str, str]:
        return self._pass_on(self.store.settings)

    def set_settings(self, values: Mapping[str, str]) -> None:
        self._pass_on(self.store.set_settings, values)

    def records(self, owners: Owners, kind: str) -> list[Record]:
        return self._pass_on(self.store.records, owners, kind)

    def all_records(self) -> list[Record]:
        return self._pass_on(self.store.all_records)

    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        return self._pass_on(self.store.record, owner, kind, name)

    def put_record(self, record: Record) -> None:
        self._pass_on(self.store.put_record, record)

    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        return self._pass_on(self.store.drop_record, owner, kind, name)

    def close(self) -> None:
        self._pass_on(self.store.close)

    def keys(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        return self._pass_on(self.store.keys, owner, keys)

    def select(self, query: Query) -> list[Stored]:
        return self._pass_on(self.store.select, query)

    def ranked(self, query: Query, value: Callable[[Memory], float]) -> list[Stored]:
        return self._pass_on(self.store.ranked, query, value)

    def count(self, query: Query) -> int:
        return self._pass_on(self.store.count, query)

    def candidates(self, query: Query, probe: Probe) -> Candidates:
        return self._pass_on(self.store.candidates, query, probe)

    def pick(self, query: Query, numbers: Iterable[int], *, vectors: bool = False) -> dict[int, Memory]:
        return self._pass_on(self.store.pick, query, numbers, vectors=vectors)

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        return self._pass_on(self.store.embedded, digests)

    def usage(self, owners: Owners) -> int:
        return self._pass_on(self.store.usage, owners)

    def stats(self, owners: Owners, now: datetime) -> Stats:
        return self._pass_on(self.store.stats, owners, now)

    def sizes(self, now: datetime) -> dict[Layer, LayerSize]:
        return self._pass_on(self.store.sizes, now)

    def health(self) -> Health:
        return self._pass_on(self.store.health)

    def check(self, *, repair: bool = False) -> Diagnosis:
        return self._pass_on(self.store.check, repair=repair)

    def accept(self, at: datetime) -> list[str]:
        return self._pass_on(self.store.accept, at)

    def compact(self, owners: Owners) -> None:
        self._pass_on(self.store.compact, owners)

    def session_defaults(self) -> SessionConfig | None:
        return self._pass_on(self.store.session_defaults)

    def rebuild(self) -> None:
        self._pass_on(self.store.rebuild)
