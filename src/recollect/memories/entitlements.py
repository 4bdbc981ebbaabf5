"""What the plan of a database lets a caller do: all checks of plans in one place. Without a plan everything passes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from recollect import entitlements, events, layers
from recollect.entitlements import Feature
from recollect.errors import QuotaExceeded
from recollect.memories.engine import Actor, Engine, verb
from recollect.memories.reach import Reach
from recollect.types import Layer, Owner, Ranking

if TYPE_CHECKING:
    from recollect.ports import Owners, Quota, Write
    from recollect.window import Strategy  # only agents have a context

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Actor)


def long_term(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a verb of long-term memory: it works only where the plan has that."""
    return verb(method, Feature.LONG_TERM_MEMORY)


def check(engine: Engine, feature: Feature) -> None:
    """Refuse what the plan does not include."""
    entitlements.check(engine.plan, feature)


def allows(engine: Engine, feature: Feature) -> bool:
    """Whether the plan includes a feature."""
    return engine.plan is None or engine.plan.allows(feature)


def compacts(engine: Engine, strategy: "Strategy") -> None:
    """Refuse to sum up a context where the plan leaves that out."""
    if strategy.advanced:
        check(engine, Feature.ADVANCED_COMPACTION)


def searches_by_meaning(engine: Engine, ranking: Ranking) -> bool:
    """Whether vectors take part in a search. Without them it goes by words, unless nearness alone was asked for."""
    if ranking is Ranking.SIMILARITY:
        check(engine, Feature.SEMANTIC_SEARCH)
    return allows(engine, Feature.SEMANTIC_SEARCH)


def apply(engine: Engine, reach: Reach, writes: "Sequence[Write]") -> None:
    """Write what may grow: only if the memories in reach stay within the plan, and a session within its limit."""
    session = next((write.memory.owner for write in writes if write.memory.owner.layer is Layer.SESSION), None)
    try:
        if session is None:
            _apply(engine, reach, writes, None, None)
        else:
            _apply_in_room(engine, reach, writes, session)
    except QuotaExceeded as error:
        plan = engine.plan
        error.hint = "forget what is not needed for good (permanent=True), or "
        if plan is not None and plan.limit_bytes == error.details["limit"]:
            error.details = {**error.details, "plan": plan.name}
            error.hint += f"leave the plan {plan.name} for a bigger one"
        else:
            error.hint += "give the session more room: session.configure({'limit_bytes': ...})"
        raise


def _apply_in_room(engine: Engine, reach: Reach, writes: "Sequence[Write]", session: Owner) -> None:
    """Write into a session, which may have to make room first."""
    from recollect.memories import room  # lazy: many processes write into no session

    entered = room.entered(engine, reach, session, writes)
    if entered is None:
        _apply(engine, reach, writes, None, None)
    else:
        room.fill(engine, entered, lambda limit: _apply(engine, reach, writes, session, limit))


def _apply(engine: Engine, reach: Reach, writes: "Sequence[Write]", session: Owner | None, limit: int | None) -> None:
    """Write within the plan, and within the limit of a session if there is one."""
    limited = engine.plan is not None or limit is not None
    engine.store.apply(writes, quota=_quota(engine, reach, writes, session, limit) if limited else None)


def _quota(
    engine: Engine, reach: Reach, writes: "Sequence[Write]", session: Owner | None, limit: int | None
) -> "Quota | None":
    """What the store is to hold a write to."""
    from recollect.memories import room  # lazy: most writes are not limited
    from recollect.ports import Quota, check_quota  # lazy: as above

    planned = engine.plan.limit_bytes if engine.plan is not None else None
    quota = None if planned is None else Quota(owners=reach.owners, limit_bytes=planned)
    if session is not None and limit is not None:
        own = Quota(owners=frozenset({session}), limit_bytes=limit)
        if quota is None or (quota.owners == own.owners and limit < quota.limit_bytes):
            quota = own
        elif quota.owners != own.owners:
            # A store holds writes to one quota, and that is the plan's: two processes may overrun this one a little.
            used = engine.store.usage(own.owners)
            check_quota(own, used, used + room.growth(engine, session, writes))
    return quota


def warn(engine: Engine, owners: "Owners") -> None:
    """Tell whoever asked for it that little is left, after a write."""
    plan = engine.plan
    if plan is None or not plan.limit_bytes or not engine.bus.handlers or not engine.bus.wants(events.QuotaWarning):
        return
    used = engine.store.usage(owners)
    if entitlements.warns(used, plan.limit_bytes):
        engine.bus.emit(
            events.QuotaWarning(
                at=engine.clock(),
                plan=plan.name,
                owners=tuple(sorted(owners, key=lambda owner: layers.PRECEDENCE[owner.layer])),
                bytes_used=used,
                bytes_limit=plan.limit_bytes,
                percent_used=100.0 * used / plan.limit_bytes,
            )
        )
