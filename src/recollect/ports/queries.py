"""What a store is asked to list."""

from dataclasses import dataclass

from recollect.filters import Where
from recollect.ports.store import Owners
from recollect.types import Sort


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A listing as a store sees it.

    ``after`` is the position behind which to go on: the value of ``filters.sort_value`` and the number of the last
    memory taken. ``as_of`` is a sequence: the store as it was when that version had just been written. ``sort`` is one
    of ``filters.STORED_ORDERS``.
    """

    owners: Owners
    where: Where
    sort: Sort = Sort.NEWEST
    limit: int | None = None
    offset: int = 0
    after: tuple[float, int] | None = None
    as_of: int | None = None
