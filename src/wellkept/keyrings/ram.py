"""A keyring that lasts as long as its process: for tests, and for databases in RAM."""

import os
import threading
from collections.abc import Iterator

from wellkept import ciphers
from wellkept.keyrings import wrapping
from wellkept.ports import Keyring, OwnerKey
from wellkept.types import Owner


class RamKeyring(Keyring):
    """Keys in RAM. They are wrapped all the same, so that what it does is what other keyrings do.

    >>> from wellkept.types import Layer
    >>> ring, ada = RamKeyring(), Owner(Layer.USER, ("ada",))
    >>> made = ring.create(ada)
    >>> ring.key(ada) == made, ring.destroy(ada), ring.key(ada)
    (True, 1, None)
    """

    def __init__(self) -> None:
        self.id = os.urandom(8).hex()
        self._lock = threading.Lock()
        self._master = os.urandom(ciphers.KEY_BYTES)
        self._seed = wrapping.wrap_seed(self._master, self.id, os.urandom(ciphers.KEY_BYTES))
        self._kept: dict[Owner, dict[str, bytes]] = {}

    def __repr__(self) -> str:
        return f"<RamKeyring {self.id}>"

    def key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        """The current key, or one by its id."""
        with self._lock:
            return self._key(owner, key_id)

    def _key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        kept = self._kept.get(owner)
        if not kept:
            return None
        wanted = next(reversed(kept)) if key_id is None else key_id
        return wrapping.unwrap(self._master, self.id, owner, wanted, kept[wanted]) if wanted in kept else None

    def create(self, owner: Owner) -> OwnerKey:
        """The current key, made if there is none."""
        with self._lock:
            return self._key(owner) or self._made(owner, wrapping.new_key())

    def renew(self, owner: Owner) -> OwnerKey:
        """A new current key."""
        with self._lock:
            before = self._key(owner)
            return self._made(owner, wrapping.new_key(before.blind if before else None))

    def _made(self, owner: Owner, key: OwnerKey) -> OwnerKey:
        self._kept.setdefault(owner, {})[key.id] = wrapping.wrap(self._master, self.id, owner, key)
        return key

    def retire(self, owner: Owner) -> int:
        """Keep only the current key."""
        with self._lock:
            kept = self._kept.get(owner, {})
            former = list(kept)[:-1]
            for key_id in former:
                del kept[key_id]
            return len(former)

    def destroy(self, owner: Owner) -> int:
        """Drop every key of an owner."""
        with self._lock:
            return len(self._kept.pop(owner, ()))

    def owners(self) -> Iterator[Owner]:
        """Everybody who has a key."""
        with self._lock:
            return iter(list(self._kept))

    def signing_seed(self) -> bytes:
        """The seed, made with the keyring."""
        with self._lock:
            return wrapping.unwrap_seed(self._master, self.id, self._seed)

    def rotate(self) -> int:
        """Wrap everything with another master key."""
        with self._lock:
            fresh, count = os.urandom(ciphers.KEY_BYTES), 0
            for owner, kept in self._kept.items():
                for key_id, wrapped in kept.items():
                    key = wrapping.unwrap(self._master, self.id, owner, key_id, wrapped)
                    kept[key_id] = wrapping.wrap(fresh, self.id, owner, key)
                    count += 1
            self._seed = wrapping.wrap_seed(fresh, self.id, wrapping.unwrap_seed(self._master, self.id, self._seed))
            self._master = fresh
            return count

    def check(self) -> int:
        """Unwrap everything."""
        self.signing_seed()
        with self._lock:
            return sum(self._key(owner, key_id) is not None for owner, kept in self._kept.items() for key_id in kept)
