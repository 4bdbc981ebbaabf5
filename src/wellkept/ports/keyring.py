"""The port for keys: what encrypts the memories of each owner, kept apart from the store and its copies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from wellkept.errors import Unsupported
from wellkept.types import Component, Owner


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """A key of an owner. ``secret`` encrypts, and a later key of the owner replaces it; ``blind`` makes the keyed
    hashes that filters compare, and is the same for all keys of an owner. Neither is ever shown.

    >>> OwnerKey("k1", bytes(32), bytes(32))
    OwnerKey(id='k1')
    """

    id: str
    secret: bytes = field(repr=False)
    blind: bytes = field(repr=False)


class Keyring(ABC):
    """Random data keys of owners, wrapped by a master key. Whoever destroys an owner's keys makes everything unreadable
    that they encrypted, in every copy. So a keyring is kept apart from the store: in a file beside it, a key service or
    another database, never in the store's backups and exports.

    Methods may be called from many threads and processes. A key that cannot be unwrapped raises ``KeyUnavailable``;
    one that was altered, ``Tampered``.
    """

    id: str
    """Names the keyring, so that a store can tell which one it needs."""

    @abstractmethod
    def key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        """The current key of an owner, or the one of an id; ``None`` if there is none, or it was destroyed."""

    @abstractmethod
    def create(self, owner: Owner) -> OwnerKey:
        """The current key of an owner, made if there is none: by one process, however many ask."""

    @abstractmethod
    def renew(self, owner: Owner) -> OwnerKey:
        """A new current key with the same ``blind``. The ones before stay readable until they are retired."""

    @abstractmethod
    def retire(self, owner: Owner) -> int:
        """Remove all keys of an owner but the current one, durably; how many. Nothing may be encrypted by them."""

    @abstractmethod
    def destroy(self, owner: Owner) -> int:
        """Remove every key of an owner, durably; how many. What they encrypted can never be read again."""

    @abstractmethod
    def owners(self) -> Iterator[Owner]:
        """Everybody who has a key."""

    @abstractmethod
    def signing_seed(self) -> bytes:
        """The 32 bytes that the keyring's Ed25519 signatures are made with; made once, wrapped as data keys are."""

    @abstractmethod
    def rotate(self) -> int:
        """Go over to a new master key, and wrap every key with it; how many. Data keys stay the same, and reads go on.
        If it is killed at any moment, the keyring still opens, and another call completes it.
        """

    @abstractmethod
    def check(self) -> int:
        """Unwrap every key with the master key; how many there are. ``KeyUnavailable`` or ``Tampered`` if one fails."""

    def recovery_code(self) -> str:
        """The master key as a code for a safe, where whoever keeps it gives it away."""
        raise Unsupported(
            "the keyring does not give its master key away",
            details={"capability": "recovery_code"},
            hint="keep a copy of it as its service says",
        )

    def health(self) -> Component:
        """Whether keys can be had now."""
        self.signing_seed()
        return Component()
