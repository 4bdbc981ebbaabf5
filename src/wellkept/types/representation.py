"""Representations of values without what people wrote, because values end up in logs and in tracebacks."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

_PLAIN = (type(None), str, bytes, tuple, list, dict)


def hiding(*hidden: str) -> Callable[[Any], str]:
    """A ``__repr__`` for a dataclass or a named tuple that leaves the values of some fields out.

    >>> from wellkept.types import Fact
    >>> Fact(subject="Ada", predicate="lives in", object="Rome", kind="home")
    Fact(subject=…, predicate=…, object=…, kind='home', valid_from=None, valid_until=None, multiple=False)
    """

    def representation(self: Any) -> str:
        return shown(self, *hidden)

    return representation


def shown(value: Any, *hidden: str) -> str:
    """A dataclass or a named tuple as a text, without the values of some fields."""
    names = getattr(value, "_fields", None) or [one.name for one in fields(value)]
    values = ((name, getattr(value, name)) for name in names)
    told = (f"{name}={'…' if name in hidden and _is_set(one) else repr(one)}" for name, one in values)
    return f"{type(value).__name__}({', '.join(told)})"


def _is_set(value: object) -> bool:
    """Whether there is something to hide; an array of somebody else's cannot be asked."""
    return not isinstance(value, _PLAIN) or bool(value)
