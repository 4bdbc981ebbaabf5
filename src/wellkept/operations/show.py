"""The verb that shows one memory."""

from dataclasses import dataclass
from datetime import datetime

from wellkept import fields
from wellkept.errors import InvalidInput, NotFound
from wellkept.operations.conditions import Position, as_of_field
from wellkept.operations.verb import Caller, Example, Verb, argument, option
from wellkept.types import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """Which memory to show."""

    id: str | None = argument("The id of the memory.", None, bounds=fields.ID)
    key: str | None = option("The key of the memory, instead of its id.", bounds=fields.LINE)
    as_of: datetime | Position | None = as_of_field()
    include_forgotten: bool = option("Show it even if it is forgotten.", False, flag="forgotten")
    include_vector: bool = option("Include its embedding.", False, flag="vector")


def _show(caller: Caller, given: Show) -> Memory:
    if given.id is None and given.key is None:
        raise InvalidInput(
            "neither an id nor a key was given", operation="show", details={"field": "id"}, hint="pass one of the two"
        )
    found = caller.view.get(
        given.id,
        key=given.key,
        as_of=given.as_of,
        include_forgotten=given.include_forgotten,
        include_vector=given.include_vector,
    )
    if found is None:
        name = str(given.key if given.id is None else given.id)[:64]
        raise NotFound(
            f"no memory {name!r} is visible here",
            operation="show",
            details={"memory_id": name},
            hint="check the id or key and the identity; include_forgotten shows a forgotten one",
        )
    return found


SHOW = Verb(
    name="show",
    input=Show,
    output=Memory,
    run=_show,
    method="View.get",
    errors=(NotFound,),
    examples=(
        Example(line="wellkept show $ID", says="as it is"),
        Example(line="wellkept show --key style", says="the memory that has this key"),
        Example(line="wellkept show $ID --as-of 2030-01-07", says="as it was on that day"),
    ),
)
