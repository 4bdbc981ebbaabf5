"""The verb that gives a memory to another owner."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import Conflict, Held, InvalidLayer, NotFound
from wellkept.operations.verb import Caller, Example, Verb, argument, option
from wellkept.types import Layer, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Which memory, and to which layer."""

    id: str = argument("The id of the memory.", bounds=fields.ID)
    layer: Layer = option("The layer whose owner gets the memory.", Layer.USER, short="l")


def _move(caller: Caller, given: Move) -> Memory:
    return caller.view.move(given.id, layer=given.layer)


MOVE = Verb(
    name="move",
    input=Move,
    output=Memory,
    run=_move,
    method="View.move",
    errors=(NotFound, InvalidLayer, Conflict, Held),
    description="Its history goes with it; the owner before keeps a version that says where it went.",
    examples=(Example(line="wellkept move $ID --project api --layer project", says="for everybody in the project"),),
)
