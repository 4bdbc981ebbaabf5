"""From the fields of a verb's input to options and arguments, and from what was typed to a payload."""

import dataclasses
import os
import re
import stat
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from wellkept.cli.completers import Completer, Names, completer_of
from wellkept.cli.constants import IDS
from wellkept.cli.converters import to_json, to_moment, to_object, to_pair, to_pointer, to_word
from wellkept.cli.screen import one_line
from wellkept.errors import InvalidInput
from wellkept.operations import Parameter, Progress, Takes, Verb, parameter_of
from wellkept.operations.properties import PROPERTIES
from wellkept.types import KnowledgePointer

STDIO = "-"
_CHUNK = 65_536
_MEMORIES = ("id", "ids", "references", "supersedes")
_TAGS = ("tags", "any_tags", "no_tags", "add_tags", "remove_tags", "topic")
_METAVARS = types.MappingProxyType({str: "TEXT", int: "NUMBER", float: "NUMBER"})


class Kind(NamedTuple):
    """The type of a field, taken apart."""

    base: Any
    optional: bool = False
    many: bool = False
    mapping: bool = False
    position: type | None = None
    words: tuple[str, ...] = ()
    objects: bool = False


def kind_of(annotation: Any) -> Kind:
    """What a field holds.

    >>> kind_of(tuple[str, ...] | None)
    Kind(base=<class 'str'>, optional=True, many=True, mapping=False, position=None, words=(), objects=False)
    """
    union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    members = typing.get_args(annotation) if union else (annotation,)
    inner = [one for one in members if one is not type(None)]
    optional = len(inner) < len(members)
    if len(inner) == 2 and datetime in inner:  # a time, or a position in the journal
        [position] = set(inner) - {datetime}
        return Kind(datetime, optional, position=position)
    if len(inner) == 2 and str in inner:  # a text, or a JSON object
        return Kind(str, optional, objects=True)
    [base] = inner
    if typing.get_origin(base) is tuple:
        return kind_of(typing.get_args(base)[0])._replace(optional=optional, many=True)
    if typing.get_origin(base) is typing.Literal:
        return Kind(str, optional, words=typing.get_args(base))
    return Kind(Mapping, optional, mapping=True) if typing.get_origin(base) is not None else Kind(base, optional)


class Slot(NamedTuple):
    """A field that the command line can fill: of the input itself, or of a group in it."""

    group: str
    name: str
    kind: Kind
    default: Any
    parameter: Parameter

    @property
    def key(self) -> str:
        """The name of the parameter in click; an id of the caller has its own."""
        return f"{self.group}__{self.name}" if self.group or self.name in IDS else self.name

    @property
    def flag(self) -> str:
        """The name of the option."""
        return f"--{self.parameter.flag or self.name.replace('_', '-')}"


def slots_of(verb: Verb[Any, Any]) -> Iterator[Slot]:
    """The fields of a verb's input, with the fields of its groups in their place."""
    for one in verb.fields:
        parameter, kind = parameter_of(one), kind_of(one.type)
        if parameter.takes is not Takes.GROUP:
            yield Slot("", one.name, kind, one.default, parameter)
            continue
        for inner in dataclasses.fields(kind.base):
            if kind.base in PROPERTIES:  # a public value: its options carry the name of the group
                described = PROPERTIES[kind.base][inner.name]
                flag = f"{one.name}-{inner.name}".replace("_", "-")
                parameter = Parameter(description=described.description, flag=flag)
            else:
                parameter = parameter_of(inner)
            yield Slot(one.name, inner.name, kind_of(inner.type), inner.default, parameter)


def names_of(verb: Verb[Any, Any], slot: Slot) -> Names | None:
    """What a field names, if the database contains it."""
    if slot.name == "id" and (verb.name == "compact" or verb.name.startswith("sessions.")):
        return Names.SESSIONS
    if slot.name in _MEMORIES:
        return Names.MEMORIES
    return Names.TAGS if slot.name in _TAGS else None


def params_of(verb: Verb[Any, Any]) -> list[click.Parameter]:
    """The arguments and options of a verb, with what shells complete."""
    restores = verb.name.endswith("restore")
    return [_param(slot, completer_of(names_of(verb, slot), restored=restores)) for slot in slots_of(verb)]


def _param(slot: Slot, completer: Completer | None) -> click.Parameter:
    how, kind = slot.parameter, slot.kind
    required = slot.default is dataclasses.MISSING
    if how.takes is not Takes.OPTION:
        return click.Argument(
            [slot.key],
            nargs=1 if how.takes in (Takes.ONE, Takes.FILE) else -1,
            required=required,
            metavar=_metavar(slot) if required else f"[{_metavar(slot)}]",
            shell_complete=completer,
        )
    names = [*([f"-{how.short}"] if how.short else []), slot.flag, slot.key]
    if kind.base is bool:
        flags = f"{slot.flag}/--no-{slot.flag[2:]}" if kind.optional else slot.flag
        return click.Option([*names[:-2], flags, slot.key], is_flag=True, default=slot.default, help=how.description)
    default = slot.default.value if isinstance(slot.default, Enum) else slot.default
    has_default = default not in (dataclasses.MISSING, None, ())
    type_, metavar = _type(kind, how)
    return click.Option(
        names,
        type=type_,
        metavar=metavar,
        multiple=kind.many or kind.mapping,
        default=default if has_default else None,
        show_default=has_default,
        help=how.description,
        shell_complete=completer,
    )


def _type(kind: Kind, how: Parameter) -> tuple[Any, str | None]:
    """What reads the text, and what stands for it in the help."""
    words = kind.words or how.bounds.words or (how.bounds.each.words if how.bounds.each else ())
    if words:
        return to_word, "WORD" if len(words) > 4 else f"[{'|'.join(words)}]"
    if kind.mapping:
        return to_pair, "NAME=VALUE"
    if kind.base is datetime:
        return to_moment(ahead=how.ahead, position=kind.position), "TIME"
    if isinstance(kind.base, type) and issubclass(kind.base, Enum):
        return click.Choice([member.value for member in kind.base], case_sensitive=False), None
    if kind.base in _METAVARS:
        return kind.base, _METAVARS[kind.base]
    return (to_pointer, "FILE|JSON") if kind.base is KnowledgePointer else (to_json, "JSON")


def _metavar(slot: Slot) -> str:
    name = slot.name.upper()
    if slot.parameter.takes is Takes.FILE:
        return "FILE"
    if slot.parameter.takes is Takes.ONE:
        return name
    return f"{name}..." if slot.parameter.takes is Takes.WORDS else f"{name.removesuffix('S')}..."


def payload_of(
    verb: Verb[Any, Any],
    values: Mapping[str, Any],
    *,
    whole: bool = False,
    structured: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The payload of a call from what was typed; a single ``-`` stands for the standard input.

    With ``structured``, what may be a text or a JSON object is read as JSON.
    """
    payload: dict[str, Any] = {}
    for slot in slots_of(verb):
        value = values.get(slot.key)
        if slot.parameter.takes in (Takes.WORDS, Takes.EACH):
            value = _placed(value or (), slot, whole=whole, progress=progress)
        elif slot.parameter.takes is Takes.FILE and value is not None:
            value = _text_of(value, slot.parameter.bounds.max_length, progress)
        elif slot.kind.mapping:
            value = dict(value or ())
        elif slot.kind.many:
            value = list(value or ())
        if value in (None, [], {}):
            continue
        if structured and slot.kind.objects:
            value = [to_object(one) for one in value] if isinstance(value, list) else to_object(value)
        target = payload.setdefault(slot.group, {}) if slot.group else payload
        target[slot.name] = value
    return payload


def _placed(typed: tuple[str, ...], slot: Slot, *, whole: bool, progress: Progress | None) -> str | list[str]:
    if typed == (STDIO,):
        text = read_text(sys.stdin.buffer, progress)
        parts = [text] if whole or not slot.kind.many else list(lines_of(text))
    elif slot.parameter.takes is Takes.WORDS and not (slot.kind.many and _quoted(typed)):
        parts = [" ".join(typed)]
    else:
        parts = list(typed)
    return parts if slot.kind.many else parts[0]


def _text_of(path: str, most: int | None, progress: Progress | None) -> str:
    """The text of a file, or of the standard input for ``-``, if it is not longer than it may be."""
    if path == STDIO:
        return read_text(sys.stdin.buffer, progress)
    try:
        file = Path(path)
        if most is not None and file.stat().st_size > most:
            raise InvalidInput(f"the file is larger than {most} bytes", details={"field": "file"}, hint="split it")
        with file.open("rb") as stream:
            return read_text(stream, progress)
    except OSError as error:
        raise click.UsageError(f"{one_line(path)} cannot be read: {error.strerror}") from None


def _quoted(typed: tuple[str, ...]) -> bool:
    """Whether arguments are texts of their own. The shell removes quotes, but only quoted arguments contain spaces.

    >>> _quoted(("Likes tea", "Lives in Rome")), _quoted(("Likes", "tea"))
    (True, False)
    """
    return any(len(text.split()) > 1 for text in typed)


def in_flags(text: str, verb: Verb[Any, Any], *, anywhere: bool = False) -> str:
    """A message that begins with the name of a field, with the name of its option instead.

    With ``anywhere``, as for hints, every name that is no plain word is replaced.

    >>> from wellkept.operations import VERBS
    >>> in_flags("filter.any_tags must be a list", VERBS["search"])
    '--any-tag must be a list'
    """
    for slot in slots_of(verb):
        if slot.parameter.takes is Takes.OPTION and (not anywhere or slot.group or "_" in slot.name):
            name = re.escape(f"{slot.group}.{slot.name}" if slot.group else slot.name)
            before = r"(?<![\w./-])" if anywhere else "^"
            text = re.sub(rf"{before}{name}(?![\w.])", slot.flag, text)
    return text


def read_text(stream: BinaryIO, progress: Progress | None = None) -> str:
    """The whole stream as UTF-8; an error names the first byte that is not."""
    content = stream.read() if progress is None else _read_watched(stream, progress)
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"the input is not UTF-8: byte {error.start} (line {line}) is 0x{content[error.start]:02x}",
            details={"field": "stdin", "byte": error.start, "line": line},
            hint="nothing was stored; convert it first, for instance with iconv -f latin1 -t utf-8",
        ) from None


def _read_watched(stream: BinaryIO, progress: Progress) -> bytes:
    """The whole stream. Of a file it is told how many bytes of how many were read, else how many lines there are."""
    size = _size_of(stream)
    content, lines = bytearray(), 0
    while chunk := getattr(stream, "read1", stream.read)(_CHUNK):
        content += chunk
        lines += chunk.count(b"\n")
        if len(content) > _CHUNK:  # less is read at once
            progress(*((min(len(content), size), size) if size else (0, lines)))
    return bytes(content)


def _size_of(stream: BinaryIO) -> int:
    """The size of a file; 0 of a pipe and of what is no file of the system."""
    try:
        look = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return 0
    return look.st_size if stat.S_ISREG(look.st_mode) else 0


def lines_of(text: str) -> tuple[str, ...]:
    """The lines that are not blank, without surrounding spaces.

    >>> lines_of("Likes tea\\r\\n\\n  Lives in Rome \\n")
    ('Likes tea', 'Lives in Rome')
    """
    found = tuple(stripped for line in text.split("\n") if (stripped := line.strip()))
    if not found:
        raise InvalidInput(
            "the input is empty", details={"field": "stdin"}, hint="nothing was stored; check what is in the pipe"
        )
    return found
