"""A store whose calls are watched: counted, or refused unless the engine's checks allow them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from wellkept.ports import Index, Journal, Records, Store

Call = Callable[[str, dict[str, Any]], None]
"""Called before each call of a port, with ``Journal.append`` or the like and the arguments by name."""


def watch(store: Store, call: Call) -> Store:
    """The same store; ``call`` is called before whatever the engine asks of its journal and its records."""
    outer: Store = _watched(Store, store, call)
    outer.journal = _watched(Journal, store.journal, call)
    outer.records = _watched(Records, store.records, call)
    return outer


def watch_index(index: Index, call: Call) -> Index:
    """The same for an index."""
    watched: Index = _watched(Index, index, call)
    return watched


def _watched(port: type[Any], inner: object, call: Call) -> Any:
    """An implementation of a port that passes every call on. What ``inner`` calls of itself is not seen."""

    def passing(method: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(port, method))

        def passed(self: object, *args: Any, **kwargs: Any) -> Any:
            arguments = signature.bind(self, *args, **kwargs).arguments
            del arguments["self"]
            call(f"{port.__name__}.{method}", arguments)
            return getattr(inner, method)(*args, **kwargs)

        return passed

    def of_inner(name: str) -> property:
        return property(lambda _: getattr(inner, name))

    members: dict[str, Any] = {}
    for name, value in inspect.getmembers(port):
        if isinstance(value, property):
            members[name] = of_inner(name)
        elif inspect.isfunction(value) and not name.startswith("_"):
            members[name] = passing(name)
        elif inspect.ismethod(value) or name in port.__annotations__:
            members[name] = getattr(inner, name)
    members |= {name: getattr(inner, name) for name in port.__annotations__ if hasattr(inner, name)}
    return type(f"Watched{port.__name__}", (port,), members)()
