"""Verbs that read the journal: history, watch."""

from dataclasses import dataclass

from recollect.errors import InvalidLayer, NotFound
from recollect.operations.verb import Caller, Example, Needs, Verb, argument, option
from recollect.types import Layer, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions, the oldest first. ``last`` is the sequence to go on from; what was given if there are none."""

    versions: tuple[Version, ...]
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Whose history."""

    id: str = argument("the id of the memory")


def _history(caller: Caller, given: History) -> Versions:
    found = tuple(caller.view.history(given.id))
    if not found:
        raise NotFound(
            f"no memory {given.id[:64]!r} is visible here",
            operation="history",
            details={"memory_id": given.id[:64]},
            hint="check the id and the identity",
        )
    return Versions(versions=found, last=found[-1].sequence)


HISTORY = Verb(
    name="history",
    input=History,
    output=Versions,
    run=_history,
    needs=Needs.READ,
    errors=(NotFound,),
    examples=(Example(line="recollect history $ID", says="the oldest first; erased ones say only that they were"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """From where to go on."""

    after: int = option("what was written behind this sequence", 0)
    limit: int = option("at most so many at once", 1_000, short="n")
    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")


def _watch(caller: Caller, given: Watch) -> Versions:
    found = tuple(caller.view.changes(after=given.after, limit=given.limit, layers=given.layers or None))
    return Versions(versions=found, last=found[-1].sequence if found else given.after)


WATCH = Verb(
    name="watch",
    input=Watch,
    output=Versions,
    run=_watch,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    live=True,
    interrupted="go on with --after and the last sequence you saw",
    examples=(
        Example(line="recollect watch --once", says="what was written so far"),
        Example(line="recollect watch --once --after 120 --json", says="a line of JSON for each change since"),
    ),
)
