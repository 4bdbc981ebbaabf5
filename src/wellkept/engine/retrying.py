"""Calls that are safe to repeat are repeated as the retry policy says: reads, and appends, which their stamps make
idempotent. Records and access counts are not: a second write of those would be a conflict, or count twice.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from wellkept.errors import WellkeptError
from wellkept.ports import Journal, Records
from wellkept.settings import RetryPolicy

Sleep = Callable[[float], None]

_REPEATED: dict[type, frozenset[str]] = {
    Journal: frozenset(
        name for name, value in vars(Journal).items() if isinstance(value, FunctionType) and name[0] != "_"
    )
    - {"count_accesses", "scan"},  # a scan fails, if at all, while it is iterated over
    Records: frozenset({"get", "list"}),
}


def journal(wrapped: Journal, policy: RetryPolicy, sleep: Sleep) -> Journal:
    """A journal whose calls are repeated where that is safe."""
    return wrapped if policy.attempts == 1 else cast(Journal, _JOURNAL(wrapped, policy, sleep))


def records(wrapped: Records, policy: RetryPolicy, sleep: Sleep) -> Records:
    """Records whose reads are repeated."""
    return wrapped if policy.attempts == 1 else cast(Records, _RECORDS(wrapped, policy, sleep))


def _again(error: WellkeptError, policy: RetryPolicy, sleep: Sleep, call: Callable[[], Any]) -> Any:
    """Repeat a call that failed, until it works or the policy says no more."""
    failures = 1
    while (pause_s := policy.pause_s(error, failures)) is not None:
        sleep(pause_s)
        try:
            return call()
        except WellkeptError as latest:
            error, failures = latest, failures + 1
    raise error


def _retrying(port: type) -> type:
    """A subclass of a port that passes every call on, and repeats those that may be."""

    def forwarded(name: str) -> Callable[..., Any]:
        def once(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(self._wrapped, name)(*args, **kwargs)

        def repeated(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = getattr(self._wrapped, name)
            try:
                return call(*args, **kwargs)
            except WellkeptError as error:
                return _again(error, self._policy, self._sleep, lambda: call(*args, **kwargs))

        return repeated if name in _REPEATED[port] else once

    def init(self: Any, wrapped: object, policy: RetryPolicy, sleep: Sleep) -> None:
        self._wrapped, self._policy, self._sleep = wrapped, policy, sleep

    methods = {
        name: forwarded(name)
        for name, value in vars(port).items()
        if isinstance(value, FunctionType) and name[0] != "_"
    }
    return type(f"Retrying{port.__name__}", (port,), {"__init__": init, **methods})


_JOURNAL = _retrying(Journal)
_RECORDS = _retrying(Records)
