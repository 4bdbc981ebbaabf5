"""Upkeep for async code."""

from wellkept.aio.facade import Facade, at_once, hop
from wellkept.memories import upkeep as sync


class Upkeep(Facade[sync.Upkeep]):
    """Upkeep of an open database, as ``memories.upkeep``.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         return (await memories.upkeep.run()).forgotten
    >>> asyncio.run(main())
    0
    """

    set_retention = hop(sync.Upkeep.set_retention)
    retention = hop(sync.Upkeep.retention)
    policies = hop(sync.Upkeep.policies)
    clear_retention = hop(sync.Upkeep.clear_retention)
    set_consolidation = hop(sync.Upkeep.set_consolidation)
    consolidation = hop(sync.Upkeep.consolidation)
    consolidation_policies = hop(sync.Upkeep.consolidation_policies)
    clear_consolidation = hop(sync.Upkeep.clear_consolidation)
    set_session_end = hop(sync.Upkeep.set_session_end)
    session_end = hop(sync.Upkeep.session_end)
    session_end_policies = hop(sync.Upkeep.session_end_policies)
    clear_session_end = hop(sync.Upkeep.clear_session_end)
    plan = hop(sync.Upkeep.plan)
    apply = hop(sync.Upkeep.apply)
    run = hop(sync.Upkeep.run)
    runs = hop(sync.Upkeep.runs)
    undo = hop(sync.Upkeep.undo)
    next_due = hop(sync.Upkeep.next_due)
    run_due = hop(sync.Upkeep.run_due)
    start = at_once(sync.Upkeep.start)
    stop = hop(sync.Upkeep.stop)
    hold = hop(sync.Upkeep.hold)
    holds = hop(sync.Upkeep.holds)
    release = hop(sync.Upkeep.release)
