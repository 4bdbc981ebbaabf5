"""The command that creates a database: init."""

from dataclasses import dataclass

import click

from wellkept.cli import global_options
from wellkept.cli.constants import BUILTINS
from wellkept.cli.execution import as_json
from wellkept.cli.screen import Screen, one_line
from wellkept.errors import ConfigurationError
from wellkept.operations.verb import result
from wellkept.types.bounds import Bounds

_PATH = Bounds(max_length=4_096)


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
        from wellkept import plugins  # lazy: as above

        asked = global_options.given(context)
        found = asked.find()
        writing = plugins.git_files(found.database) if git else list
        if writing is None:
            raise ConfigurationError(
                "git can merge a folder of plain text only",
                details={"field": "git"},
                hint=f"wellkept --db {plugins.sample('folder')} init --git",
            )
        wellkept.open(found.database, **found.options).close()
        created = Created(database=found.database, files=tuple(writing()))
        if asked.json:
            out.line(as_json("init", created))
            return
        out.line(one_line(created.database))
        for file in created.files:
            out.line(f"  {file}")

    option = click.Option(["--git"], is_flag=True, help="Write .gitattributes and .gitignore.")
    return click.Command("init", callback=show, params=[option, *global_options.options()], help=BUILTINS["init"])
