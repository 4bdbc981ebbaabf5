"""Which values a shell completes from the database; the database is read only when a shell asks."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


class Names(Enum):
    """What the values of a field name: things that a database contains."""

    MEMORIES = "memories"
    SESSIONS = "sessions"
    TAGS = "tags"


def completer_of(names: Names | None, *, restored: bool = False) -> Completer | None:
    """What completes such values. Restoring is for what was forgotten or deleted, everything else for the rest."""
    if names is None:
        return None

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from wellkept.cli import completions  # lazy: only for shells; needs the engine

        match names:
            case Names.MEMORIES:
                return completions.offered(lambda: completions.memories(context, incomplete, forgotten=restored))
            case Names.SESSIONS:
                return completions.offered(lambda: completions.sessions(context, incomplete, deleted=restored))
            case Names.TAGS:
                return completions.offered(lambda: completions.tags(context, incomplete))

    return complete
