"""Whether one store is a copy of another: both journals side by side, to the last byte."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile, zip_longest

from recollect import codec
from recollect.errors import NotACopy
from recollect.ports import Store
from recollect.types import Owner, Version

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


def batches(store: Store, after: int = 0) -> Iterator[list[Version]]:
    """The whole journal behind a sequence, in pieces that fit into memory, until nothing more is there."""
    limit = BATCH
    while batch := store.journal(after=after, limit=limit):
        yield batch
        after = batch[-1].sequence
        size = sum(len(version.memory.content) for version in batch if version.memory)
        limit = max(1, min(BATCH, 2 * len(batch), len(batch) * BATCH_BYTES // max(size, 1)))


def compare(source: Store, target: Store, upto: int, seen: Callable[[Version], None]) -> Sameness:
    """What both hold: the source up to a sequence, the target all of it. ``NotACopy`` where they first differ."""
    digest = hashlib.blake2b(digest_size=16)
    counts: dict[Owner, int] = {}
    known = takewhile(lambda version: version.sequence <= upto, chain.from_iterable(batches(source)))
    copied = chain.from_iterable(batches(target))
    for version, copy in zip_longest(known, copied):
        if version is None:
            raise _differs(copy, "only in the target")
        told = codec.encode_version(version)
        if copy is None or codec.encode_version(copy) != told:
            raise _differs(version, "not the same in the target" if copy else "not in the target")
        digest.update(len(told).to_bytes(8, "big") + told)
        counts[version.owner] = counts.get(version.owner, 0) + 1
        seen(version)
    return Sameness(versions=sum(counts.values()), owners=len(counts), checksum=digest.hexdigest())


def _differs(version: Version, how: str) -> NotACopy:
    return NotACopy(
        f"version {version.version} of memory {version.memory_id!r} is {how}",
        details={"memory_id": version.memory_id, "version": version.version},
        hint="convert into a new place, and let nobody else write to it meanwhile",
    )
