"""JSON objects as text: what search, prompts and people see of structured content."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wellkept import codec

_ROLE_CHARACTERS = 1_000
_MESSAGE = frozenset({"role", "message", "metadata"})


def is_message(data: Mapping[str, Any]) -> bool:
    """Whether an object is something that was said: a message and, perhaps, a role and metadata.

    >>> is_message({"role": "user", "message": "Hi"}), is_message({"decision": "Use tabs"})
    (True, False)
    """
    return isinstance(data.get("message"), str) and bool(data["message"].strip()) and data.keys() <= _MESSAGE


def role_of(data: Mapping[str, Any]) -> str | None:
    """Who said a message, if an object is one and says so in a line of text."""
    role = data.get("role") if is_message(data) else None
    is_line = isinstance(role, str) and 0 < len(role) <= _ROLE_CHARACTERS and role.isprintable()
    return role if is_line else None


def rendered(data: Mapping[str, Any]) -> str:
    """An object as text: a line for each value, behind its path; lists of plain values stand on one line.

    Of a message it is the message alone. Values that are null say nothing; if there are no others, it is the JSON.

    >>> print(rendered({"decision": "Use PKCE", "why": {"risk": 0.2}, "instead of": ["implicit flow", "passwords"]}))
    decision: Use PKCE
    why.risk: 0.2
    instead of: implicit flow, passwords
    >>> rendered({"role": "user", "message": "Hi"})
    'Hi'
    """
    if is_message(data):
        return str(data["message"])
    return "\n".join(_lines("", data)) or codec.encode_json(data).decode()


def _lines(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _lines(f"{path}.{name}" if path else name, one)
    elif isinstance(value, list) and any(isinstance(one, list | Mapping) for one in value):
        for place, one in enumerate(value, 1):
            yield from _lines(f"{path}.{place}", one)
    elif said := ", ".join(map(_word, value)) if isinstance(value, list) else _word(value):
        yield f"{path}: {said}"


def _word(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else codec.encode_json(value).decode()


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value in which every text is changed; names of members stay.

    >>> with_texts({"a": ["x", {"b": "y"}], "c": 1}, str.upper)
    {'a': ['X', {'b': 'Y'}], 'c': 1}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: with_texts(one, change) for name, one in value.items()}
    return [with_texts(one, change) for one in value] if isinstance(value, list) else value
