"""API keys for async code."""

from wellkept.aio.facade import Facade, hop
from wellkept.memories import api_keys as sync


class ApiKeys(Facade[sync.ApiKeys]):
    """The API keys of an open database, as ``memories.keys``.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         made = await memories.keys.create("ci", owners=None)
    ...         return (await memories.keys.grant_of(made.token)).need.value
    >>> asyncio.run(main())
    'read'
    """

    create = hop(sync.ApiKeys.create)
    list = hop(sync.ApiKeys.list)
    revoke = hop(sync.ApiKeys.revoke)
    grant_of = hop(sync.ApiKeys.grant_of)
