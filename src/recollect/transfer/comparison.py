"""Whether one store is a copy of another: both journals side by side, to the last byte."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

from recollect import codec
from recollect.errors import NotACopy
from recollect.ports import Journal
from recollect.types import JournalPage, Owner, Position, Stored

BATCH = 256
"""How many versions are read and written at once, if they are small."""

BATCH_BYTES = 8 * 1024 * 1024
"""What a batch of larger ones may take, as far as can be told from the batch before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """What two stores both hold, which is everything."""

    versions: int
    owners: int
    checksum: str


def pages(journal: Journal, after: Position | None = None) -> Iterator[JournalPage[Stored]]:
    """The feed behind a position, in pages that fit into memory, until nothing more is there."""
    limit = BATCH
    while page := journal.feed(after=after, limit=limit):
        yield page
        after = page.next
        size = sum(int(one.facets.get("bytes", 0)) for one in page)
        limit = max(1, min(BATCH, 2 * len(page), len(page) * BATCH_BYTES // max(size, 1)))


def encoded(one: Stored) -> bytes:
    """All that a version says but its place, which is its store's: equal bytes mean that nothing was lost."""
    told = (
        codec.encode_owner(one.owner),
        one.id,
        one.version,
        one.operation,
        one.recorded_at,
        one.stamp,
        one.replaced,
        one.reason,
        dict(one.facets),
    )
    return codec.encode_sorted(told) + b"\0" + one.payload


def compare(source: Journal, target: Journal, upto: Position | None, seen: Callable[[], None]) -> Sameness:
    """What both hold: the source up to a position of its feed, the target all of it. ``NotACopy`` where they differ."""
    digest = hashlib.blake2b(digest_size=16)
    counts: dict[Owner, int] = {}
    late: set[str] | None = None
    known, copied = (chain.from_iterable(pages(journal)) for journal in (source, target))
    for one, copy in zip_longest(known, copied):
        if one is None:
            raise _differs(copy, "only in the target")
        told = encoded(one)
        if copy is None or encoded(copy) != told:
            late = _stamps(source, upto) if late is None else late
            if copy is None and one.stamp in late:
                continue  # written since the copy was made
            raise _differs(one, "not the same in the target" if copy else "not in the target")
        digest.update(len(told).to_bytes(8, "big") + told)
        counts[one.owner] = counts.get(one.owner, 0) + 1
        seen()
    return Sameness(versions=sum(counts.values()), owners=len(counts), checksum=digest.hexdigest())


def _stamps(source: Journal, after: Position | None) -> set[str]:
    return {one.stamp for page in pages(source, after) for one in page}


def _differs(one: Stored, how: str) -> NotACopy:
    return NotACopy(
        f"version {one.version} of memory {one.id!r} is {how}",
        details={"memory_id": one.id, "version": one.version},
        hint="convert into a new place, and let nobody else write to it meanwhile",
    )
