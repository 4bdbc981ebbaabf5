"""Commands of the command line itself, beside the verbs: init, where, trust, completion, version."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import click

from wellkept import __version__
from wellkept.cli import global_options
from wellkept.cli.constants import BUILTINS, COMPLETION_VARIABLE, PROGRAM
from wellkept.cli.execution import as_json
from wellkept.cli.initialization import Created, init
from wellkept.cli.screen import Screen, one_line
from wellkept.errors import ConfigurationError
from wellkept.fields import LINE
from wellkept.operations.verb import result
from wellkept.settings import FILE, load, nearest_file, shown
from wellkept.settings import trust as trusting
from wellkept.settings.sources import read_text
from wellkept.types.bounds import Bounds

_SHELLS = ("bash", "zsh", "fish")
_PATH = Bounds(max_length=4_096)
_BY_NAME = Bounds(max_length=100, each=_PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The versions of what runs here."""

    wellkept: str = result("The version of Wellkept.", bounds=LINE)
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
        found = Release(wellkept=__version__, python=sys.version.split()[0], platform=sys.platform)
        if global_options.given(context).json:
            out.line(as_json("version", found))
        else:
            out.line(f"wellkept {found.wellkept} (Python {found.python} on {found.platform})")

    return click.Command("version", callback=show, params=global_options.options(), help=BUILTINS["version"])


def where(out: Screen) -> click.Command:
    """The command that shows which database and identity would be used here, and why."""

    @click.pass_context
    def show(context: click.Context, /, **_: object) -> None:
        asked = global_options.given(context)
        found = asked.find()
        ids = {name: value for name in found.origins if (value := getattr(found.identity, name, None))}
        place = Place(database=shown(found.database), identity=ids, opening=found.opening, origins=found.origins)
        if asked.json:
            out.line(as_json("where", place))
            return
        for name, value in {"database": place.database, **place.identity, **place.opening}.items():
            out.line(f"{name.ljust(9)} {one_line(value)}  {out.styled('from ' + place.origins[name], 'dim')}")

    return click.Command("where", callback=show, params=global_options.options(), help=BUILTINS["where"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """A file of settings that is trusted now or no more, and all that are trusted."""

    file: str | None = result("The file that was trusted or revoked; null with --list.", bounds=_PATH)
    settings: Mapping[str, str] = result("What the file sets, by name.", {}, bounds=_BY_NAME)
    trusted: Mapping[str, str] = result("All trusted files: current, changed or missing.", {}, bounds=_BY_NAME)


def trust(out: Screen) -> click.Command:
    """The command that trusts a file of settings that was found in a folder."""

    @click.pass_context
    def show(context: click.Context, /, folder: str | None, list: bool, revoke: bool, **_: object) -> None:
        if list and (revoke or folder is not None):
            raise click.UsageError("--list takes no folder, and nothing is revoked by it")
        answer = Trust(file=None) if list else _trust(folder, revoke=revoke)
        known = {file: _standing(Path(file), kept) for file, kept in trusting.trusted().items()}
        answer = replace(answer, trusted=known)
        if global_options.given(context).json:
            out.line(as_json("trust", answer))
        elif list:
            for file, standing in known.items():
                out.line(f"{one_line(file)}  {out.styled(standing, 'dim')}")
        else:
            out.line(f"{'revoked' if revoke else 'trusted'} {one_line(answer.file or '')}")
            for name, value in answer.settings.items():
                out.line(f"  {name} = {one_line(value)}")

    params = [
        click.Argument(["folder"], required=False, metavar="[FOLDER]"),
        click.Option(["--list"], is_flag=True, help="List what is trusted, and whether it has changed since."),
        click.Option(["--revoke"], is_flag=True, help="Trust the file no more."),
    ]
    return click.Command("trust", callback=show, params=[*params, *global_options.options()], help=BUILTINS["trust"])


def _trust(folder: str | None, *, revoke: bool) -> Trust:
    file = nearest_file(Path.cwd()) if folder is None else Path(folder).resolve() / FILE
    text = None if file is None else read_text(file)
    if file is None or (text is None and not revoke):
        raise ConfigurationError(
            f"there is no file {file or FILE}", details={"file": str(file or FILE)}, hint="name the folder it is in"
        )
    if revoke:
        if not trusting.revoke(file):
            raise ConfigurationError(
                f"{file} is not trusted", details={"file": str(file)}, hint="wellkept trust --list shows what is"
            )
        return Trust(file=str(file))
    assert text is not None  # noqa: S101  # said above, for the type checker
    found = load(config=file, environment={})  # a file that is wrong is not trusted
    trusting.trust(file, text)
    return Trust(file=str(file), settings={name: str(found.get(name)) for name in found.origins})


def _standing(file: Path, kept: str) -> str:
    try:
        text = read_text(file)
    except ConfigurationError:
        return "changed"
    return "missing" if text is None else "current" if trusting.digest(text) == kept else "changed"


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


ANSWERS: Mapping[str, type] = MappingProxyType(
    {"init": Created, "where": Place, "trust": Trust, "completion": Script, "version": Release}
)
"""The answers of those that answer in JSON."""

COMMANDS: Mapping[str, Callable[[Screen], click.Command]] = MappingProxyType(
    {"init": init, "where": where, "trust": trust, "completion": completion, "version": version}
)
