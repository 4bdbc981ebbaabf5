"""Hash chains: entries of a log of which each holds the hash of the one before, so that a change is found.

Whoever can rewrite the whole log can forge it. So that the end cannot be cut off unseen either, the last hash is kept
elsewhere as well: an anchor.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from wellkept import codec

GENESIS = "0" * 64
"""What stands in the place of the hash before the first entry."""

Entry = Mapping[str, Any]


class Break(NamedTuple):
    """The first entry of a chain that does not fit, by its number, and why."""

    seq: int
    why: str


def linked(body: Mapping[str, Any], seq: int, previous: str) -> dict[str, Any]:
    """An entry of a chain: a body with its number, the hash of the entry before, and its own.

    >>> first = linked({"did": "add"}, 1, GENESIS)
    >>> second = linked({"did": "forget"}, 2, first["hash"])
    >>> broken([first, second]) is None
    True
    >>> broken([first, {**second, "did": "add"}])
    Break(seq=2, why='it was altered')
    >>> broken([second])
    Break(seq=1, why='it is missing')
    """
    entry = {"seq": seq, "previous": previous, **body}
    return {**entry, "hash": digest(entry)}


def line(body: Mapping[str, Any], seq: int, previous: str) -> tuple[bytes, str]:
    """An entry as a line of JSON, and its hash; encoded once.

    >>> data, _ = line({"did": "add"}, 1, GENESIS)
    >>> codec.decode_json(data) == linked({"did": "add"}, 1, GENESIS)
    True
    """
    told = codec.encode_sorted({"seq": seq, "previous": previous, **body})
    found = hashlib.sha256(told).hexdigest()
    return b'%b,"hash":"%b"}\n' % (told[:-1], found.encode()), found


def digest(entry: Entry) -> str:
    """The hash of an entry, over everything in it but the hash itself.

    >>> digest({"a": 1, "hash": "x"}) == digest({"a": 1})
    True
    """
    told = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(codec.encode_sorted(told)).hexdigest()


def broken(entries: Iterable[Entry], *, seq: int = 0, previous: str = GENESIS) -> Break | None:
    """Where a chain is broken behind an entry of that number and hash; ``None`` if it is whole.

    >>> broken([])
    """
    for entry in entries:
        seq += 1
        number = entry.get("seq")
        if number != seq:
            return Break(seq, "it is missing" if isinstance(number, int) and number > seq else "its number is wrong")
        if entry.get("hash") != digest(entry):
            return Break(seq, "it was altered")
        if entry.get("previous") != previous:
            return Break(seq, "it does not follow the entry before")
        previous = str(entry["hash"])
    return None
