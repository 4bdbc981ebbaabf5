"""Encryption for async code."""

from wellkept.aio.facade import Facade, hop
from wellkept.memories import encryption as sync


class Encryption(Facade[sync.Encryption]):
    """Encryption of an open database, as ``memories.encryption``.

    >>> import asyncio, wellkept.aio
    >>> from wellkept.keyrings.ram import RamKeyring
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
    ...         return (await memories.encryption.check()).fits
    >>> asyncio.run(main())
    True
    """

    init = hop(sync.Encryption.init)
    check = hop(sync.Encryption.check)
    recovery_code = hop(sync.Encryption.recovery_code)
    encrypt = hop(sync.Encryption.encrypt)
    rotate = hop(sync.Encryption.rotate)
