"""JSON that remembers where each key and value stood, so that a mistake can be pointed at.

What it accepts is what ``json.loads`` accepts, but for three things that are mistakes in a file that people write: a
key given twice, ``NaN`` and ``Infinity``, and nesting without end.
"""

import re
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder
from typing import Any, NoReturn

DEPTH = 32
_BLANK = re.compile(r"[ \t\n\r]*")
_MISTAKES = {"Expecting value": "a value is missing", "Unterminated string starting at": "this text has no end"}

Path = tuple[str | int, ...]


class Misread(ValueError):
    """Text that is not JSON: what is wrong, and at which character."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


@dataclass(slots=True)
class Places:
    """The offsets of keys and of values by their paths."""

    keys: dict[Path, int] = field(default_factory=dict)
    values: dict[Path, int] = field(default_factory=dict)


def read(text: str) -> tuple[Any, Places]:
    """The value of a JSON text, and the places of its parts.

    >>> value, places = read('{"a": [1, 2]}')
    >>> value, places.keys[("a",)], places.values[("a", 1)]
    ({'a': [1, 2]}, 1, 10)
    """
    places = Places()
    value, end = _value(text, _skip(text, 0), (), places)
    end = _skip(text, end)
    if end != len(text):
        raise Misread("there is more after the end", end)
    return value, places


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Where a character stands, both counted from 1.

    >>> line_and_column("{\\n  7", 4)
    (2, 3)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _skip(text: str, offset: int) -> int:
    blank = _BLANK.match(text, offset)
    return offset if blank is None else blank.end()


def _value(text: str, offset: int, path: Path, places: Places) -> tuple[Any, int]:
    """The value that begins at an offset, and where it ends."""
    if len(path) > DEPTH:
        raise Misread(f"nested deeper than {DEPTH}", offset)
    places.values[path] = offset
    match text[offset : offset + 1]:
        case "{":
            return _object(text, offset, path, places)
        case "[":
            return _array(text, offset, path, places)
    return _scalar(text, offset)


def _object(text: str, start: int, path: Path, places: Places) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    offset = _skip(text, start + 1)
    if text.startswith("}", offset):
        return found, offset + 1
    while True:
        if not text.startswith('"', offset):
            raise Misread("a key in double quotes is missing", offset)
        at = offset
        key, offset = _scalar(text, at)
        if key in found:
            raise Misread("this key was given before", at)
        places.keys[(*path, key)] = at
        offset = _skip(text, offset)
        if not text.startswith(":", offset):
            raise Misread("a colon is missing", offset)
        found[key], offset = _value(text, _skip(text, offset + 1), (*path, key), places)
        offset, more = _next(text, offset, "}")
        if not more:
            return found, offset


def _array(text: str, start: int, path: Path, places: Places) -> tuple[list[Any], int]:
    found: list[Any] = []
    offset = _skip(text, start + 1)
    if text.startswith("]", offset):
        return found, offset + 1
    while True:
        value, offset = _value(text, offset, (*path, len(found)), places)
        found.append(value)
        offset, more = _next(text, offset, "]")
        if not more:
            return found, offset


def _next(text: str, offset: int, closing: str) -> tuple[int, bool]:
    """Past the comma, and true; or past the closing bracket, and false."""
    offset = _skip(text, offset)
    if text.startswith(closing, offset):
        return offset + 1, False
    if not text.startswith(",", offset):
        raise Misread(f"a comma or {closing!r} is missing", offset)
    return _skip(text, offset + 1), True


def _scalar(text: str, offset: int) -> tuple[Any, int]:
    """A text, a number, true, false or null: the standard decoder knows where those end."""
    try:
        value, end = JSONDecoder(parse_constant=_refuse).raw_decode(text, offset)
    except JSONDecodeError as error:
        raise Misread(_MISTAKES.get(error.msg, error.msg.lower()), error.pos) from None
    except ValueError:  # NaN and Infinity, or more digits than Python reads
        raise Misread("this is no number that can be used", offset) from None
    return value, end


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
