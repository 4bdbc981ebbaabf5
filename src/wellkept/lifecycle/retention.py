"""Retention: which memories of an owner a policy archives, forgets or erases."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from wellkept import codec, filters
from wellkept.lifecycle import decay
from wellkept.types import DecayPolicy, Owner, RetentionPolicy, State, Stored, UpkeepAction, UpkeepStep

IDLE_DAYS = 30
"""A memory that was written or read within so many days is not archived, however little it counts."""

_DAY = 86_400_000_000  # microseconds


def steps(
    found: Iterable[Stored],
    policy: RetentionPolicy,
    held: Callable[[Stored], object],
    now: datetime,
    fading: DecayPolicy = decay.USUAL,
) -> Iterator[UpkeepStep]:
    """What the policy does to some memories of an owner: those past their age or faded, and not exempt or held.

    The age of a memory counts from its last version: what was changed or restored is young again, and what was
    forgotten counts from then on. ``fading`` says how the memories decay.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    ...     stored = list(memories._engine.journal.scan({memory.owner}))
    >>> later = memory.created_at + timedelta(days=400)
    >>> [step.action.value for step in steps(stored, RetentionPolicy.default(), lambda one: None, later)]
    ['forget']
    """
    micros = codec.to_micros(now)
    long_term, forgotten = _micros(policy.long_term_age), _micros(policy.forgotten_age)
    irrelevance: dict[Owner, Callable[[Stored], float]] = {}
    for stored in found:
        state, age = State(stored.facets["state"]), micros - stored.recorded_at
        if state is State.QUARANTINED:  # somebody decides on it
            continue
        limit = forgotten if state is State.FORGOTTEN else long_term
        taken: tuple[UpkeepAction, str] | None = None
        if limit is not None and age >= limit:
            gone = state is State.FORGOTTEN
            why = f"{'forgotten' if gone else 'not written'} for {_span(age)}, kept for {_span(limit)}"
            taken = UpkeepAction.ERASE if gone else UpkeepAction.FORGET, why
        elif policy.archive_below is not None and stored.owner.layer not in policy.exempt_layers:
            if stored.owner not in irrelevance:
                irrelevance[stored.owner] = decay.irrelevance_of(now, {stored.owner: fading})
            taken = _faded(stored, state, -irrelevance[stored.owner](stored), policy.archive_below, micros)
        if taken is None or held(stored) is not None:
            continue
        if taken[0] is UpkeepAction.RESTORE or not is_exempt(stored, policy):
            yield _step(stored, state, *taken)


def _faded(
    stored: Stored, state: State, relevance: float, threshold: float, now: int
) -> tuple[UpkeepAction, str] | None:
    """Archive what hardly counts any more and is idle; bring back what was read after it was archived."""
    read_at = stored.last_accessed_at or 0
    if state is State.ARCHIVED and read_at > stored.recorded_at:
        return UpkeepAction.RESTORE, "read after it was archived"
    if state is State.ACTIVE and relevance < threshold and now - max(stored.recorded_at, read_at) >= IDLE_DAYS * _DAY:
        return UpkeepAction.ARCHIVE, f"relevance {relevance:.3f}, archived below {threshold:g}"
    return None


def _step(stored: Stored, state: State, action: UpkeepAction, reason: str) -> UpkeepStep:
    return UpkeepStep(
        memory_id=stored.id,
        owner=stored.owner,
        version=stored.version,
        state=state,
        action=action,
        reason=reason,
        bytes_used=int(stored.facets["bytes"]),
    )


def is_exempt(stored: Stored, policy: RetentionPolicy) -> bool:
    """Whether a memory stays whatever its age: it is important, pinned, or has an exempt tag."""
    facets = stored.facets
    if policy.exempt_importance is not None and facets["importance"] >= policy.exempt_importance:
        return True
    if is_pinned(stored):
        return True
    tags = tuple(facets.get("tags", ()))
    return any(filters.tagged(tags, wanted) for wanted in policy.exempt_tags)


def is_pinned(stored: Stored) -> bool:
    """Whether a memory has ``metadata={"pinned": True}``."""
    return stored.facets.get("fields", {}).get("pinned") is True


def _span(micros: int) -> str:
    return f"{micros // _DAY} days" if micros >= _DAY else str(timedelta(microseconds=micros))


def _micros(age: timedelta | str | None) -> int | None:
    return None if age is None else filters.relative(age) // timedelta(microseconds=1)
