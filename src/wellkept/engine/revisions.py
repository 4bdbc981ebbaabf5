"""The next version of a memory as a write: what replaces a version, moves it to another state, or erases it."""

from dataclasses import replace
from datetime import datetime

from wellkept import codec, layers
from wellkept.engine.core import Engine
from wellkept.engine.embedding import Made
from wellkept.engine.sealing import seal, unseal
from wellkept.types import Memory, Operation, Owner, Stamp, State, Stored, Write

_NOTHING = Made(None)
Prepared = tuple[Memory, Write]
"""A memory as a write leaves it, and the write."""


def erasure(
    engine: Engine,
    owner: Owner,
    id: str,
    version: int,
    now: datetime,
    *,
    reason: str | None,
    replaced: Stamp | None = None,
) -> Write:
    """The write that erases a memory with all its versions, whether it can be read or not."""
    micros = codec.to_micros(now)
    stamp = engine.stamps.stamp(micros)
    return Write(
        owner=owner,
        id=id,
        version=version + 1,
        expected=version,
        operation=Operation.ERASED,
        stamp=stamp,
        recorded_at=micros,
        replaced=replaced,
        reason=reason,
        write_id=engine.write_id(stamp),
    )


def erasing(engine: Engine, stored: Stored, now: datetime, reason: str | None) -> Write:
    """The write that erases a memory that was read."""
    return erasure(engine, stored.owner, stored.id, stored.version, now, reason=reason, replaced=stored.stamp)


def moved(
    engine: Engine, stored: Stored, state: State, now: datetime, *, operation: Operation, reason: str | None = None
) -> Prepared:
    """A memory in another state, otherwise as it was."""
    forgotten_at = now if state is State.FORGOTTEN else None
    after = layers.with_tier(
        replace(unseal(stored), state=state, forgotten_at=forgotten_at, version=stored.version + 1, updated_at=now)
    )
    return after, changed(engine, after, operation, stored, now, keeps_vector=True, reason=reason)


def restored(engine: Engine, stored: Stored, now: datetime) -> Prepared:
    """A forgotten or archived memory as it was before: active, or superseded."""
    state = State.SUPERSEDED if "superseded_by" in stored.facets else State.ACTIVE
    return moved(engine, stored, state, now, operation=Operation.RESTORED)


def changed(
    engine: Engine,
    memory: Memory,
    operation: Operation,
    before: Stored,
    now: datetime,
    *,
    made: Made = _NOTHING,
    keeps_vector: bool = False,
    reason: str | None = None,
) -> Write:
    """The write that appends a memory's next version."""
    micros = codec.to_micros(now)
    engine.stamps.observe(before.stamp)
    stamp = engine.stamps.stamp(micros)
    write = written(engine, memory, operation, before, stamp, micros=micros, made=made)
    return write._replace(keeps_vector=keeps_vector, reason=reason)


def written(
    engine: Engine,
    memory: Memory,
    operation: Operation,
    before: Stored | None,
    stamp: Stamp,
    *,
    micros: int,
    made: Made,
) -> Write:
    """The next version of a memory, sealed."""
    facets, payload = seal(memory, before)
    return Write(
        owner=memory.owner,
        id=memory.id,
        version=memory.version,
        expected=memory.version - 1,
        operation=operation,
        stamp=stamp,
        recorded_at=micros,
        replaced=before.stamp if before else None,
        facets=facets,
        payload=payload,
        vector=made.vector,
        digest=made.digest,
        given=made.given,
        write_id=engine.write_id(stamp),
    )
