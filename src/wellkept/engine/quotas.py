"""The limits of a write: those of the plan, and that of a session.

A plan's limit holds for each agent: its own memories, its user's and those of the user's sessions count together. Each
project, team, org and company has the limit for itself. Which owners count together follows from the owners alone, so
that it is the same from every view.
"""

from collections.abc import Iterable, Iterator, Sequence

from wellkept import entitlements, events, layers, logs
from wellkept.engine.core import Engine
from wellkept.engine.journal import BOOKKEEPING, EngineJournal
from wellkept.errors import QuotaExceeded
from wellkept.types import Layer, Owner, Owners, Quota, Write

_OWN = frozenset({Layer.AGENT, Layer.USER, Layer.SESSION})
_PAGE = 1_000


def _journal(engine: Engine) -> EngineJournal:
    return EngineJournal(engine.shared, BOOKKEEPING)


def counted_together(engine: Engine, owners: Iterable[Owner]) -> list[frozenset[Owner]]:
    """The sets of owners that some owners share a limit with.

    A user's memories and those of the user's sessions count for every agent of that user, so there is one set for each.
    """
    given = frozenset(owners)
    found = [frozenset({owner}) for owner in given if owner.layer not in _OWN]
    for user in sorted({owner.ids[0] for owner in given if owner.layer in _OWN}):
        own = {owner for owner in given if owner.layer in _OWN and owner.ids[0] == user}
        agents = {owner for owner in own if owner.layer is Layer.AGENT}
        shared = frozenset({Owner(Layer.USER, (user,)), *_listed(engine, Layer.SESSION, user), *(own - agents)})
        if own - agents:
            agents.update(_listed(engine, Layer.AGENT, user))
        found += [shared | {agent} for agent in agents] or [shared]
    return found


def _listed(engine: Engine, layer: Layer, user: str) -> Iterator[Owner]:
    """The owners of a layer that belong to a user: they stand together in the order of all owners."""
    last = Owner(layer, (user, ""))
    while True:
        page = _journal(engine).owners(after=last, limit=_PAGE)
        for owner in page:
            if owner.layer is not layer or owner.ids[0] != user:
                return
            yield owner
        if len(page) < _PAGE:
            return
        last = page[-1]


def fullest(engine: Engine, owners: Iterable[Owner]) -> tuple[int, Owners]:
    """Of the sets that count together, the one with most bytes, and how many."""
    pools = counted_together(engine, owners)
    usage = _journal(engine).usage(frozenset().union(*pools))
    used = [(sum(usage[owner].bytes_used for owner in pool if owner in usage), pool) for pool in pools]
    return max(used, key=lambda one: one[0])


def of_plan(engine: Engine, writes: Iterable[Write]) -> list[Quota]:
    """The limits of the plan for the owners of some writes."""
    if engine.plan is None or engine.plan.limit_bytes is None:
        return []
    limit, pools = engine.plan.limit_bytes, counted_together(engine, {write.owner for write in writes})
    return [Quota(owners=pool, limit_bytes=limit) for pool in pools]


def append(engine: Engine, writes: Sequence[Write]) -> None:
    """Append what may grow: only if its owners stay within the plan, and each session within its limit."""
    quotas = of_plan(engine, writes)
    try:
        if engine.session_limits is None or all(write.owner.layer is not Layer.SESSION for write in writes):
            engine.journal.append(writes, quotas=quotas)
        else:
            engine.session_limits.append(engine, writes, quotas)
    except QuotaExceeded as error:
        error.hint = "old versions count too; forget what is not needed for good (permanent=True), or "
        if engine.plan is not None and engine.plan.limit_bytes == error.details["limit"]:
            error.details = {**error.details, "plan": engine.plan.name}
            error.hint += f"leave the plan {engine.plan.name} for a bigger one"
        else:
            error.hint += "give the session more room: session.configure({'limit_bytes': ...})"
        raise


def warn(engine: Engine, owners: Iterable[Owner]) -> None:
    """Tell handlers and the log that little of the plan is left, after a write. The log hears of each percent once."""
    plan = engine.plan
    if plan is None or not plan.limit_bytes:
        return
    used, pool = fullest(engine, owners)
    if not entitlements.warns(used, plan.limit_bytes):
        return
    percent = 100 * used // plan.limit_bytes
    if engine.note_quota(frozenset(pool), percent):
        logs.quota_near(plan.name, percent, used, plan.limit_bytes)
    if engine.bus.handlers and engine.bus.wants(events.QuotaWarning):
        engine.bus.emit(
            events.QuotaWarning(
                at=engine.clock(),
                plan=plan.name,
                owners=tuple(sorted(pool, key=lambda owner: (layers.PRECEDENCE[owner.layer], owner.ids))),
                bytes_used=used,
                bytes_limit=plan.limit_bytes,
                percent_used=100.0 * used / plan.limit_bytes,
            )
        )
