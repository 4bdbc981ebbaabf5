"""Running a verb for somebody at a terminal or for a program: ask, open, run, show."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import finding, params
from recollect.cli.names import DATABASE
from recollect.cli.screen import Screen, one_line
from recollect.cli.shared import Asking
from recollect.errors import ConfigurationError, EmbedderMismatch, EmbeddingFailed
from recollect.operations import Caller, Needs, Progress, Verb

if TYPE_CHECKING:
    from recollect.cli.finding import Found
    from recollect.memories.database import Memories


def run_verb(verb: Verb[Any, Any], asked: Asking, values: Mapping[str, Any], out: Screen, notes: Screen) -> bool:
    """Run a verb and show its answer; whether the answer is yes."""
    given = params.filled(verb, values, whole=bool(values.get("whole")))
    found = finding.STANDALONE if verb.standalone else asked.find()
    with found.logging(), opened(verb, found) as memories:
        caller = Caller(memories=memories, identity=found.identity)
        if not values.get("yes"):
            _ask_first(verb.asks(caller, given), notes)
        if verb.live and not values.get("once"):
            from recollect.cli import watching  # lazy: one command needs it

            return watching.follow(verb, caller, given, out, json=asked.json, interval_s=values["interval"])
        with _progress(notes, verb.name) as told:
            answer = verb.run(caller._replace(progress=told), given)
    answer_with(out, verb.name, answer, given, json=asked.json, values=values)
    return verb.agrees(answer)


def answer_with(
    out: Screen, name: str, answer: Any, given: Any, *, json: bool, values: Mapping[str, Any] | None = None
) -> None:
    """Show an answer: as JSON, as a picture in a file, or for people."""
    if values and values.get("output"):
        from recollect.cli import files  # lazy: one option of one command needs it

        files.write_private(values["output"], answer.text, force=values["force"])
        if not json:
            out.line(f"{answer.id} written to {one_line(str(values['output']))}", "green")
            return
    if json and name == "watch":
        for version in answer.versions:
            out.line(as_json(name, replace(answer, versions=(version,), last=version.sequence)))
    elif json:
        out.line(as_json(name, answer))
    elif values and values.get("svg"):
        from recollect.cli import drawing  # lazy: one option of one command needs it

        values["svg"].write(drawing.svg(answer))
        out.line(f"{len(answer.nodes)} memories drawn into {values['svg'].name}")
    else:
        from recollect.cli.rendering import render  # lazy: programs need none of it

        render(out, name, answer, given)


def as_json(operation: str, result: Any) -> str:
    """An answer in the form that programs rely on."""
    from recollect import codec  # lazy: brings in msgspec

    return codec.encode_json({"ok": True, "operation": operation, "result": result}).decode()


def _ask_first(taken: str, notes: Screen) -> None:
    """Before something is taken away, whoever sits there is asked; a program must have said that it is sure."""
    if not taken:
        return
    if not (sys.stdin.isatty() and notes.terminal):
        raise click.UsageError(f"this would {one_line(taken)}, and nobody can be asked here: pass --yes if it shall be")
    click.confirm(f"{one_line(taken[0].upper() + taken[1:])}?", abort=True, err=True)


@contextmanager
def opened(verb: Verb[Any, Any], found: "Found") -> "Iterator[Memories]":
    """The database. One that is not there is made by the verbs that begin one, and by no other."""
    import recollect  # lazy: the engine is loaded here, after all that can be refused without it

    if verb.standalone:
        with recollect.open("ram:", embedder=None) as nothing:
            yield nothing
        return
    path = found.path
    if path is not None and not path.exists():
        if not verb.creates:
            raise ConfigurationError(
                f"there is no database at {path} (from {found.origins[DATABASE]})",
                details={"path": str(path)},
                hint="recollect add makes one; --db names another",
            )
        if found.origins[DATABASE] == "the default":
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        memories = recollect.open(found.database, **found.options)
    except EmbedderMismatch:
        if verb.needs is Needs.WRITE and EmbeddingFailed in verb.errors:
            raise
        memories = recollect.open(
            found.database, **{**found.options, "embedder": None}
        )  # what needs no new vectors goes by words alone
    with memories:
        yield memories


@contextmanager
def _progress(notes: Screen, name: str) -> Iterator[Progress | None]:
    """A bar for whoever is watching, from the first step that is told of."""
    if not notes.terminal:
        yield None
        return
    bars: list[Any] = []

    def told(done: int, total: int) -> None:
        from rich.progress import Progress as Bar  # lazy: only for what takes long

        if not bars:
            bar = Bar(console=notes.console, transient=True)
            bar.start()
            bar.add_task(name, total=total)
            bars.append(bar)
        bars[0].update(bars[0].task_ids[0], completed=done, total=total)

    try:
        yield told
    finally:
        for bar in bars:
            bar.stop()
