"""Commands that are the terminal's own: they ask nothing of a database."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import click

from recollect import __version__
from recollect.cli import global_options
from recollect.cli.constants import COMPLETION_VARIABLE, OWN, PROGRAM
from recollect.cli.execution import as_json
from recollect.cli.screen import Screen, one_line

_SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What runs here."""

    recollect: str
    python: str
    platform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The database and the identity that commands would use here, what it is opened with, and who said so."""

    database: str
    identity: Mapping[str, str] = field(default_factory=dict)
    opening: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)


def version(out: Screen) -> click.Command:
    """Which release this is."""

    @click.pass_context
    def show(context: click.Context, /, **_: object) -> None:
        found = Release(recollect=__version__, python=sys.version.split()[0], platform=sys.platform)
        if global_options.asking(context).json:
            out.line(as_json("version", found))
        else:
            out.line(f"recollect {found.recollect} (Python {found.python} on {found.platform})")

    return click.Command("version", callback=show, params=global_options.options(), help=OWN["version"])


def where(out: Screen) -> click.Command:
    """Which database and identity would be used here, and why."""

    @click.pass_context
    def show(context: click.Context, /, **_: object) -> None:
        asked = global_options.asking(context)
        found = asked.find()
        ids = {name: value for name in found.origins if (value := getattr(found.identity, name, None))}
        place = Place(database=found.database, identity=ids, opening=found.opening, origins=found.origins)
        if asked.json:
            out.line(as_json("where", place))
            return
        for name, value in {"database": place.database, **place.identity, **place.opening}.items():
            out.line(f"{name.ljust(9)} {one_line(value)}  {out.styled('from ' + place.origins[name], 'dim')}")

    return click.Command("where", callback=show, params=global_options.options(), help=OWN["where"])


def completion(out: Screen) -> click.Command:
    """The script that lets a shell complete commands and options."""

    @click.pass_context
    def show(context: click.Context, /, shell: str, **_: object) -> None:
        from click.shell_completion import get_completion_class  # lazy: one command needs it

        kind = get_completion_class(shell)
        if kind is None:  # unreachable by the choice above, and for the type checker
            raise click.UsageError(f"no completion for {shell}")
        out.line(kind(context.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE).source())

    argument = click.Argument(["shell"], type=click.Choice(_SHELLS))
    return click.Command(
        "completion", callback=show, params=[argument, *global_options.options()], help=OWN["completion"]
    )


ANSWERS: Mapping[str, type] = MappingProxyType({"where": Place, "version": Release})
"""What those of them that answer in JSON answer."""

COMMANDS: Mapping[str, Callable[[Screen], click.Command]] = MappingProxyType(
    {"where": where, "completion": completion, "version": version}
)
