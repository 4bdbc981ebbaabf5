"""Running a verb: open the database, ask for confirmation, call the dispatcher, show the answer."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wellkept import codec
from wellkept.cli import discovery, parameters, short_ids
from wellkept.cli.constants import DATABASE
from wellkept.cli.global_options import GlobalOptions
from wellkept.cli.screen import Screen, escaped, one_line
from wellkept.errors import ConfigurationError, EmbedderMismatch, EmbeddingFailed, KeyUnavailable, NotAStore
from wellkept.operations import Caller, Progress, Verb, request
from wellkept.operations.conditions import PAGE
from wellkept.settings import shown
from wellkept.text import plurals
from wellkept.types import Need

if TYPE_CHECKING:
    from wellkept.cli.discovery import Found
    from wellkept.memories.database import Memories
    from wellkept.operations.dispatcher import Request
    from wellkept.types import Page


def run_verb(
    verb: Verb[Any, Any], options: GlobalOptions, values: Mapping[str, Any], out: Screen, notes: Screen
) -> bool:
    """Run a verb and show its answer; returns whether the answer is a yes."""
    with _progress(notes, verb.name) as progress:
        payload = parameters.payload_of(
            verb,
            values,
            whole=bool(values.get("whole")),
            structured=bool(values.get("structured")),
            progress=progress,
        )
    found = discovery.STANDALONE if verb.standalone else options.find()
    with found.logging(), opened(verb, found) as memories, _progress(notes, verb.name) as progress:
        caller = Caller(memories=memories, identity=found.identity, progress=progress)
        payload = short_ids.expand(verb, caller, payload)
        call = request(verb.name, caller, payload)
        if not values.get("yes") and (taken := call.question()):
            _confirm(taken, notes, lambda: _preview(verb, caller, payload, notes))
        if verb.live and not values.get("once"):
            from wellkept.cli import change_feed  # lazy: one command needs it

            return change_feed.follow(verb.name, caller, payload, out, json=options.json, interval_s=values["interval"])
        answer = all_pages(call) if values.get("all") else call.run()
    answer_with(out, verb.name, answer, call.input, json=options.json, values=values)
    return verb.agrees(answer)


def all_pages(call: "Request[Any, Page]") -> "Page":
    """The pages of a listing from the asked one to the last, as one."""
    given = replace(call.input, limit=PAGE.maximum)
    page = call._replace(input=given).run()
    memories, reasons = list(page.memories), list(page.reasons)
    while page.next_cursor is not None:
        page = call._replace(input=replace(given, cursor=page.next_cursor, offset=0)).run()
        memories += page.memories
        reasons += page.reasons
    return replace(page, memories=tuple(memories), reasons=tuple(reasons))


def answer_with(
    out: Screen, name: str, answer: Any, given: Any, *, json: bool, values: Mapping[str, Any] | None = None
) -> None:
    """Show an answer: as JSON, as a file, or for people."""
    if values and values.get("output"):
        from wellkept.cli import output_files  # lazy: one option of one command needs it

        output_files.write_private(values["output"], answer.text, force=values["force"])
        if not json:
            out.line(f"{answer.id} written to {one_line(str(values['output']))}", "green")
            return
    if values and values.get("svg"):
        from wellkept.cli import decay_views, graph_views, output_files  # lazy: as above

        picture = decay_views.svg(answer) if name == "decay" else graph_views.svg(answer)
        if str(values["svg"]) == parameters.STDIO:
            out.line(picture)
            return
        output_files.write_private(values["svg"], picture, force=True)
        if not json:
            drawn = (
                plurals.counted(len(answer.curves), "curve", "curves")
                if name == "decay"
                else plurals.memories(len(answer.nodes))
            )
            out.line(f"{drawn} drawn into {one_line(str(values['svg']))}")
            return
    if json and name == "watch":
        for one in answer.one_by_one():
            out.line(as_json(name, one))
    elif json:
        out.line(as_json(name, answer))
    else:
        from wellkept.cli.renderers import render  # lazy: programs need none of it

        render(out, name, answer, given)


def as_json(operation: str, result: Any) -> str:
    """An answer as JSON for programs."""
    return escaped(codec.encode_json({"ok": True, "operation": operation, "result": result}).decode())


def _preview(verb: Verb[Any, Any], caller: Caller, payload: Mapping[str, Any], notes: Screen) -> None:
    """Show the texts that would be forgotten, before the question."""
    if verb.name == "forget":
        from wellkept.cli.renderers import forgotten  # lazy: only before a question

        dry = request(verb.name, caller, {**payload, "dry_run": True})
        forgotten(notes, dry.run(), dry.input)


def _confirm(taken: str, notes: Screen, preview: Callable[[], None]) -> None:
    """Ask a person before something is taken away; without a terminal, the flag ``--yes`` is required instead."""
    if not (sys.stdin.isatty() and notes.terminal):
        raise click.UsageError(f"this would {one_line(taken)}; there is no terminal to confirm it, so pass --yes")
    preview()
    click.confirm(f"{one_line(taken[0].upper() + taken[1:])}?", abort=True, err=True)


@contextmanager
def opened(verb: Verb[Any, Any], found: "Found") -> "Iterator[Memories]":
    """The open database. Only verbs that create a database make one that does not exist."""
    import wellkept  # lazy: the engine, which is not needed to refuse a command line

    if verb.standalone:
        from wellkept import plugins  # lazy: as above
        from wellkept.keyrings.absent import AbsentKeyring  # lazy: few commands need it

        unused = AbsentKeyring(KeyUnavailable("this command needs no keys"))  # whatever keys the settings ask for
        with wellkept.open(plugins.IN_PROCESS, embedder=None, keyring=unused) as nothing:
            yield nothing
        return
    _check_place(verb, found)
    try:
        memories = wellkept.open(found.database, **found.options)
    except EmbedderMismatch:
        if verb.needs is Need.WRITE and EmbeddingFailed in verb.errors:
            raise
        memories = wellkept.open(
            found.database, **{**found.options, "embedder": None}
        )  # a verb that needs no new vectors works by words alone
    except KeyUnavailable as error:
        if not verb.makes_keys:
            raise
        memories = _without_keys(found, error)
    with memories:
        yield memories


def _without_keys(found: "Found", error: KeyUnavailable) -> "Memories":
    """A database that is to get the keys that its settings ask for; one that is encrypted already has lost them."""
    import wellkept  # lazy: as in opened
    from wellkept.keyrings.absent import AbsentKeyring  # lazy: one command needs it

    try:
        return wellkept.open(found.database, **found.options, keyring=AbsentKeyring(error))
    except KeyUnavailable:
        raise error from None


def _check_place(verb: Verb[Any, Any], found: "Found") -> None:
    """Refuse a database that does not exist, unless the verb creates one, and a folder that is named like a file."""
    from wellkept import plugins  # lazy: as in opened

    place = shown(found.database)
    if (folder := plugins.folder_there(found.database)) is not None:
        raise NotAStore(f"{place} is a folder", details={"path": place}, hint=f"name it {folder}")
    database = found.settings.database
    if plugins.is_lasting(found.database) and not plugins.is_there(found.database, database):
        if not verb.creates:
            raise ConfigurationError(
                f"there is no database at {place} (from {found.origins[DATABASE]})",
                details={"path": place},
                hint="wellkept add creates one; --db names another",
            )
        if found.origins[DATABASE] == "the default":
            Path(found.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def _progress(notes: Screen, name: str) -> Iterator[Progress | None]:
    """A progress bar on a terminal, shown from the first step that is reported; it pulses until a step is done."""
    if not notes.terminal:
        yield None
        return
    bars: list[Any] = []

    def told(done: int, total: int) -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # lazy: only for what takes long
        from rich.progress import Progress as Bar  # lazy: as above

        if not bars:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[steps]}"))
            bar = Bar(*columns, TimeElapsedColumn(), console=notes.console, transient=True)
            bar.start()
            bar.add_task(name, total=None, steps="")
            bars.append(bar)
        steps = f"{100 * done // max(1, total)}%" if done else f"{total:,}"
        bars[0].update(bars[0].task_ids[0], completed=done, total=total if done else None, steps=steps)

    try:
        yield told
    finally:
        for bar in bars:
            bar.stop()
