"""Plain mappings to dataclasses and back, strictly: unknown fields and values out of bounds are refused.

The same msgspec types decode a payload and make its JSON schema, so the two cannot differ.
"""

import dataclasses
import functools
import operator
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

import msgspec

from wellkept import codec
from wellkept.types.bounds import UNBOUNDED, Bounds, Property

T = TypeVar("T")


class Mismatch(NamedTuple):
    """Where a payload does not fit a type, and how: the path is dotted, such as ``filter.tags``.

    ``unknown`` is the name of a field that does not exist, ``missing`` that of one that was left out.
    """

    path: str
    unknown: str | None = None
    missing: str | None = None
    too_long: bool = False
    not_a_word: bool = False


class PayloadMismatch(ValueError):
    """Raised by ``decode_strictly``; ``mismatch`` says where and how."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(mismatch.path)
        self.mismatch = mismatch


Describe = Callable[[type, str], Property]
"""From a dataclass and the name of one of its fields to how the field is described."""


@cache
def _model(kind: type, describe: Describe, answers: bool) -> Any:
    """A msgspec type for a dataclass that refuses unknown fields and values out of bounds.

    The fields of an answer are always present, so its model has no defaults.
    """
    hints = typing.get_type_hints(kind)
    made: list[Any] = []
    for one in dataclasses.fields(kind):
        described = describe(kind, one.name)
        bounded = _bounded(hints[one.name], described.bounds, lambda part: _model(part, describe, answers))
        annotation = _annotated(bounded, msgspec.Meta(description=described.description))
        if not answers and one.default is not MISSING:
            made.append((one.name, annotation, one.default))
        elif not answers and one.default_factory is not MISSING:
            made.append((one.name, annotation, msgspec.field(default_factory=one.default_factory)))
        else:
            made.append((one.name, annotation))
    model = msgspec.defstruct(kind.__name__, made, forbid_unknown_fields=True, kw_only=True)
    codec.reader(model)  # by now, and not in two threads at once
    return model


def _annotated(hint: Any, meta: msgspec.Meta | None) -> Any:
    return hint if meta is None else Annotated[hint, meta]


def _bounded(hint: Any, bounds: Bounds, model: Callable[[type], Any]) -> Any:
    """A type with its bounds, as msgspec writes them."""
    each = bounds.each or UNBOUNDED
    length = msgspec.Meta(max_length=bounds.max_length) if bounds.max_length is not None else None
    hint = getattr(hint, "__supertype__", hint)  # a NewType is bounded as what it stands for
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if _is_union(hint):
        parts = tuple(part for part in parts if part is not datetime) if _is_time_or_text(hint) else parts
        return functools.reduce(operator.or_, (_bounded(part, bounds, model) for part in parts))
    if origin is tuple:
        inner = tuple(part if part is ... else _bounded(part, each, model) for part in parts)
        return _annotated(tuple.__class_getitem__(inner), length if ... in parts else None)
    if origin not in (None, Literal):  # a mapping
        return _annotated(dict.__class_getitem__((parts[0], _bounded(parts[1], each, model))), length)
    if dataclasses.is_dataclass(hint):
        return model(hint)  # type: ignore[arg-type]  # a class, not an instance
    if hint is datetime:
        return _annotated(datetime, msgspec.Meta(tz=True))
    if hint in (int, float):
        return _annotated(hint, msgspec.Meta(ge=bounds.minimum, le=bounds.maximum))
    if hint is str and bounds.words:
        return Literal[bounds.words]
    return _annotated(hint, length if hint in (str, bytes) else None)


def _is_union(hint: Any) -> bool:
    return isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union


def _is_time_or_text(hint: Any) -> bool:
    """Whether a field takes a time or another text: JSON has one type for both, so it is read as text first."""
    return _is_union(hint) and {datetime, str} <= set(typing.get_args(hint))


def decode_strictly(payload: Mapping[str, Any], kind: type[T], describe: Describe) -> T:
    """A plain mapping as a dataclass; unknown fields, wrong types and values out of bounds are refused.

    >>> from wellkept.types import Source
    >>> decode_strictly({"type": "manual"}, Source, lambda kind, name: Property(description=name)).type.value
    'manual'
    """
    hints = typing.get_type_hints(kind)
    texts = {
        name: value.isoformat()
        for name, value in payload.items()
        if isinstance(value, datetime) and _is_time_or_text(hints.get(name))
    }
    try:
        found = msgspec.convert({**payload, **texts}, _model(cast("Any", kind), describe, answers=False))
    except msgspec.ValidationError as error:
        raise PayloadMismatch(_mismatch(str(error))) from None
    return _rebuilt(kind, found)


_MISMATCH = re.compile(r"(?P<problem>.*?)(?: - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_NAMED_FIELD = re.compile(r"Object (?P<how>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL)


def _mismatch(message: str) -> Mismatch:
    found = _MISMATCH.fullmatch(message)
    problem, path = (found["problem"], found["path"] or "") if found else (message, "")
    path = re.sub(r"\[[^]]*\]", "", path)
    if named := _NAMED_FIELD.fullmatch(problem):
        name = named["name"]
        return Mismatch(path, unknown=name) if "unknown" in named["how"] else Mismatch(path, missing=name)
    return Mismatch(path, too_long=" of length <= " in problem, not_a_word=problem.startswith("Invalid enum value"))


def _rebuilt(kind: type[T], found: Any) -> T:
    """The dataclass from the msgspec type that was made for it."""
    values = {}
    for name, hint in typing.get_type_hints(kind).items():
        value = getattr(found, name)
        if isinstance(value, msgspec.Struct):
            nested = next(one for one in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(one))
            value = _rebuilt(nested, value)  # type: ignore[arg-type]  # as above
        elif isinstance(value, str) and _is_time_or_text(hint):
            value = _time_or_text(value)
        values[name] = value
    return kind(**values)


def _time_or_text(value: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return value if moment.tzinfo is None else moment


def to_jsonable(value: object) -> Any:
    """A value as plain data of JSON: objects, lists, texts, numbers.

    >>> from datetime import UTC
    >>> to_jsonable(datetime(2030, 1, 7, tzinfo=UTC))
    '2030-01-07T00:00:00Z'
    """
    return msgspec.json.decode(msgspec.json.encode(value))


def described_schema(kind: type, describe: Describe, *, answers: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON schema of a dataclass with descriptions and bounds, and the schemas that it refers to by name."""
    [schema], parts = msgspec.json.schema_components([_model(kind, describe, answers)], ref_template="#/$defs/{name}")
    return schema, parts


def fits(answer: object, kind: type, describe: Describe) -> bool:
    """Whether plain data is what the schema of an answer says.

    >>> from wellkept.types import Source
    >>> fits({"type": "x"}, Source, lambda kind, name: Property(description=name))
    False
    """
    try:
        msgspec.convert(answer, _model(kind, describe, answers=True))
    except msgspec.ValidationError:
        return False
    return True
