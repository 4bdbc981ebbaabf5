"""The verb that makes room in a session: compact."""

from dataclasses import dataclass

from recollect.errors import NotFound
from recollect.operations.verb import Caller, Example, Needs, Verb, argument, option
from recollect.types import CompactionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Which session."""

    id: str = argument("the id of the session")
    dry_run: bool = option("only say what would go", False, short="n")


def _compact(caller: Caller, given: Compact) -> CompactionReport:
    return caller.view.sessions.compact(given.id, dry_run=given.dry_run)


def _taken_away(caller: Caller, given: Compact) -> str:
    if given.dry_run:
        return ""
    count = caller.view.sessions.compact(given.id, dry_run=True).count
    memories = f"{count} {'memory' if count == 1 else 'memories'}"
    return f"erase {memories} of the session {given.id} for good" if count else ""


COMPACT = Verb(
    name="compact",
    input=Compact,
    output=CompactionReport,
    run=_compact,
    needs=Needs.ERASE,
    errors=(NotFound,),
    asks=_taken_away,
    description="What was forgotten or has expired is erased; what hardly counts any more, if the session is full."
    " Pinned memories stay.",
    examples=(
        Example(line="recollect compact monday --dry-run", says="what would go, and how much room it makes"),
        Example(line="recollect compact monday --yes", says="without being asked"),
    ),
)
