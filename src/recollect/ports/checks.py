"""What every store checks and does alike."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import Conflict, EmbedderMismatch, InvalidInput, QuotaExceeded
from recollect.types import Sort

if TYPE_CHECKING:
    from recollect.ports.queries import Query
    from recollect.ports.values import Quota, Record
    from recollect.types import Vector

T = TypeVar("T")


def check_record(record: Record, stored: int) -> None:
    """Whether a record follows the version that is stored (0: none)."""
    if record.version != stored + 1:
        raise Conflict(
            f"the {record.kind} {record.name[:64]!r} is at version {stored}, not {record.version - 1}",
            details={"kind": record.kind, "name": record.name[:64], "stored": stored, "expected": record.version - 1},
            hint="read it again, then decide",
        )


def check_vector(vector: Vector, embedder: str, dimension: int) -> None:
    """A store holds the vectors of one embedder only: others cannot be compared with them."""
    if vector.embedder != embedder:
        raise EmbedderMismatch(
            f"the store holds vectors of {embedder!r}, not of {vector.embedder!r}",
            details={"stored": embedder, "given": vector.embedder},
            hint=f"open the store with the embedder {embedder!r}, or run memories.reembed() with the other one",
        )
    if vector.dimension != dimension:
        raise InvalidInput(
            f"vector has {vector.dimension} dimensions, the store's have {dimension}",
            details={"field": "vector", "given": vector.dimension, "expected": dimension},
            hint="use the embedder that the store was filled with",
        )


def check_quota(quota: Quota, before: int, after: int) -> None:
    """Refuse what would leave too much, unless it leaves no more than there was."""
    if after > quota.limit_bytes and after > before:
        raise QuotaExceeded(
            f"the memories would take {after} bytes, the limit is {quota.limit_bytes}",
            details={"usage": before, "needed": after - before, "limit": quota.limit_bytes},
            hint="nothing was written; erase what is not needed (forget with permanent=True), or raise the limit",
        )


def taken(found: Iterable[tuple[float, int, T]], query: Query) -> list[T]:
    """What a listing takes of all that matches, in its order; each with its value and its number."""
    sign = 1 if query.sort is Sort.OLDEST else -1
    places = ((value, sign * number, one) for value, number, one in found)
    if query.after is not None:
        last = (query.after[0], sign * query.after[1])
        places = (place for place in places if place[:2] > last)
    if query.limit is None:
        return [one for _, _, one in sorted(places)[query.offset :]]
    first = heapq.nsmallest(query.offset + query.limit, places)  # numbers differ: what they belong to is not compared
    return [one for _, _, one in first[query.offset :]]
