"""Images of indexes of owners that have a key: encrypted, since an index tells the words and vectors of memories."""

import os
from collections.abc import Mapping

from wellkept import ciphers, codec
from wellkept.errors import Tampered
from wellkept.ports import Images, Keyring
from wellkept.types import Mark, Owner

_PREFIX = "encrypted "


class EncryptedImages(Images):
    """The images of a store, encrypted for owners that have a key; others are kept as they are."""

    def __init__(self, wrapped: Images, keyring: Keyring) -> None:
        self._wrapped = wrapped
        self._keyring = keyring

    def read(self, owner: Owner) -> tuple[Mark, Mapping[str, bytes | memoryview]] | None:
        """An image, opened; none if it is of another key, or was made before the owner had one: it is made anew."""
        kept, key = self._wrapped.read(owner), self._keyring.key(owner)
        if kept is None or key is None:
            return kept
        mark, parts = kept
        opened: dict[str, bytes | memoryview] = {}
        for name, sealed in parts.items():
            if not name.startswith(_PREFIX):
                return None
            plain = name.removeprefix(_PREFIX)
            try:
                opened[plain] = ciphers.decrypt(key.secret, sealed, *_place(owner, mark, plain, key.id))
            except Tampered:
                return None
        return mark, opened

    def write(self, owner: Owner, mark: Mark, parts: Mapping[str, bytes | memoryview]) -> bool:
        """Keep an image, encrypted if its owner has a key."""
        key = self._keyring.key(owner)
        if key is None:
            return self._wrapped.write(owner, mark, parts)
        sealed = {
            f"{_PREFIX}{name}": ciphers.encrypt(
                key.secret, os.urandom(ciphers.NONCE_BYTES), bytes(plain), *_place(owner, mark, name, key.id)
            )
            for name, plain in parts.items()
        }
        return self._wrapped.write(owner, mark, sealed)


def _place(owner: Owner, mark: Mark, name: str, key_id: str) -> tuple[str | int, ...]:
    return "image", codec.encode_owner(owner), mark.seq, mark.revision, name, key_id
