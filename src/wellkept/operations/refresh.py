"""The verb that brings pointers to files up to date."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import Conflict, EmbeddingFailed, RateLimited
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, option
from wellkept.types import Refreshed
from wellkept.types.bounds import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """Which files."""

    paths: tuple[str, ...] = argument(
        "Files and folders to look at; nothing outside them is read.",
        takes=Takes.EACH,
        bounds=Bounds(max_length=1_000, each=fields.LINE),
    )
    dry_run: bool = option("Only report what changed; change nothing.", False, short="n")


def _refresh(caller: Caller, given: Refresh) -> Refreshed:
    return caller.view.refresh(given.paths, dry_run=given.dry_run)


REFRESH = Verb(
    name="refresh",
    input=Refresh,
    output=Refreshed,
    run=_refresh,
    method="View.refresh",
    errors=(Conflict, EmbeddingFailed, RateLimited),
    description="Memories that point to a file know its hash. One that was the whole text of the file gets the new"
    " text; any other one keeps its own, and points to the file as it is now.",
    examples=(Example(line="wellkept refresh . --dry-run", says="what changed below this folder"),),
)
