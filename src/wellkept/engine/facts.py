"""Finding facts: by any of their parts, as they held at one time and were known at another."""

from datetime import datetime

from wellkept import codec, filters
from wellkept.engine.core import Engine
from wellkept.engine.drafts import folded
from wellkept.engine.sealing import readable
from wellkept.types import Memory, Owners, Position, Stored


def find(
    engine: Engine,
    owners: Owners,
    parts: dict[str, str | None],
    *,
    valid_at: datetime | None,
    at: Position | None,
    now: datetime,
    history: bool,
) -> list[Memory]:
    """The facts that have the given parts and held at a time (by default, then), the most certain first.

    Of equally certain ones the newest comes first; those of unknown certainty come last. What was superseded held once,
    so it is looked at as well. With ``history``, whenever it held.
    """
    wanted = {name: folded(part) for name, part in parts.items() if part is not None}
    moment, current = codec.to_micros(now if valid_at is None else valid_at), codec.to_micros(now)
    ids = [
        one.id
        for one in engine.journal.scan(owners, at=at, payload=False)
        if _has(one, wanted) and filters.visible_at(one, current) and (history or _held(one, moment))
    ]
    found = [memory for _, memory in readable(engine.journal.get(owners, ids, at=at))] if ids else []
    return sorted(found, key=lambda one: (one.confidence is None, -(one.confidence or 0), -one.occurred_at.timestamp()))


def _has(stored: Stored, wanted: dict[str, str]) -> bool:
    fact = stored.facets.get("fact")
    if not isinstance(fact, dict):  # written by hand, perhaps: reading the memory itself tells that it is damaged
        return False
    return all(folded(str(fact.get(name, ""))) == part for name, part in wanted.items())


def _held(stored: Stored, moment: int) -> bool:
    fact = stored.facets["fact"]
    start, end = fact.get("valid_from", stored.facets["occurred_at"]), fact.get("valid_until")
    return isinstance(start, int) and start <= moment and (end is None or (isinstance(end, int) and moment < end))
