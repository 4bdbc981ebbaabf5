"""The command and its subcommands, built from the table of verbs, and their exit codes."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from wellkept import codec, open_files
from wellkept.cli import global_options, parameters
from wellkept.cli.constants import BUILTINS, COMPLETION_VARIABLE, PROGRAM
from wellkept.cli.screen import Screen, escaped, one_line, standard_screens
from wellkept.cli.wording import in_commands
from wellkept.errors import InvalidInput, WellkeptError
from wellkept.operations import LISTED, VERBS, Report, Verb, family, report
from wellkept.operations.failures import ANSWERED_NO, INTERRUPTED, PIPE_CLOSED, USAGE
from wellkept.types import Page

_ABOUT = """The memory of your agents: one file, no server, no LLM.

Most commands take words as they come: wellkept add Prefers dark mode
"""
_TOP = {name: listed for name, listed in LISTED.items() if "." not in name}
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "EMBEDDER_MISMATCH": "wellkept reembed --embedder static changes to the built-in embedder",
        "STORE_CORRUPT": "run wellkept doctor; it says what is damaged, and --repair repairs what can be repaired",
    }
)
"""Hints for the command line that replace hints for callers of the library."""


class VerbCommand(click.Command):
    """A verb as a command; its help ends with the global options and examples."""

    def __init__(self, verb: Verb[Any, Any], out: Screen, notes: Screen, **more: Any) -> None:
        self.verb = verb
        super().__init__(
            verb.name.rpartition(".")[2],
            callback=self._call,
            params=[*parameters.params_of(verb), *_terminal_options(verb), *global_options.options()],
            help="\n\n".join(filter(None, (LISTED[verb.name].summary, verb.description))),
            **more,
        )
        self._out, self._notes = out, notes

    def _call(self, **values: Any) -> int:
        from wellkept.cli.execution import run_verb  # lazy: help needs none of it

        context = click.get_current_context()
        if context.invoked_subcommand:
            return 0  # the subcommand runs next
        agrees = run_verb(self.verb, global_options.given(context), values, self._out, self._notes)
        return 0 if agrees else ANSWERED_NO

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The arguments, the options of the verb, then the global options."""
        described = {slot.key: slot.parameter.description for slot in parameters.slots_of(self.verb)}
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Global options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument):
                records["Arguments"].append((param.metavar or "", described[param.name or ""]))
            elif record := param.get_help_record(ctx):
                heading = "Global options" if global_options.is_shared(param.name) else "Options"
                records[heading].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        with formatter.section("Examples"):
            for example in self.verb.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example.line}\n")
                formatter.write(f"{'':>{formatter.current_indent}}    {example.says}\n")


class VerbGroup(VerbCommand, click.Group):
    """A verb with subcommands; without one, it runs itself."""

    def __init__(self, verb: Verb[Any, Any], out: Screen, notes: Screen) -> None:
        super().__init__(verb, out, notes, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the table."""
        return list(family(self.verb.name))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        name = f"{self.verb.name}.{cmd_name}"
        return command_of(name, self._out, self._notes) if name in LISTED else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command, list[str]]:
        """Find a subcommand."""
        found = _resolved(self, ctx, args)
        root = ctx.find_root().command
        if isinstance(root, Commands):
            root.named = f"{self.verb.name}.{args[0]}"
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The subcommands, then the options."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.summary) for name, listed in family(self.verb.name).items()])
        super().format_options(ctx, formatter)


def command_of(name: str, out: Screen, notes: Screen) -> VerbCommand:
    """The command of a verb."""
    return (VerbGroup if family(name) else VerbCommand)(VERBS[name], out, notes)


_ELSEWHERE = {"get": "show", "ls": "list", "rm": "forget", "delete": "forget", "remove": "forget", "query": "search"}
"""What commands are called in other tools. The nearest name can be a wrong one: for "get" it is "forget"."""


def _resolved(group: click.Group, ctx: click.Context, args: list[str]) -> tuple[str, click.Command, list[str]]:
    """Find a command; the error for an unknown name suggests the nearest one."""
    command = group.get_command(ctx, args[0])
    if command is None:
        from difflib import get_close_matches  # lazy: only for mistakes

        names = group.list_commands(ctx)
        near = [name for name in names if name == _ELSEWHERE.get(args[0])]
        near = near or get_close_matches(args[0], names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"{ctx.command_path} --help lists them"
        raise click.UsageError(f"no command is named '{one_line(args[0])[:40]}'; {hint}", ctx)
    return args[0], command, args[1:]


def _terminal_options(verb: Verb[Any, Any]) -> list[click.Parameter]:
    """Options that exist only on the command line."""
    found: list[click.Parameter] = []
    if verb.may_ask:
        found.append(click.Option(["-y", "--yes"], is_flag=True, help="Do not ask for confirmation."))
    if verb.name == "sessions.export":
        path = click.Path(dir_okay=False, path_type=Path)
        found.append(click.Option(["-o", "--output"], type=path, help="Write to this file, readable only by you."))
        found.append(click.Option(["--force"], is_flag=True, help="Overwrite the file if it exists."))
    if verb.live:
        found.append(click.Option(["--once"], is_flag=True, help="Show the changes so far, then exit."))
        interval = click.FloatRange(0.01, 3600)
        found.append(
            click.Option(
                ["--interval"], type=interval, default=0.5, show_default=True, help="Seconds between two checks."
            )
        )
    if verb.output is Page:
        found.append(click.Option(["--all"], is_flag=True, help="List all memories, not only a page of them."))
    if verb.name == "add":
        found.append(click.Option(["--whole"], is_flag=True, help="With -, store the whole input as one memory."))
    if any(slot.kind.objects for slot in parameters.slots_of(verb)):
        found.append(click.Option(["--structured"], is_flag=True, help="The content is a JSON object, not a text."))
    if verb.name in ("graph", "decay"):
        picture = click.Path(dir_okay=False, path_type=Path)
        found.append(click.Option(["--svg"], type=picture, help="Draw a picture into this file, readable only by you."))
    return found


class Commands(click.Group):
    """The root command. Subcommands are built when they are used, to keep the start short."""

    def __init__(self, out: Screen, notes: Screen) -> None:
        super().__init__(
            PROGRAM,
            help=_ABOUT,
            params=[*global_options.options(), click.Option(["--version"], is_flag=True, help=BUILTINS["version"])],
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
            invoke_without_command=True,
            callback=self._without_command,
            epilog="wellkept COMMAND --help shows options and examples.",
        )
        self._out, self._notes = out, notes
        self.named = ""

    def _without_command(self, **values: Any) -> None:
        context = click.get_current_context()
        if values["version"]:
            context.invoke(self._builtin("version"))
        elif context.invoked_subcommand is None:
            self._out.line(context.get_help())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the table, then the built-in commands."""
        return [*_TOP, *BUILTINS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        if cmd_name in _TOP:
            return command_of(cmd_name, self._out, self._notes)
        return self._builtin(cmd_name) if cmd_name in BUILTINS else None

    def _builtin(self, name: str) -> click.Command:
        from wellkept.cli import builtins  # lazy: verbs need none of it

        return builtins.COMMANDS[name](self._out)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command, list[str]]:
        """Find a command, and note its name for error messages."""
        self.named = ""
        found = _resolved(self, ctx, args)
        self.named = args[0]
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name, listed in _TOP.items():
            headings.setdefault(listed.section.value, []).append((name, listed.summary))
        headings["Command line"] = list(BUILTINS.items())
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def run(args: Sequence[str]) -> int:
    """Run a command line; returns the exit code."""
    out, notes = standard_screens()
    commands = Commands(out, notes)
    if COMPLETION_VARIABLE in os.environ:
        commands.main(list(args), prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE)
    try:
        code = _invoked(commands, args, out, notes)
        out.out.flush()
    except BrokenPipeError:
        _silence()
        return PIPE_CLOSED
    return code


def _silence() -> None:
    """The reader of the pipe is gone: send what Python still writes when it exits to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoked(commands: Commands, args: Sequence[str], out: Screen, notes: Screen) -> int:
    errors = _Errors(out if "--json" in args else None, notes, commands)
    context: click.Context | None = None
    try:
        context = commands.make_context(PROGRAM, list(args))
        with context.scope():
            answer = commands.invoke(context)
            return answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else PROGRAM
        return errors.show(_said("USAGE", error.format_message(), f"see {path} --help", USAGE))
    except click.ClickException as error:
        return errors.show(_said("USAGE", error.format_message(), "", USAGE))
    except WellkeptError as error:
        own = _HINTS.get(error.code, error.hint)
        advised = error.code != "STORE_CORRUPT" or ("doctor" in error.hint and commands.named != "doctor")
        return errors.show(replace(report(error), hint=own if advised else error.hint))
    except (KeyboardInterrupt, click.Abort):
        return errors.show(_said("INTERRUPTED", "stopped", _interrupted_hint(commands.named), INTERRUPTED))
    except BrokenPipeError:
        raise
    except Exception as error:  # reason: any error must become one line and an exit code  # noqa: BLE001
        if os.environ.get("WELLKEPT_DEBUG"):
            import traceback  # lazy: only for debugging

            traceback.print_exc()
        if told := open_files.too_many(error):
            return errors.show(report(told))
        message = f"{type(error).__name__}: {error}"[:500]
        hint = "please report it; WELLKEPT_DEBUG=1 shows more"
        return errors.show(replace(report(error), message=message, hint=hint))


def _interrupted_hint(name: str) -> str:
    return VERBS[name].interrupted if name in VERBS else ""


def _said(code: str, message: str, hint: str, exit_code: int) -> Report:
    """The report of an error of the command line itself."""
    return replace(report(InvalidInput(message, hint=hint)), code=code, exit_code=exit_code)


class _Errors:
    """Shows errors: in one line on the standard error, or as JSON on the standard output."""

    def __init__(self, json: Screen | None, notes: Screen, commands: Commands) -> None:
        self._json, self._notes, self._commands = json, notes, commands

    def show(self, told: Report) -> int:
        """Show an error; returns its exit code."""
        if self._json is None:
            said, hint = one_line(told.message).rstrip("."), one_line(told.hint)
            if verb := VERBS.get(self._commands.named):
                said, hint = parameters.in_flags(said, verb), parameters.in_flags(hint, verb, anywhere=True)
            said, hint = in_commands(said), in_commands(hint)
            text = f"{said}{' ' if said.endswith('?') else '; '}{hint}" if hint else said
            self._notes.paragraph(f"error: {text}", "error:", "red bold")
            return told.exit_code
        names = ("code", "message", "hint", "retryable", "details", "exit_code")
        described = {name: getattr(told, name) for name in names}
        failed = {"ok": False, "operation": self._commands.named, "error": described}
        self._json.line(escaped(codec.encode_json(failed).decode()))
        return told.exit_code
