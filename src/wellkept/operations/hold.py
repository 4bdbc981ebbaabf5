"""Verbs of holds: hold, hold.list, hold.release."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from wellkept import fields
from wellkept.codec.strict import to_jsonable
from wellkept.errors import InvalidInput, NotFound
from wellkept.operations.conditions import MANY, Conditions
from wellkept.operations.maintenance import Nothing
from wellkept.operations.upkeep import layer_field, owner_in
from wellkept.operations.verb import Caller, Example, Verb, argument, group, option, result
from wellkept.types import Hold, Layer, Owner
from wellkept.types.bounds import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A hold."""

    id: str = result("The id of the hold.", bounds=fields.ID)
    reason: str = result("The reason that was given.", bounds=fields.LINE)
    placed_at: datetime = result("When it was placed.")
    owner: Owner | None = result("Whose memories are held; null for everybody's.")
    filter: Mapping[str, Any] = result("What must hold of a memory for it to be held.", bounds=Bounds(max_length=100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What to hold, and why."""

    reason: str = option("The reason, such as the name of a case.", "", bounds=fields.LINE)
    layer: Layer | None = layer_field()
    filter: Conditions = group("Hold the memories for which these conditions hold.", Conditions)
    everything: bool = option("Hold all memories, without any condition.", False)


def _hold(caller: Caller, given: Place) -> Placed:
    if bool(given.filter.given) == given.everything:
        raise InvalidInput(
            "everything was asked for, and conditions as well" if given.everything else "no condition was given",
            operation="hold",
            details={"field": "everything"},
            hint="give conditions such as a tag, or everything=true to hold all memories",
        )
    owner = owner_in(caller, given.layer)
    return _shown(caller.memories.upkeep.hold(given.filter.to_filter(), reason=given.reason, owner=owner))


def _shown(hold: Hold) -> Placed:
    given = {name: value for name, value in asdict(hold.filter).items() if value not in (None, (), {}, False)}
    given.pop("max_depth")
    return Placed(id=hold.id, reason=hold.reason, placed_at=hold.placed_at, owner=hold.owner, filter=to_jsonable(given))


HOLD = Verb(
    name="hold",
    input=Place,
    output=Placed,
    run=_hold,
    method="Upkeep.hold",
    description="Upkeep leaves alone what is held, now and later, and nobody can erase it until the hold is released.",
    examples=(
        Example(line="wellkept hold --tag legal --reason 'case 17'", says="everything tagged so, whoever's it is"),
        Example(line="wellkept hold --everything --layer user --reason audit", says="all memories of one user"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """All holds."""

    holds: tuple[Placed, ...] = result("The holds, the oldest first.", bounds=MANY)


def _list(caller: Caller, _: Nothing) -> Holds:
    return Holds(holds=tuple(_shown(one) for one in caller.memories.upkeep.holds()))


HOLD_LIST = Verb(
    name="hold.list",
    input=Nothing,
    output=Holds,
    run=_list,
    method="Upkeep.holds",
    examples=(Example(line="wellkept hold list", says="all holds"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Which hold."""

    id: str = argument("The id of the hold.", bounds=fields.ID)


def _release(caller: Caller, given: Release) -> Placed:
    return _shown(caller.memories.upkeep.release(given.id))


HOLD_RELEASE = Verb(
    name="hold.release",
    input=Release,
    output=Placed,
    run=_release,
    method="Upkeep.release",
    errors=(NotFound,),
    examples=(Example(line="wellkept hold release $HOLD", says="upkeep and erasures work again"),),
)
