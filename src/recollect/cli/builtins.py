"""Commands of the command line itself, which need no database: where, completion, version."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import click

from recollect import __version__
from recollect.cli import global_options
from recollect.cli.constants import BUILTINS, COMPLETION_VARIABLE, PROGRAM
from recollect.cli.execution import as_json
from recollect.cli.screen import Screen, one_line
from recollect.fields import LINE
from recollect.operations.verb import result
from recollect.types.bounds import Bounds

_SHELLS = ("bash", "zsh", "fish")
_PATH = Bounds(max_length=4_096)
_BY_NAME = Bounds(max_length=100, each=_PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The versions of what runs here."""

    recollect: str = result("The version of Recollect.", bounds=LINE)
    python: str = result("The version of Python.", bounds=LINE)
    platform: str = result("The operating system.", bounds=LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The database and the identity that commands would use here, the options to open it, and where each comes from."""

    database: str = result("The path or URL of the database.", bounds=_PATH)
    identity: Mapping[str, str] = result("The ids of the identity.", {}, bounds=_BY_NAME)
    opening: Mapping[str, str] = result("The options that the database is opened with.", {}, bounds=_BY_NAME)
    origins: Mapping[str, str] = result("Where each of these values comes from.", {}, bounds=_BY_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The completion script of a shell."""

    shell: str = result("The shell.", bounds=Bounds(words=_SHELLS))
    script: str = result("The text to store where the shell looks for completions.", bounds=Bounds(max_length=100_000))


def version(out: Screen) -> click.Command:
    """The command that shows the version."""

    @click.pass_context
    def show(context: click.Context, /, **_: object) -> None:
        found = Release(recollect=__version__, python=sys.version.split()[0], platform=sys.platform)
        if global_options.given(context).json:
            out.line(as_json("version", found))
        else:
            out.line(f"recollect {found.recollect} (Python {found.python} on {found.platform})")

    return click.Command("version", callback=show, params=global_options.options(), help=BUILTINS["version"])


def where(out: Screen) -> click.Command:
    """The command that shows which database and identity would be used here, and why."""

    @click.pass_context
    def show(context: click.Context, /, **_: object) -> None:
        asked = global_options.given(context)
        found = asked.find()
        ids = {name: value for name in found.origins if (value := getattr(found.identity, name, None))}
        place = Place(database=found.database, identity=ids, opening=found.opening, origins=found.origins)
        if asked.json:
            out.line(as_json("where", place))
            return
        for name, value in {"database": place.database, **place.identity, **place.opening}.items():
            out.line(f"{name.ljust(9)} {one_line(value)}  {out.styled('from ' + place.origins[name], 'dim')}")

    return click.Command("where", callback=show, params=global_options.options(), help=BUILTINS["where"])


def completion(out: Screen) -> click.Command:
    """The command that prints the completion script of a shell."""

    @click.pass_context
    def show(context: click.Context, /, shell: str, **_: object) -> None:
        from click.shell_completion import get_completion_class  # lazy: one command needs it

        kind = get_completion_class(shell)
        if kind is None:  # unreachable by the choice below; for the type checker
            raise click.UsageError(f"no completion for {shell}")
        script = kind(context.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE).source()
        asked = global_options.given(context)
        out.line(as_json("completion", Script(shell=shell, script=script)) if asked.json else script)

    argument = click.Argument(["shell"], type=click.Choice(_SHELLS))
    return click.Command(
        "completion", callback=show, params=[argument, *global_options.options()], help=BUILTINS["completion"]
    )


ANSWERS: Mapping[str, type] = MappingProxyType({"where": Place, "completion": Script, "version": Release})
"""The answers of those that answer in JSON."""

COMMANDS: Mapping[str, Callable[[Screen], click.Command]] = MappingProxyType(
    {"where": where, "completion": completion, "version": version}
)
