"""Where settings are read from: files of TOML and JSON, the environment, and the arguments of a program."""

import codecs
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from wellkept.errors import ConfigurationError
from wellkept.settings import trust
from wellkept.settings.declarations import Keys, Problem, built, declared, examined, members, misfit
from wellkept.settings.schema import DatabaseSettings, Settings
from wellkept.settings.stores import Sections, StoreClasses, schema_with
from wellkept.settings.urls import split_url

FILE = "wellkept.toml"
FILE_BYTES = 1024 * 1024
_PARTS = re.compile(r'"(?:\\.|[^"\\])*"|[^.]+')
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class _Source(NamedTuple):
    """The values of one source, each with its origin, and the sections of stores that it names."""

    values: dict[Keys, tuple[Any, str]]
    sections: Sections


def load(
    given: Settings | Mapping[str, Any] | None = None,
    *,
    config: str | Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stores: StoreClasses | None = None,
) -> Settings:
    """Settings as given, else from the environment, else from the file ``config``, else their defaults.

    Instead of ``config``, ``folder`` reads the nearest ``wellkept.toml`` from there upwards, as the command line does.
    Such a file was found and not named: without the user's trust it may only name a database inside its own folder.
    ``stores`` are the classes whose sections there may be; by default those that packages have registered.

    >>> load(environment={"WELLKEPT_LIMITS_SCOPES": "7"}).limits.scopes
    7
    """
    stores = StoreClasses() if stores is None else stores
    variables = _of_environment(os.environ if environment is None else environment, stores)
    program = _of_program(given, stores)
    file = _Source({}, {})
    if config is not None:
        file = _of_file(config, stores)
    elif folder is not None and (found := nearest_file(folder)) is not None:
        file = _of_file(found, stores, overridden={*variables.values, *program.values})
    merged = {**file.values, **variables.values, **program.values}
    settings = _built(merged, {**file.sections, **variables.sections, **program.sections})
    return replace(settings, origins={".".join(keys): origin for keys, (_, origin) in merged.items()})


def _built(merged: Mapping[Keys, tuple[Any, str]], sections: Sections) -> Settings:
    values = {keys: value for keys, (value, _) in merged.items()}
    settings = built(Settings, values)
    given = {keys[1] for keys in values if keys[:1] == ("database",) and len(keys) > 2}  # database.store.key
    if not given:
        return settings
    stores = tuple(built(sections[name], values, ("database", name)) for name in sorted(given))
    return replace(settings, database=replace(settings.database, stores=stores))


def _sections_named(given: object, stores: StoreClasses) -> Sections:
    """The sections of stores that settings name: keys of the database that are not everybody's."""
    database = given.get("database") if isinstance(given, Mapping) else None
    known = members(DatabaseSettings)
    keys = database if isinstance(database, Mapping) else ()
    return stores.sections([key for key in keys if isinstance(key, str) and key not in known])


def check(text: str) -> list[Problem]:
    """All that is wrong with the text of a ``wellkept.toml``; nothing if it is sound.

    >>> [(one.key, one.line, one.hint) for one in check('[identity]\\nusr = "ada"')]
    [('identity.usr', 2, 'did you mean identity.user?')]
    """
    return _examined_toml(text, StoreClasses())[1]


def _examined_toml(text: str, stores: StoreClasses) -> tuple[dict[Keys, Any], list[Problem], Sections]:
    """What a ``wellkept.toml`` says, what is wrong with it, and the sections of stores that it names."""
    sections: Sections = {}
    with suppress(Unreadable):  # told below
        sections = _sections_named(parsed_toml(text), stores)
    return *examined_text(schema_with(sections), text, parsed_toml), sections


def nearest_file(start: Path) -> Path | None:
    """The nearest ``wellkept.toml`` from a folder upwards. One that belongs to another user is ignored."""
    for folder in (start, *start.parents):
        file = folder / FILE
        if file.is_file() and _is_ours(file):
            return file
    return None


def _is_ours(file: Path) -> bool:
    """Whether the user or the administrator owns it: in a shared folder, others must not redirect commands."""
    return not hasattr(os, "getuid") or file.stat().st_uid in (os.getuid(), 0)


# --- the three sources ----------------------------------------------------------------------------


def _of_file(config: object, stores: StoreClasses, overridden: Collection[Keys] | None = None) -> _Source:
    """What a file says. One that was found and not named is checked for what it may say, but for what is overridden."""
    if not isinstance(config, str | Path):
        raise ConfigurationError(
            f"config is a {type(config).__name__}", details={"field": "config"}, hint="pass the path of a file"
        )
    file = Path(config)
    text = read_text(file)
    if text is None:
        raise ConfigurationError(
            f"there is no file {file}", details={"file": str(file)}, hint="check the path, or leave config= out"
        )
    found, problems, sections = _examined_toml(text, stores)
    for problem in problems:
        raise problem.error(str(file), file=str(file))
    if overridden is not None:
        trust.check(file, text, found, overridden, stores)
    url = ("database", "url")
    if url in found:
        found[url] = _from_folder(file.parent, found[url], stores)
    return _Source({keys: (value, str(file)) for keys, value in found.items()}, sections)


def _from_folder(folder: Path, url: str, stores: StoreClasses) -> str:
    """A URL in a file: a path in it is meant from the file's folder."""
    scheme, rest = split_url(url)
    if not scheme:
        return str(folder / Path(rest).expanduser())
    return f"{scheme}:{folder / Path(rest).expanduser()}" if rest and stores.form(scheme).names else url


def _of_environment(environment: Mapping[str, str], stores: StoreClasses) -> _Source:
    """What variables say. An empty one counts as not set, as is usual."""
    found: dict[Keys, tuple[Any, str]] = {}
    sections = stores.sections_of(environment)
    for name, one in declared(schema_with(sections)).items():
        if text := environment.get(one.variable):
            value = one.kind.parse(text)
            if not one.kind.accepts(value):
                raise misfit([name], value, one.kind).error(one.variable, variable=one.variable)
            found[tuple(name.split("."))] = one.kind.value(value), one.variable
    return _Source(found, sections)


def _of_program(given: Settings | Mapping[str, Any] | None, stores: StoreClasses) -> _Source:
    if isinstance(given, Settings):
        sections: Sections = {one.at.removeprefix("database."): type(one) for one in given.database.stores}
        names = {name for name, one in declared(schema_with(sections)).items() if given.get(name) != one.default}
        names |= given.origins.keys()
        values = {tuple(name.split(".")): (given.get(name), given.origins.get(name, "settings=")) for name in names}
        return _Source(values, sections)
    sections = _sections_named(given, stores)
    found, problems = examined(schema_with(sections), {} if given is None else given)
    for problem in problems:
        raise problem.error("settings=", field="settings")
    return _Source({keys: (value, "settings=") for keys, value in found.items()}, sections)


# --- files ----------------------------------------------------------------------------------------


def read_text(file: Path) -> str | None:
    """What a file of settings says; ``None`` if there is none."""
    try:
        content = _content(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # a ValueError is for a path with NUL
        raise _unreadable(file, "cannot be read", "check the path and its permissions") from error
    if content is None:
        raise _unreadable(file, "is not a file", "remove what stands in its place")
    if len(content) > FILE_BYTES:
        raise _unreadable(file, f"has more than {FILE_BYTES} bytes", "this is no file of settings")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _unreadable(file, f"is not UTF-8 in line {line}", "save it as UTF-8", line=line) from None


def _content(file: Path) -> bytes | None:
    """As much of a file as its size is checked by; ``None`` of a folder or a device, which is never opened."""
    if not stat.S_ISREG(file.stat().st_mode):
        return None
    with file.open("rb") as stream:
        return stream.read(FILE_BYTES + 1).removeprefix(codecs.BOM_UTF8)


def _unreadable(file: Path, what: str, hint: str, **details: Any) -> ConfigurationError:
    return ConfigurationError(f"{file} {what}", details={"file": str(file), **details}, hint=hint)


class Unreadable(ValueError):
    """Text that is not TOML or JSON: ``problem`` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def parsed_toml(text: str) -> object:
    """The value of a TOML text."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = _AT_LINE.search(str(error))
        line = int(match[1] or text.rstrip().count("\n") + 1) if match else None
        what = str(error)[: match.start()].lower() if match else "a number or a table that is too large"
        raise _not("TOML", what, line) from None


def parsed_json(text: str) -> object:
    """The value of a JSON text. ``NaN``, ``Infinity`` and keys given twice are mistakes in a file for people."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise _not("JSON", error.msg.lower(), error.lineno) from None
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, _Refused) else "a number or an object that is too large"
        raise _not("JSON", what, None) from None


class _Refused(ValueError):
    """What JSON allows, but not in a file of settings."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Refused(f"the key {twice[:60]!r} is given twice")
    return found


def _refused(word: str) -> NoReturn:
    raise _Refused(f"{word} is no number that can be used")


def _not(form: str, what: str, line: int | None) -> Unreadable:
    hint = f"correct the {form} there, or just before it" if line else f"correct the {form}"
    return Unreadable(Problem(key="", message=f"this is not {form}: {what}", hint=hint, line=line))


def examined_text(
    schema: type[Any], text: str, parse: Callable[[str], object]
) -> tuple[dict[Keys, Any], list[Problem]]:
    """The settings that a text gives, and what is wrong with it, with the lines where a text search finds the keys."""
    try:
        found, problems = examined(schema, parse(text))
    except Unreadable as error:
        return {}, [error.problem]
    return found, [replace(problem, line=line_of(text, problem.key)) for problem in problems]


def line_of(text: str, key: str) -> int | None:
    """The line where a text search finds a dotted key, part by part.

    >>> line_of('[limits]\\nentries = 1\\n[sessions]\\ndecay = 3', "sessions.decay")
    4
    """
    offset = 0
    for part in _PARTS.findall(key):
        name = re.escape(json.loads(part) if part.startswith('"') else part)
        pattern = re.compile(rf"""(?<![\w-])["']?{name}["']?\s*[\]=:.]""")
        matches = (one for one in pattern.finditer(text, offset) if not _is_comment(text, one.start()))
        if (match := next(matches, None)) is None:
            return None
        offset = match.end()
    return text.count("\n", 0, offset) + 1 if key else None


def _is_comment(text: str, offset: int) -> bool:
    return text[text.rfind("\n", 0, offset) + 1 : offset].lstrip().startswith("#")
