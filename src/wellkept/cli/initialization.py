"""The command that creates a database: init."""

from dataclasses import dataclass
from pathlib import Path

import click

from wellkept.cli import global_options
from wellkept.cli.constants import BUILTINS
from wellkept.cli.execution import as_json
from wellkept.cli.screen import Screen, one_line
from wellkept.errors import ConfigurationError
from wellkept.operations.verb import result
from wellkept.types.bounds import Bounds

_PATH = Bounds(max_length=4_096)
_FOLDER = "jsonl:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The database, and the files that were written for git."""

    database: str = result("The path or URL of the database.", bounds=_PATH)
    files: tuple[str, ...] = result("The files for git that were written or extended.", (), bounds=_PATH)


def init(out: Screen) -> click.Command:
    """The command that creates a database, and prepares a folder of JSON Lines for git."""

    @click.pass_context
    def show(context: click.Context, /, git: bool, **_: object) -> None:
        import wellkept  # lazy: help needs no database
        from wellkept.stores.jsonl import git_files  # lazy: one store has files that git tracks

        asked = global_options.given(context)
        found = asked.find()
        if git and not found.database.startswith(_FOLDER):
            raise ConfigurationError(
                "git can merge a folder of JSON Lines only",
                details={"field": "git"},
                hint="wellkept --db jsonl:memory init --git",
            )
        wellkept.open(found.database, **found.options).close()
        files = git_files.write(Path(found.database.removeprefix(_FOLDER)).expanduser()) if git else []
        created = Created(database=found.database, files=tuple(files))
        if asked.json:
            out.line(as_json("init", created))
            return
        out.line(one_line(created.database))
        for file in created.files:
            out.line(f"  {file}")

    option = click.Option(["--git"], is_flag=True, help="Write .gitattributes and .gitignore.")
    return click.Command("init", callback=show, params=[option, *global_options.options()], help=BUILTINS["init"])
