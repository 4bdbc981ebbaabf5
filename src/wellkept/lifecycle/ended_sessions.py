"""The end of a session: which of its memories matter beyond it, and which go."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from wellkept import codec
from wellkept.lifecycle.retention import is_pinned
from wellkept.types import Memory, Owner, SessionEndPolicy, State, Stored, UpkeepAction, UpkeepStep


def matters(stored: Stored, policy: SessionEndPolicy, now: datetime) -> bool:
    """Whether a memory is important or was used often enough to be promoted."""
    return _why(stored, policy) is not None and _is_visible(stored, now)


def promotion(stored: Stored, policy: SessionEndPolicy, into: str) -> UpkeepStep:
    """The step that copies a memory to its user."""
    return _step(stored, UpkeepAction.PROMOTE, _why(stored, policy) or "", into)


def deletions(
    found: Iterable[Stored], policy: SessionEndPolicy, held: Callable[[Stored], object], ended: datetime
) -> Iterator[UpkeepStep]:
    """The steps that take what is left of a session: all but what is pinned or held."""
    action = UpkeepAction.ERASE if policy.permanent else UpkeepAction.FORGET
    for stored in found:
        gone = stored.facets["state"] == State.FORGOTTEN and not policy.permanent
        if stored.facets["state"] == State.QUARANTINED:
            continue  # whoever put it there decides
        if not gone and not is_pinned(stored) and held(stored) is None:
            yield _step(stored, action, f"the session ended at {ended:%Y-%m-%d %H:%M} UTC")


def promoted(source: Memory, owner: Owner, id: str, now: datetime) -> Memory:
    """A memory of a session as its user's own. Keys belong to the session, and so does what it replaced there."""
    return replace(
        source,
        id=id,
        owner=owner,
        created_at=now,
        updated_at=now,
        version=1,
        derived_from=(source.id,),
        key=None,
        fact=None,
        supersedes=(),
        access_count=0,
        last_accessed_at=None,
        vector=None,
    )


def _why(stored: Stored, policy: SessionEndPolicy) -> str | None:
    importance = float(stored.facets["importance"])
    if policy.promote_importance is not None and importance >= policy.promote_importance:
        return f"importance {importance:g}, promoted from {policy.promote_importance:g}"
    if policy.promote_uses is not None and stored.access_count >= policy.promote_uses:
        return f"read {stored.access_count} times, promoted from {policy.promote_uses}"
    return None


def _is_visible(stored: Stored, now: datetime) -> bool:
    expires_at = stored.facets.get("expires_at")
    alive = expires_at is None or int(expires_at) > codec.to_micros(now)
    return alive and State(stored.facets["state"]) is State.ACTIVE


def _step(stored: Stored, action: UpkeepAction, reason: str, into: str | None = None) -> UpkeepStep:
    return UpkeepStep(
        memory_id=stored.id,
        owner=stored.owner,
        version=stored.version,
        state=State(stored.facets["state"]),
        action=action,
        reason=reason,
        bytes_used=int(stored.facets["bytes"]),
        into=into,
    )
