"""Options that every command has: which database, as whom, and in which form to answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recollect.cli.constants import DATABASE, DATABASE_VARIABLE, IDS, variable_of

if TYPE_CHECKING:
    from recollect.cli.discovery import Found

_NAMES = (DATABASE, *IDS, "json")


def options() -> list[click.Parameter]:
    """Fresh options; they stand before the command as well as behind it."""
    database = click.Option(
        ["--db", DATABASE],
        metavar="PATH",
        help=f"the database: a file or a URL; otherwise {DATABASE_VARIABLE}, recollect.toml, or your own",
    )
    ids = [click.Option([f"--{name}"], metavar="ID", help=f"the {name}; otherwise {variable_of(name)}") for name in IDS]
    form = click.Option(["--json"], is_flag=True, default=None, help="answer as JSON, for programs")
    return [database, *ids, form]


def is_shared(name: str | None) -> bool:
    """Whether a parameter is one of these."""
    return name in _NAMES


class Asking(NamedTuple):
    """What was said with the shared options."""

    flags: Mapping[str, str | None]
    json: bool

    def find(self) -> "Found":
        """The database and the identity."""
        from recollect.cli.discovery import find  # lazy: help needs neither

        return find(self.flags)


def asking(context: click.Context) -> Asking:
    """What was said, before the command and behind it; behind it counts more."""
    merged: dict[str, Any] = {}
    outer: click.Context | None = context
    while outer is not None:
        for name in _NAMES:
            if merged.get(name) is None:
                merged[name] = outer.params.get(name)
        outer = outer.parent
    return Asking({name: merged[name] for name in (DATABASE, *IDS)}, bool(merged["json"]))
