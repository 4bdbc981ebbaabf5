"""Keeps an index in step with the journal: what was written since is taken in, or everything is loaded anew."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from wellkept.errors import PositionLost, StoreCorrupt, WellkeptError
from wellkept.ports import Index, Journal, positions
from wellkept.ports.positions import Reached
from wellkept.types import Mark, Owner, State, Stored, Vector

_TAIL = 10_000
"""Versions: further behind than this, loading everything is sooner done."""


def fresh(journal: Journal, index: Index, marks: Mapping[Owner, Mark]) -> frozenset[Owner]:
    """Bring the index up to date with the journal, whose marks were just read; the owners that have anything."""
    for owner, mark in marks.items():
        if index.followed(owner) != mark:
            with index.following(owner):
                _catch_up(journal, index, owner)
    return frozenset(marks)


def forget(journal: Journal, index: Index, owners: Iterable[Owner]) -> None:
    """Follow at once where something was erased: an index may keep what it holds where the store removes nothing. One
    that does not answer follows with the next search.
    """
    with suppress(WellkeptError):
        fresh(journal, index, journal.marks({owner for owner in owners if index.followed(owner) is not None}))


def stored_dimension(settings: Mapping[str, str], missing: int) -> int:
    """The dimension of the stored vectors, by the settings of the store; ``missing`` before there were any."""
    try:
        return int(settings.get("dimension", missing))
    except (TypeError, ValueError) as error:
        raise StoreCorrupt(
            "the setting 'dimension' is damaged",
            details={"field": "dimension"},
            hint="restore a backup, or embed the memories anew: by another embedder, and then by this one again",
        ) from error


def _catch_up(journal: Journal, index: Index, owner: Owner) -> None:
    """Take in the tail of the journal. The mark is read first: what is written meanwhile is taken in again by the next
    search, which changes nothing.
    """
    mark, known = journal.marks({owner}).get(owner, Mark()), index.followed(owner)
    if known == mark:
        return  # another search was faster
    if known is not None and known.revision == mark.revision and 0 <= mark.seq - known.seq <= _TAIL:
        try:
            _follow(journal, index, owner, known, mark)
        except PositionLost:
            pass  # the journal was replaced by another one
        else:
            return
    stored = journal.scan({owner}, vectors=True)
    index.load(owner, _active(stored), stored_dimension(journal.settings(), 0), mark)


def _follow(journal: Journal, index: Index, owner: Owner, known: Mark, mark: Mark) -> None:
    after = positions.encode(journal.settings()["epoch"], {owner: Reached(known.seq)})
    changed = [memory_id for _, memory_id in journal.changed({owner}, after=after)]
    stored = list(_active(journal.get({owner}, changed, vectors=True)))
    stored.sort(key=lambda one: one.born)  # conversations are linked in the order of recording
    active = {one.id for one in stored}
    index.follow(owner, stored, [one for one in changed if one not in active], mark)


def _active(stored: Iterable[Stored]) -> Iterable[Stored]:
    return (_checked(one) for one in stored if one.facets["state"] == State.ACTIVE)


def _checked(one: Stored) -> Stored:
    """Refuse a vector that is no whole numbers: no checksum is kept of it."""
    vector = one.vector
    if vector is None or (vector.data and len(vector.data) % _row_bytes(vector) == 0 and len(vector.pieces) % 2 == 0):
        return one
    raise StoreCorrupt(
        f"the vector of memory {one.id!r} is damaged",
        details={"memory_id": one.id},
        hint="run doctor with repair=True, or embed the memories anew: memories.reembed()",
    )


def _row_bytes(vector: Vector) -> int:
    return 4 * max(1, len(vector.spans))
