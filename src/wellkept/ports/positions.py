"""Positions as text: opaque to callers, resumable, and recognised when they belong to another state of a store."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from wellkept import codec
from wellkept.errors import InvalidInput, PositionLost
from wellkept.types import JournalPage, Owner, Position, Stamp, Stored

_SEQUENCES = range(2**62)
_TIMES = range(*map(codec.to_micros, (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))))


class Reached(NamedTuple):
    """How far a position is in the journal of one owner. ``check`` tells which version had that sequence, and ``at``
    when that was recorded, in microseconds since 1970.
    """

    seq: int
    check: str = ""
    at: int = 0


def check_of(stamp: Stamp) -> str:
    """A short digest of a stamp, by which a position notices that its journal was replaced."""
    return hashlib.blake2s(stamp.encode(), digest_size=4).hexdigest()


def encode(epoch: str, reached: Mapping[Owner, Reached]) -> Position:
    """The position of some owners; owners without versions are left out.

    >>> from wellkept.types import Layer
    >>> ada = Owner(Layer.USER, ("ada",))
    >>> decode(encode("e1", {ada: Reached(7)}), "e1")[ada].seq
    7
    """
    kept = sorted((codec.encode_owner(owner), *one) for owner, one in reached.items() if one.seq)
    return _packed([epoch, kept])


def decode(position: object, epoch: str, field: str = "after") -> dict[Owner, Reached]:
    """How far a position is with each owner.

    ``InvalidInput`` for a text that is no position, ``PositionLost`` for one of another epoch.
    """
    kept = _unpacked(position, epoch, field)
    try:
        return {codec.decode_owner(name): _reached(*one) for name, *one in kept}
    except (TypeError, ValueError) as error:
        raise nonsense(field) from error


def epoch_of(position: object, field: str = "after") -> str:
    """The epoch that a position was made in."""
    return _parsed(position, field)[0]


def along(after: Position | None, page: JournalPage[Stored]) -> list[Position]:
    """The position right behind each version of a page that began behind a position."""
    epoch, _ = _parsed(page.next, "after")
    reached = {} if after is None else decode(after, epoch)
    places = []
    for one in page:
        reached[one.owner] = reached_by(one)
        places.append(encode(epoch, reached))
    return places


def reached_by(one: Stored) -> Reached:
    """How far the journal of an owner is with one of its versions."""
    return Reached(one.seq, check_of(one.stamp), one.recorded_at)


def encode_feed(epoch: str, token: str) -> Position:
    """A position in the feed of all owners; the token is the store's own.

    >>> decode_feed(encode_feed("e1", "42"), "e1")
    '42'
    """
    return _packed([epoch, token])


def decode_feed(position: object, epoch: str) -> str:
    """The token of a position in the feed."""
    token = _unpacked(position, epoch, "after")
    if not isinstance(token, str):
        raise nonsense("after")
    return token


def lost() -> PositionLost:
    """The error for a position that the journal left behind."""
    return PositionLost(
        "the position belongs to another state of the store",
        details={"field": "after"},
        hint="the store was restored or replaced: read everything anew, from the start",
    )


def _reached(seq: Any, check: Any, at: Any) -> Reached:
    whole = type(seq) is int and type(at) is int  # a truth value is none
    if not whole or seq not in _SEQUENCES or at not in _TIMES or not isinstance(check, str):
        raise ValueError("not a sequence, a check and a time")
    return Reached(seq, check, at)


def time_of(position: object, field: str = "as_of") -> int | None:
    """When the last version before a position was recorded; ``None`` if there was none."""
    _, kept = _parsed(position, field)
    try:
        return max((_reached(*one).at for _, *one in kept), default=None)
    except (TypeError, ValueError) as error:
        raise nonsense(field) from error


def _packed(value: object) -> Position:
    return Position(base64.urlsafe_b64encode(codec.encode_json(value)).decode().rstrip("="))


def _unpacked(position: object, epoch: str, field: str) -> Any:
    theirs, kept = _parsed(position, field)
    if theirs != epoch:
        raise lost()
    return kept


def _parsed(position: object, field: str) -> tuple[str, Any]:
    try:
        text = position if isinstance(position, str) else "?"
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        theirs, kept = codec.decode_json(data)
    except codec.UNREADABLE as error:
        raise nonsense(field) from error
    if not isinstance(theirs, str):
        raise nonsense(field)
    return theirs, kept


def nonsense(field: str) -> InvalidInput:
    """The error for a text that is no position."""
    return InvalidInput(
        f"{field} is not a position that this library returned",
        details={"field": field},
        hint="pass a position unchanged, such as changes().next or view.position()",
    )
