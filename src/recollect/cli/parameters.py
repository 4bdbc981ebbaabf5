"""From the fields of a verb's input to options and arguments, and from what was typed to the input."""

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, BinaryIO, NamedTuple

import click

from recollect.cli.converters import to_moment, to_pair, to_value
from recollect.errors import InvalidInput
from recollect.operations import Asked, Takes, Verb, asked

STDIN = "-"
_PLAIN = types.MappingProxyType({str: "TEXT", int: "NUMBER", float: "NUMBER"})


class Kind(NamedTuple):
    """The type of a field, taken apart."""

    base: Any
    optional: bool = False
    many: bool = False
    mapping: bool = False
    sequences: bool = False


def kind_of(annotation: Any) -> Kind:
    """What a field holds.

    >>> kind_of(tuple[str, ...] | None)
    Kind(base=<class 'str'>, optional=True, many=True, mapping=False, sequences=False)
    """
    members = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    inner = [one for one in members if one is not type(None)]
    optional = len(inner) < len(members)
    if set(inner) == {datetime, int}:
        return Kind(datetime, optional, sequences=True)
    [base] = inner
    if typing.get_origin(base) is tuple:
        return Kind(typing.get_args(base)[0], optional, many=True)
    return Kind(Mapping, optional, mapping=True) if typing.get_origin(base) is not None else Kind(base, optional)


def params_of(verb: Verb[Any, Any]) -> list[click.Parameter]:
    """The arguments and options of a verb."""
    return [_param(one, asked(one)) for one in verb.fields]


def _param(one: "dataclasses.Field[Any]", how: Asked) -> click.Parameter:
    kind = kind_of(one.type)
    if how.takes is not Takes.OPTION:
        return click.Argument(
            [one.name],
            nargs=1 if how.takes is Takes.ONE else -1,
            required=one.default is dataclasses.MISSING,
            metavar=_metavar(one.name, how) if one.default is dataclasses.MISSING else f"[{_metavar(one.name, how)}]",
        )
    name = f"--{how.flag or one.name.replace('_', '-')}"
    names = [*([f"-{how.short}"] if how.short else []), name, one.name]
    if kind.base is bool:
        flags = f"{name}/--no-{name[2:]}" if kind.optional else name
        return click.Option([*names[:-2], flags, one.name], is_flag=True, default=one.default, help=how.help)
    default = one.default.value if isinstance(one.default, Enum) else one.default
    has_default = default not in (dataclasses.MISSING, None, ())
    type_, metavar = _type(kind, how)
    return click.Option(
        names,
        type=type_,
        metavar=metavar,
        multiple=kind.many or kind.mapping,
        default=default if has_default else None,
        show_default=has_default,
        help=how.help,
    )


def _type(kind: Kind, how: Asked) -> tuple[Any, str | None]:
    """What reads the text, and what stands for it in the help."""
    if kind.mapping:
        return to_pair, "NAME=VALUE"
    if kind.base is datetime:
        return to_moment(ahead=how.ahead, sequences=kind.sequences), "TIME"
    if isinstance(kind.base, type) and issubclass(kind.base, Enum):
        return click.Choice([member.value for member in kind.base], case_sensitive=False), None
    if kind.base in _PLAIN:
        return kind.base, _PLAIN[kind.base]
    return to_value(kind.base), "JSON"


def _metavar(name: str, how: Asked) -> str:
    if how.takes is Takes.ONE:
        return name.upper()
    return f"{name.upper()}..." if how.takes is Takes.WORDS else f"{name.removesuffix('s').upper()}..."


def filled(verb: Verb[Any, Any], values: Mapping[str, Any], *, whole: bool = False) -> Any:
    """The input of a verb from what was typed; a single ``-`` stands for what comes in by the pipe."""
    given: dict[str, Any] = {}
    for one in verb.fields:
        value, kind, how = values.get(one.name), kind_of(one.type), asked(one)
        if how.takes in (Takes.WORDS, Takes.EACH):
            given[one.name] = _placed(value or (), how, many=kind.many, whole=whole)
        elif kind.mapping:
            given[one.name] = dict(value or ())
        elif kind.many:
            given[one.name] = tuple(_member(kind, each) for each in value) if value else one.default
        elif value is not None:
            given[one.name] = _member(kind, value)
    return verb.input(**given)


def _member(kind: Kind, value: Any) -> Any:
    return kind.base(value) if isinstance(kind.base, type) and issubclass(kind.base, Enum) else value


def _placed(typed: tuple[str, ...], how: Asked, *, many: bool, whole: bool) -> str | tuple[str, ...]:
    if typed == (STDIN,):
        text = read_text(sys.stdin.buffer)
        parts = (text,) if whole or not many else lines_of(text)
    elif how.takes is Takes.WORDS:
        parts = (" ".join(typed),)
    else:
        parts = typed
    return parts if many else parts[0]


def read_text(stream: BinaryIO) -> str:
    """Everything that comes in, as UTF-8; a byte that is not, is named by its place."""
    content = stream.read()
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"the input is not UTF-8: byte {error.start} (line {line}) is 0x{content[error.start]:02x}",
            details={"field": "stdin", "byte": error.start, "line": line},
            hint="nothing was stored; convert it first, for instance with iconv -f latin1 -t utf-8",
        ) from None


def lines_of(text: str) -> tuple[str, ...]:
    """The lines that say something.

    >>> lines_of("Likes tea\\r\\n\\n  Lives in Rome \\n")
    ('Likes tea', 'Lives in Rome')
    """
    found = tuple(stripped for line in text.split("\n") if (stripped := line.strip()))
    if not found:
        raise InvalidInput(
            "the input is empty", details={"field": "stdin"}, hint="nothing was stored; check what is in the pipe"
        )
    return found
