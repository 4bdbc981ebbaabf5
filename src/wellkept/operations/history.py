"""Verbs that read the journal: history, watch."""

from collections.abc import Iterator
from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import InvalidLayer, NotFound, PositionLost
from wellkept.operations.conditions import MANY, POSITION, Position, layers_field
from wellkept.operations.verb import Caller, Example, Verb, argument, option, result
from wellkept.types import Layer, Version
from wellkept.types.bounds import Bounds

_CHANGES = Bounds(minimum=1, maximum=10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions, the oldest first. ``next`` is the position to continue after."""

    versions: tuple[Version, ...] = result("The versions, the oldest first.", bounds=MANY)
    next: Position | None = result("The position to continue after.", None, bounds=POSITION)

    def one_by_one(self) -> "Iterator[Versions]":
        """The same versions, each in an answer of its own."""
        return (Versions(versions=(one,), next=one.position) for one in self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Which memory."""

    id: str = argument("The id of the memory.", bounds=fields.ID)


def _history(caller: Caller, given: History) -> Versions:
    found = tuple(caller.view.history(given.id))
    if not found:
        raise NotFound(
            f"no memory {given.id[:64]!r} is visible here",
            operation="history",
            details={"memory_id": given.id[:64]},
            hint="check the id and the identity",
        )
    return Versions(versions=found)


HISTORY = Verb(
    name="history",
    input=History,
    output=Versions,
    run=_history,
    method="View.history",
    errors=(NotFound,),
    examples=(Example(line="wellkept history $ID", says="the oldest first; erased ones say only that they were"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Which versions."""

    after: Position | None = option("Only versions written after this position.", bounds=POSITION)
    limit: int = option("The largest number of versions.", 1_000, bounds=_CHANGES, short="n")
    layers: tuple[Layer, ...] = layers_field()


def _watch(caller: Caller, given: Watch) -> Versions:
    found = caller.view.changes(after=given.after, limit=given.limit, layers=given.layers or None)
    return Versions(versions=found.versions, next=found.next)


WATCH = Verb(
    name="watch",
    input=Watch,
    output=Versions,
    run=_watch,
    method="View.changes",
    errors=(InvalidLayer, PositionLost),
    live=True,
    interrupted="continue with --after and the last position you saw",
    examples=(
        Example(line="wellkept watch --once", says="what was written so far"),
        Example(line="wellkept watch --once --json", says="a line of JSON for each change, with its position"),
    ),
)
