"""The verb that frees space in a session: compact."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import NotFound, UpkeepRefused
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.operations.sessions import SESSION_ID
from wellkept.operations.verb import Caller, Example, Verb, argument, option
from wellkept.types import CompactionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Which session."""

    id: str = argument("The id of the session.", bounds=SESSION_ID)
    purge: bool = option("Erase what was forgotten, has expired or was archived before; this cannot be undone.", False)
    dry_run: bool = option("Only report what would go; change nothing.", False, short="n")
    max_share: float = option(
        "The largest share of the session's memories that may be archived at once, from 0 to 1.",
        MAX_SHARE,
        bounds=fields.UNIT,
    )


def _compact(caller: Caller, given: Compact) -> CompactionReport:
    return caller.view.sessions.compact(given.id, purge=given.purge, dry_run=given.dry_run, max_share=given.max_share)


def _taken_away(caller: Caller, given: Compact) -> str:
    if given.dry_run or not given.purge:
        return ""
    count = len(caller.view.sessions.compact(given.id, purge=True, dry_run=True).erased)
    memories = f"{count} {'memory' if count == 1 else 'memories'}"
    return f"erase {memories} of the session {given.id} for good" if count else ""


COMPACT = Verb(
    name="compact",
    input=Compact,
    output=CompactionReport,
    run=_compact,
    method="Sessions.compact",
    errors=(NotFound, UpkeepRefused),
    asks=_taken_away,
    description="Archives expired memories and, if the session is full, verbose metadata of old ones, then the least"
    " relevant ones: they are left out of everything and count for nothing; restore brings one back, upkeep undo all of"
    " them. With purge, what was forgotten, has expired or was archived before is erased. Pinned and held memories"
    " stay.",
    examples=(
        Example(line="wellkept compact monday --dry-run", says="what would be archived, and how much space it frees"),
        Example(line="wellkept compact monday --purge --yes", says="erases, without being asked"),
    ),
)
