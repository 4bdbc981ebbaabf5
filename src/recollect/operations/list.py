"""The verb that lists."""

from dataclasses import dataclass

from recollect.errors import InvalidLayer
from recollect.operations.conditions import Narrowed
from recollect.operations.verb import Caller, Example, Needs, Verb, option
from recollect.types import Page, Sort


@dataclass(frozen=True, slots=True, kw_only=True)
class List(Narrowed):
    """Which page of which memories."""

    limit: int = option("at most so many, up to 100", 50, short="n")
    cursor: str | None = option("go on behind the page that gave this cursor")
    offset: int = option("leave out so many first", 0)
    sort_by: Sort = option("the order", Sort.NEWEST, flag="sort", short="s")


def _list(caller: Caller, given: List) -> Page:
    return caller.view.list(
        limit=given.limit, cursor=given.cursor, offset=given.offset, sort_by=given.sort_by, **given.wanted()
    )


LIST = Verb(
    name="list",
    input=List,
    output=Page,
    run=_list,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    examples=(
        Example(line="recollect list", says="the newest fifty"),
        Example(line="recollect list --tag security --sort important", says="the most important first"),
        Example(line="recollect list --as-of 2d --forgotten", says="as it was two days ago, with forgotten ones"),
    ),
)
