"""How settings are declared, and how values that were read are checked against the declaration.

The schema of ``wellkept.toml`` and that of the JSON Lines store's ``config.json`` are both declared this way.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from wellkept.errors import ConfigurationError
from wellkept.settings.kinds import Kind, described

_KEY_CHARACTERS = 60

Keys = tuple[str, ...]
"""The keys that lead to a setting; its dotted name in parts."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with a file of settings: the dotted key, if it is about one, and the line if it was found.

    >>> Problem(key="limts", message="limts is not known", hint="did you mean limits?", line=3).line
    3
    """

    key: str
    message: str
    hint: str
    line: int | None = None

    def error(self, place: str = "", **details: Any) -> ConfigurationError:
        """The problem as an error; ``place`` is the file or the variable that it is in."""
        line = f", line {self.line}" if self.line and place else ""
        known = {**details, "key": self.key, "line": self.line}
        return ConfigurationError(
            f"{place}{line}: {self.message}" if place else self.message,
            details={name: value for name, value in known.items() if value},
            hint=self.hint,
        )


class Setting(NamedTuple):
    """One declared setting. The environment variable ``variable`` gives it a value."""

    kind: Kind
    default: Any
    help: str = ""
    variable: str = ""


class Section:
    """Settings that belong together, checked however the section is made. ``at`` is its dotted name."""

    __slots__ = ()
    at: ClassVar[str] = ""

    def __init_subclass__(cls, *, at: str = "") -> None:
        if at:  # ``slots=True`` makes the class a second time, without the argument
            cls.at = at

    def __post_init__(self) -> None:
        for name, one in members(type(self)).items():
            if isinstance(one, Setting):
                value = getattr(self, name)
                if value is not one.default and not one.kind.holds(value):
                    raise misfit((*filter(None, self.at.split(".")), name), value, one.kind).error()

    def given(self) -> dict[str, str]:
        """The settings that differ from their defaults, as texts that their kinds can parse."""
        found = {}
        for name, one in members(type(self)).items():
            if isinstance(one, Setting) and (value := getattr(self, name)) != one.default:
                found[name] = one.kind.text(value)
        return found


def setting(default: Any, kind: Kind, text: str = "", variable: str = "") -> Any:
    """Declare a setting: a field of a :class:`Section`.

    Without a ``variable`` it is named after the section and the field: ``WELLKEPT_LIMITS_ENTRIES``.
    """
    return field(default=default, metadata={"setting": Setting(kind, default, text, variable)})


def members(schema: type[Any]) -> Mapping[str, Setting | type[Section]]:
    """The settings and the sections of a schema or a section, by name."""
    found: dict[str, Setting | type[Section]] = {}
    for one in fields(schema):
        if "setting" in one.metadata:
            found[one.name] = one.metadata["setting"]
        elif isinstance(one.type, type) and issubclass(one.type, Section):
            found[one.name] = one.type
    return found


def declared(schema: type[Any]) -> dict[str, Setting]:
    """All settings of a schema by their dotted names, in the order of their declaration."""
    found = {}
    for keys, one in _declared(schema, ()):
        variable = one.variable or f"WELLKEPT_{'_'.join(keys).upper()}"
        found[".".join(keys)] = one._replace(variable=variable)
    return found


def _declared(schema: type[Any], at: Keys) -> Iterator[tuple[Keys, Setting]]:
    for name, one in members(schema).items():
        if isinstance(one, Setting):
            yield (*at, name), one
        else:
            yield from _declared(one, (*at, name))


def dotted(keys: Iterable[object]) -> str:
    """Keys as people write them: ``sessions.auto_compact``. Strange and long ones are quoted and cut."""
    quoted = [key if key.isidentifier() else json.dumps(key) for key in map(str, keys)]
    return ".".join(key if len(key) <= _KEY_CHARACTERS else f"{key[:_KEY_CHARACTERS]}..." for key in quoted)


def examined(schema: type[Any], given: object) -> tuple[dict[Keys, Any], list[Problem]]:
    """The settings that a mapping of sections gives, and what is wrong with it."""
    found: dict[Keys, Any] = {}
    problems: list[Problem] = []
    for keys, answer in _examined(schema, given, ()):
        if isinstance(answer, Problem):
            problems.append(answer)
        elif answer is None:
            problems.append(_unknown(schema, keys))
        else:
            found[keys] = answer.value
    return found, problems


class _Fit(NamedTuple):
    value: Any


def _examined(schema: type[Any], given: object, at: Keys) -> Iterator[tuple[Keys, "_Fit | Problem | None"]]:
    """What each key has: a value that fits, a problem, or nothing if the key is not known."""
    known = members(schema)
    if not isinstance(given, Mapping):
        message = f"{dotted(at) or 'the whole'} must be a section, not {described(given)}"
        hint = f"its settings are {', '.join(dotted((*at, name)) for name in known)}"
        yield at, Problem(key=dotted(at), message=message, hint=hint)
        return
    for key, value in given.items():
        one, keys = known.get(key), (*at, key)
        if one is None:
            yield keys, None
        elif not isinstance(one, Setting):
            yield from _examined(one, value, keys)
        elif one.kind.accepts(value):
            yield keys, _Fit(one.kind.value(value))
        else:
            yield keys, misfit(keys, value, one.kind)


def misfit(keys: Iterable[object], value: object, kind: Kind) -> Problem:
    """The problem of a value that its kind does not allow."""
    message = f"{dotted(keys)} must be {kind.allowed}, not {described(value, kind)}"
    return Problem(key=dotted(keys), message=message, hint="correct the value")


def _unknown(schema: type[Any], keys: Keys) -> Problem:
    """The problem of a key that is not known, with the nearest one that is."""
    *sections, key = keys
    siblings = members(_section(schema, sections))
    given = str(key)[:_KEY_CHARACTERS]
    elsewhere = {name.rpartition(".")[2]: name for name in declared(schema)}
    near = [dotted((*sections, one)) for one in difflib.get_close_matches(given, siblings, n=1)]
    alike = [elsewhere[one] for one in difflib.get_close_matches(given, elsewhere, n=1, cutoff=0.75)]
    best = elsewhere.get(given) or next(iter((*near, *alike)), None)
    hint = f"did you mean {best}?" if best else f"known are {', '.join(siblings)}"
    return Problem(key=dotted(keys), message=f"{dotted(keys)} is not known", hint=hint)


def _section(schema: type[Any], keys: Iterable[str]) -> type[Any]:
    for key in keys:
        below = members(schema)[key]
        schema = schema if isinstance(below, Setting) else below
    return schema


def built(schema: type[S], values: Mapping[Keys, Any], at: Keys = ()) -> S:
    """A schema or a section with some values; the others have their defaults."""
    given: dict[str, Any] = {}
    for name, one in members(schema).items():
        keys = (*at, name)
        if not isinstance(one, Setting):
            given[name] = built(one, values, keys)
        elif keys in values:
            given[name] = values[keys]
    return schema(**given)
