"""Privacy and the audit log for async code."""

from wellkept.aio.facade import Facade, hop
from wellkept.memories import audit as sync_audit
from wellkept.memories import privacy as sync


class Privacy(Facade[sync.Privacy]):
    """Erasure and export of an open database, as ``memories.privacy``.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         return (await memories.privacy.erase(user="bob")).counts.memories
    >>> asyncio.run(main())
    0
    """

    plan = hop(sync.Privacy.plan)
    erase = hop(sync.Privacy.erase)
    receipts = hop(sync.Privacy.receipts)
    verify = hop(sync.Privacy.verify)
    ledger = hop(sync.Privacy.ledger)
    export_ledger = hop(sync.Privacy.export_ledger)
    replay = hop(sync.Privacy.replay)
    resume = hop(sync.Privacy.resume)
    export = hop(sync.Privacy.export)


class AuditTrail(Facade[sync_audit.AuditTrail]):
    """Who did what to which memories, as ``memories.audit``.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     settings = {"audit": {"file": "audit.jsonl"}}
    ...     async with wellkept.aio.open("ram:", embedder=None, settings=settings) as memories:
    ...         return (await memories.audit.verify()).valid
    >>> asyncio.run(main())
    True
    """

    list = hop(sync_audit.AuditTrail.list)
    verify = hop(sync_audit.AuditTrail.verify)
    prune = hop(sync_audit.AuditTrail.prune)
