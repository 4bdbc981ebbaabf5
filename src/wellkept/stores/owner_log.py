"""The versions of one owner in RAM, and what follows from them."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from wellkept.ports import Counters
from wellkept.types import Operation, Stamp, Stored

_SEQ = attrgetter("seq")


class Accesses(NamedTuple):
    """How often a memory was read, and when last."""

    times: int
    last_at: int


class OwnerLog:
    """The versions of one owner, and what follows from them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: list[Stored] = []  # by sequence; of an erased memory only the last tombstone
        self.heads: dict[str, Stored] = {}  # tombstones too; in the order of recording
        self.keys: dict[str, str] = {}
        self.counters = Counters()
        self.revision = 0

    def take(self, one: Stored) -> None:
        """Take in one version."""
        before = self.heads.get(one.id)
        if before is not None and (key := before.facets.get("key")) is not None and self.keys.get(key) == one.id:
            del self.keys[key]
        if (key := one.facets.get("key")) is not None:
            self.keys[key] = one.id
        self.heads[one.id] = one
        self.versions.append(one)

    def forget(self, erased: set[str]) -> None:
        """Drop every version of erased memories but their last tombstones."""
        self.versions = [one for one in self.versions if one.id not in erased or one is self.heads[one.id]]

    def rewrite(self, others: Mapping[tuple[str, Stamp], Stored]) -> None:
        """Put other facets, payloads and reasons in the place of those of versions with these stamps."""
        self.versions = [_rewritten(one, others.get((one.id, one.stamp))) for one in self.versions]
        self.heads = {name: _rewritten(one, others.get((one.id, one.stamp))) for name, one in self.heads.items()}
        self.keys = {key: name for name, one in self.heads.items() if (key := one.facets.get("key")) is not None}
        self.revision += 1

    def after(self, seq: int) -> Iterator[Stored]:
        """The versions behind a sequence."""
        start = bisect_right(self.versions, seq, key=_SEQ)
        return map(self.versions.__getitem__, range(start, len(self.versions)))

    def upto(self, seq: int) -> list[Stored]:
        """The newest version of each memory up to a sequence, erased ones left out, in the order of recording."""
        past = self.versions[: bisect_right(self.versions, seq, key=_SEQ)]
        newest: dict[str, Stored] = {}
        for one in past:
            newest[one.id] = one  # keeps the place of the first version
        return [one for one in newest.values() if one.operation is not Operation.ERASED]


def _rewritten(one: Stored, other: Stored | None) -> Stored:
    if other is None or other.version != one.version:
        return one
    return one._replace(facets=other.facets, payload=other.payload, reason=other.reason)
