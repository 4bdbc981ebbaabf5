"""The verb that takes back a write or a run."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import Conflict, InvalidLayer, NotFound
from wellkept.operations.conditions import MANY, MANY_IDS, RESULTS, layers_field
from wellkept.operations.verb import Caller, Example, Verb, argument, option, result
from wellkept.types import Layer, Undoable


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Which write or run."""

    id: str | None = argument("The id of the write or run; without it, the last one.", None, bounds=fields.LINE)
    layers: tuple[Layer, ...] = layers_field()
    list: bool = option("Only list what could be undone; change nothing.", False)
    limit: int = option("The largest number of writes and runs to list.", 20, bounds=RESULTS, short="n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """What was taken back, or what could be."""

    id: str | None = result("The id of the write or run that was taken back.", None, bounds=fields.LINE)
    ids: tuple[str, ...] = result("Ids of the memories that are as they were before.", (), bounds=MANY_IDS)
    undoable: tuple[Undoable, ...] = result("What could be undone, the newest first.", (), bounds=MANY)


def _undo(caller: Caller, given: Undo) -> Reverted:
    layers = given.layers or None
    if given.list:
        return Reverted(undoable=tuple(caller.view.undoable(limit=given.limit, layers=layers)))
    done = caller.view.undo(given.id, layers=layers)
    return Reverted(id=done.run_id, ids=done.ids)


UNDO = Verb(
    name="undo",
    input=Undo,
    output=Reverted,
    run=_undo,
    method="View.undo",
    errors=(Conflict, NotFound, InvalidLayer),
    description="What was added is forgotten, what was changed is as it was before. It is refused if a memory was"
    " changed again since; what was erased stays erased.",
    examples=(
        Example(line="wellkept undo", says="the last write"),
        Example(line="wellkept undo --list", says="what could be undone; nothing is changed"),
    ),
)
