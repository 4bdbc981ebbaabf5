"""Lines of JSON that people and other software write, within bounds: how they are parsed, and what their content is."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from wellkept import codec

LINE_BYTES = 64 * 1024 * 1024
DEPTH = 48
"""Deeper than anything that the engine accepts, and far from what exhausts the stack."""

UNREADABLE = (*codec.UNREADABLE, RecursionError, ArithmeticError)
"""What reading a hostile line may raise."""


def numbered(data: bytes) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file with their numbers, without their ends and without empty ones.

    >>> list(numbered(b'{"a":1}\r\n\n{}'))
    [(1, b'{"a":1}'), (3, b'{}')]
    """
    stripped = ((number, line.strip(b" \t\r\n")) for number, line in enumerate(BytesIO(data), 1))
    return (one for one in stripped if one[1])


def parsed(data: bytes, most: int = LINE_BYTES) -> dict[str, Any]:
    """The object of a line; one of ``UNREADABLE`` if there is none, or it is too long or too deep.

    >>> parsed(b'{"id": "1"}')
    {'id': '1'}
    """
    if len(data) > most:
        raise ValueError("too long")
    fields = codec.decode_json(data)
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    if data.count(b"{") + data.count(b"[") > DEPTH and not is_shallow(fields, DEPTH):  # most lines have not as many
        raise ValueError("too deep")
    return fields


def is_shallow(value: object, depth: int) -> bool:
    """Whether a JSON value has at most so many levels."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return depth > 0 and all(is_shallow(one, depth - 1) for one in value if isinstance(one, dict | list))


def is_structured(content: object) -> bool:
    """Whether the content of an entry is an object of its own, and not a message with a role and metadata.

    >>> is_structured({"message": "Hi", "role": "user"}), is_structured({"decision": "Use tabs"}), is_structured("Hi")
    (False, True, False)
    """
    return isinstance(content, dict) and not {"message"} <= content.keys() <= {"role", "message", "metadata"}
