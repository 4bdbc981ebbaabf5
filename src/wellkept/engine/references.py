"""References must lead somewhere: to memories that the caller can see."""

from collections.abc import Iterable, Sequence

from wellkept import codec
from wellkept.engine.core import Engine
from wellkept.errors import InvalidInput
from wellkept.types import Memory, Owners, State, Stored


def check(engine: Engine, owners: Owners, ids: Iterable[str]) -> None:
    """Refuse references to what does not exist, is somebody else's, was forgotten or has expired.

    An archived memory may be referred to: it is kept, and ``restore`` brings it back.
    """
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return
    known = {one.id for one in standing(engine, owners, wanted)}
    for id in wanted:
        if id not in known:
            raise InvalidInput(
                f"references contains {id[:64]!r}, which names no memory that is visible here",
                details={"field": "references", "memory_id": id[:64]},
                hint="name memories that this view can get, or pass dangling=True to keep references to others",
            )


def standing(engine: Engine, owners: Owners, ids: Sequence[str]) -> list[Stored]:
    """The memories of some ids that others may refer to, without their payloads."""
    now = codec.to_micros(engine.clock())
    return [one for one in engine.journal.get(owners, ids, payload=False) if _stands(one, now)]


def of(memories: Sequence[Memory]) -> list[str]:
    """All ids that some memories refer to."""
    return [id for memory in memories for id in memory.references]


def _stands(stored: Stored, now: int) -> bool:
    ends = stored.facets.get("expires_at")
    return stored.facets["state"] not in _AWAY and (ends is None or ends > now)


_AWAY = frozenset({State.FORGOTTEN, State.QUARANTINED, State.MOVED})
