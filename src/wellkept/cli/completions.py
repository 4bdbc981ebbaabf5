"""What shells complete from the database: ids, tags, sessions. A database that does not open gives nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from wellkept.cli import charts, global_options
from wellkept.cli.execution import opened
from wellkept.cli.screen import one_line
from wellkept.cli.short_ids import known_ids, short
from wellkept.errors import WellkeptError
from wellkept.operations import VERBS, Caller
from wellkept.text import plurals
from wellkept.types import State

if TYPE_CHECKING:
    from wellkept.memories.view import View

_OFFERED = 50
_TEXT = 60


def memories(context: click.Context, incomplete: str, *, forgotten: bool) -> Iterator[CompletionItem]:
    """The newest ids that begin so, with the beginnings of their contents."""
    with _view(context) as (view, caller):
        states = frozenset({State.FORGOTTEN if forgotten else State.ACTIVE})
        known = sorted((id for id in known_ids(caller, states) if id.startswith(incomplete)), reverse=True)[:_OFFERED]
        # As of now: reading the present would count as an access.
        found = view.get_many(known, as_of=view.position(), include_forgotten=True) if known else {}
        for id, memory in found.items():
            yield CompletionItem(id if len(incomplete) > len(short(id)) else short(id), help=_cut(memory.content))


def tags(context: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """The most used tags that begin so, with how often they are used."""
    with _view(context) as (view, _):
        for use in view.stats().top_tags:
            if use.tag.startswith(incomplete):
                yield CompletionItem(use.tag, help=plurals.memories(use.count))


def sessions(context: click.Context, incomplete: str, *, deleted: bool) -> Iterator[CompletionItem]:
    """The sessions that begin so, with how many entries they have."""
    with _view(context) as (view, _):
        for one in view.sessions.list(include_deleted=deleted):
            if one.id.startswith(incomplete) and (one.deleted_at is not None) is deleted:
                yield CompletionItem(one.id, help=plurals.counted(one.entries, "entry", "entries"))


def offered(found: Callable[[], Iterator[CompletionItem]]) -> list[CompletionItem]:
    """What was found; nothing if the database cannot be read, since a shell has no place for errors."""
    with suppress(WellkeptError, OSError, click.ClickException):
        return list(found())
    return []


def _cut(text: str) -> str:
    return charts.cut(one_line(text[: 4 * _TEXT]), _TEXT)


@contextmanager
def _view(context: click.Context) -> "Iterator[tuple[View, Caller]]":
    found = global_options.given(context).find()
    with opened(VERBS["list"], found) as database:
        caller = Caller(memories=database, identity=found.identity)
        yield caller.view, caller
