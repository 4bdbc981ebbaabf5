"""Whether one store is a copy of another: the journals of each owner side by side, to the last byte."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from wellkept import codec
from wellkept.errors import NotACopy
from wellkept.ports import Journal
from wellkept.types import JournalPage, Owner, Position, Stored

BATCH = 256
"""How many versions are read and written at once, if they are small."""

BATCH_BYTES = 8 * 1024 * 1024
"""What a batch of larger ones may take, as far as can be told from the batch before."""

Pages = Iterator[JournalPage[Stored]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """What two stores both hold, which is everything."""

    versions: int
    owners: int
    checksum: str


def pages(journal: Journal, after: Position | None = None) -> Pages:
    """The feed behind a position, in pages that fit into memory, until nothing more is there."""
    return _pages(lambda at, limit: journal.feed(after=at, limit=limit), after)


def pages_of(journal: Journal, owner: Owner) -> Pages:
    """The journal of one owner in such pages."""
    return _pages(lambda at, limit: journal.versions({owner}, after=at, limit=limit), None)


def _pages(read: Callable[[Position | None, int], JournalPage[Stored]], after: Position | None) -> Pages:
    limit = BATCH
    while page := read(after, limit):
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
        one.write_id,
        one.reason,
        dict(one.facets),
    )
    return codec.encode_sorted(told) + b"\0" + one.payload


def compare(
    source: Journal,
    target: Journal,
    upto: Position | None,
    seen: Callable[[], None],
    is_erased: Callable[[Stored], bool] = lambda _: False,
) -> Sameness:
    """What both hold: the source up to a position of its feed, the target all of it, but for what is erased.
    ``NotACopy`` where they differ.

    Only the order of each owner's versions is the same in all stores: how a feed puts owners together is the store's.
    """
    digest = hashlib.blake2b(digest_size=16)
    counts: dict[Owner, int] = {}
    late = _Late(source, upto)
    for owner in sorted({*source.owners(), *target.owners()}, key=codec.encode_owner):
        for told in _both(source, target, owner, late, is_erased):
            digest.update(len(told).to_bytes(8, "big") + told)
            counts[owner] = counts.get(owner, 0) + 1
            seen()
    return Sameness(versions=sum(counts.values()), owners=len(counts), checksum=digest.hexdigest())


def _both(
    source: Journal, target: Journal, owner: Owner, late: "_Late", is_erased: Callable[[Stored], bool]
) -> Iterator[bytes]:
    """The versions of an owner, which both must have; but for those at the end that were written since."""
    known, copied = (
        (one for page in pages_of(journal, owner) for one in page if not is_erased(one)) for journal in (source, target)
    )
    for one, copy in zip_longest(known, copied):
        if one is None:
            raise _differs(copy, "only in the target")
        told = encoded(one)
        if copy is None:
            if one.stamp not in late:
                raise _differs(one, "not in the target")
        elif encoded(copy) != told:
            raise _differs(one, "not the same in the target")
        else:
            yield told


class _Late:
    """The stamps of versions behind a position of the feed. It is read only where it is asked for, and further each
    time: others may still be writing.
    """

    def __init__(self, journal: Journal, after: Position | None) -> None:
        self._journal = journal
        self._after = after
        self._stamps: set[str] = set()

    def __contains__(self, stamp: str) -> bool:
        if stamp in self._stamps:
            return True
        for page in pages(self._journal, self._after):
            self._stamps.update(one.stamp for one in page)
            self._after = page.next
            if stamp in self._stamps:
                return True
        return False


def _differs(one: Stored, how: str) -> NotACopy:
    return NotACopy(
        f"version {one.version} of memory {one.id!r} is {how}",
        details={"memory_id": one.id, "version": one.version},
        hint="convert into a new place, and let nobody else write to it meanwhile",
    )
