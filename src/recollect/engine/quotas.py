"""The limits of a write: those of the plan, and that of a session."""

from collections.abc import Sequence

from recollect import entitlements, events, layers, logs
from recollect.engine.core import Engine
from recollect.engine.scope import Scope
from recollect.errors import QuotaExceeded
from recollect.types import Layer, Owners, Quota, Write


def append(engine: Engine, scope: Scope, writes: Sequence[Write]) -> None:
    """Append what may grow: only if the memories in scope stay within the plan, and a session within its limit."""
    quotas = []
    if engine.plan is not None and engine.plan.limit_bytes is not None:
        quotas.append(Quota(owners=scope.owners, limit_bytes=engine.plan.limit_bytes))
    session = next((write.owner for write in writes if write.owner.layer is Layer.SESSION), None)
    try:
        if session is None or engine.session_limits is None:
            engine.journal.append(writes, quotas=quotas)
        else:
            engine.session_limits.append(engine, writes, session, quotas)
    except QuotaExceeded as error:
        error.hint = "forget what is not needed for good (permanent=True), or "
        if engine.plan is not None and engine.plan.limit_bytes == error.details["limit"]:
            error.details = {**error.details, "plan": engine.plan.name}
            error.hint += f"leave the plan {engine.plan.name} for a bigger one"
        else:
            error.hint += "give the session more room: session.configure({'limit_bytes': ...})"
        raise


def warn(engine: Engine, owners: Owners) -> None:
    """Tell handlers and the log that little of the plan is left, after a write. The log hears of each percent once."""
    plan = engine.plan
    if plan is None or not plan.limit_bytes:
        return
    used = sum(usage.bytes_used for usage in engine.journal.usage(owners).values())
    if not entitlements.warns(used, plan.limit_bytes):
        return
    percent = 100 * used // plan.limit_bytes
    if engine.note_quota(frozenset(owners), percent):
        logs.quota_near(plan.name, percent, used, plan.limit_bytes)
    if engine.bus.handlers and engine.bus.wants(events.QuotaWarning):
        engine.bus.emit(
            events.QuotaWarning(
                at=engine.clock(),
                plan=plan.name,
                owners=layers.ordered(owners),
                bytes_used=used,
                bytes_limit=plan.limit_bytes,
                percent_used=100.0 * used / plan.limit_bytes,
            )
        )
