"""Options that every command has: the database, the identity, and the form of the answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wellkept.cli.completers import Names, completer_of
from wellkept.cli.constants import DATABASE, DATABASE_VARIABLE, IDS, variable_of

if TYPE_CHECKING:
    from wellkept.cli.discovery import Found

_NAMES = (DATABASE, *IDS, "json")


def options() -> list[click.Parameter]:
    """New option objects; they are accepted before and after the command."""
    database = click.Option(
        ["--db", DATABASE],
        metavar="PATH",
        help=f"The database, a file or a URL; by default {DATABASE_VARIABLE}, wellkept.toml, or a file of the user.",
    )
    ids = [
        click.Option(
            [f"--{name}"],
            metavar="ID",
            help=f"The {name}; by default {variable_of(name)}.",
            shell_complete=completer_of(Names.SESSIONS) if name == "session" else None,
        )
        for name in IDS
    ]
    form = click.Option(["--json"], is_flag=True, default=None, help="Answer as JSON, for programs.")
    return [database, *ids, form]


def is_shared(name: str | None) -> bool:
    """Whether a parameter is a global option."""
    return name in _NAMES


class GlobalOptions(NamedTuple):
    """The values of the global options."""

    flags: Mapping[str, str | None]
    json: bool

    def find(self) -> "Found":
        """The database and the identity that they lead to."""
        from wellkept.cli.discovery import find  # lazy: help needs neither

        return find(self.flags)


def given(context: click.Context) -> GlobalOptions:
    """The values given before and after the command; those after it take precedence."""
    merged: dict[str, Any] = {}
    outer: click.Context | None = context
    while outer is not None:
        for name in _NAMES:
            if merged.get(name) is None:
                merged[name] = outer.params.get(name)
        outer = outer.parent
    return GlobalOptions({name: merged[name] for name in (DATABASE, *IDS)}, bool(merged["json"]))
