"""A store that fails when it is told to."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Self

from wellkept.errors import ConfigurationError
from wellkept.ports import Capabilities, Index, Journal, Records, Store


@dataclass(frozen=True, slots=True)
class _Fault:
    method: str
    call: int
    error: BaseException
    after: bool


class Faults:
    """Counts calls by name, and raises in those that shall fail."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._planned: list[_Fault] = []
        self._lock = threading.Lock()

    def plan(self, method: str, error: BaseException, call: int, *, after: bool) -> None:
        """Raise an error in the n-th call of a method from now on."""
        with self._lock:
            self._planned.append(_Fault(method, self.calls[method] + call, error, after))

    def call(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a call, unless it shall fail."""
        with self._lock:
            self.calls[name] += 1
            due = [one for one in self._planned if (one.method, one.call) == (name, self.calls[name])]
        for fault in due:
            if not fault.after:
                raise fault.error
        result = method(*args, **kwargs)
        for fault in due:
            raise fault.error
        return result


def _methods(port: type) -> list[str]:
    return [name for name, value in vars(port).items() if isinstance(value, FunctionType) and name[0] != "_"]


def _forwarding(port: type, prefix: str) -> type:
    """A subclass of a port whose methods all go through ``Faults.call``."""

    def forwarded(name: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._faults.call(prefix + name, getattr(self._wrapped, name), *args, **kwargs)

        return method

    def init(self: Any, wrapped: object, faults: Faults) -> None:
        self._wrapped, self._faults = wrapped, faults

    methods = {name: forwarded(name) for name in _methods(port)}
    return type(f"Faulty{port.__name__}", (port,), {"__init__": init, **methods})


_JOURNAL = _forwarding(Journal, "")
_RECORDS = _forwarding(Records, "records.")
_STORE = frozenset(_methods(Store))


class FaultyStore(Store):
    """Wraps a store, passes every call on, and raises where it was told to.

    For tests of what stands above a store: that it reports the error and leaves no trace when the call failed before it
    was made, and copes when it failed after. Methods of the journal go by their names, those of the records by
    ``records.put``, those of the store by ``store.check``.

    >>> from wellkept.errors import StoreFull
    >>> from wellkept.stores.ram import RamStore
    >>> store = FaultyStore(RamStore())
    >>> store.fail("owners", StoreFull("no space left"), call=2)
    >>> store.journal.owners()
    []
    >>> store.journal.owners()
    Traceback (most recent call last):
    ...
    wellkept.errors.StoreFull: no space left
    >>> store.journal.owners(), store.calls["owners"]
    ([], 3)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._faults = Faults()
        self.journal = _JOURNAL(store.journal, self._faults)
        self.records = _RECORDS(store.records, self._faults)
        self.images = store.images
        self.path = store.path

    @property
    def index(self) -> Index | None:
        """The index of the wrapped store."""
        return self.store.index

    @property
    def calls(self) -> Counter[str]:
        """How often each method was called."""
        return self._faults.calls

    def fail(self, method: str, error: BaseException, *, call: int = 1, after: bool = False) -> None:
        """Raise an error in the n-th call of a method from now on.

        ``after`` makes the call first: the work is done, and only the answer is lost.
        """
        port, _, name = method.rpartition(".")
        known = {"": _methods(Journal), "records": _methods(Records), "store": _STORE}
        if name not in known.get(port, ()):
            raise ValueError(f"a store has no method {method!r}")
        self._faults.plan(method, error, call, after=after)

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
            f"no URL names a faulty store: {url[:40]!r}, {durability!r}", hint="use FaultyStore(store)"
        )

    @classmethod
    def exists(cls, url: str) -> bool:  # noqa: ARG003  # whatever it is
        """Never: no URL names a faulty store."""
        return False

    def __getattribute__(self, name: str) -> Any:
        if name in _STORE:
            store, faults = object.__getattribute__(self, "store"), object.__getattribute__(self, "_faults")
            return partial(faults.call, f"store.{name}", getattr(store, name))
        return object.__getattribute__(self, name)

    def close(self) -> None:
        """Close the wrapped store."""
        self.store.close()
