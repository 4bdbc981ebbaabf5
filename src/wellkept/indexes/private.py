"""Indexes of memories of owners that have keys: an index tells their words and vectors.

So they are searched in RAM where the store's own index keeps both where its server can read them, and the images that a
store keeps of an index in RAM are encrypted.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager

from wellkept import ciphers, codec
from wellkept.errors import Tampered
from wellkept.indexes.ram import RamIndex
from wellkept.indexes.split import SplitIndex
from wellkept.ports import Images, Keyring
from wellkept.ports.index import Index, Key, Near
from wellkept.recall import candidates as gathered
from wellkept.recall.candidates import Candidates
from wellkept.types import Component, Mark, Owner, Owners, Stored

_PREFIX = "encrypted "


class PrivateIndex(SplitIndex):
    """Searches owners that have a key in RAM, and others as the store does."""

    def __init__(self, public: Index, keyring: Keyring) -> None:
        self._public = public
        self._private = RamIndex()
        self._keyring = keyring

    def _is_private(self, owner: Owner) -> bool:
        return self._keyring.key(owner) is not None

    def _of(self, owner: Owner) -> Index:
        return self._private if self._is_private(owner) else self._public

    def _parts(self, owners: Iterable[Owner]) -> list[tuple[Index, Owners]]:
        """Who is to be asked about which owners."""
        wanted = frozenset(owners)
        private = frozenset(filter(self._is_private, wanted))
        parts: list[tuple[Index, Owners]] = [(self._public, wanted - private), (self._private, private)]
        return [(index, some) for index, some in parts if some]

    # -- following --------------------------------------------------------------------------------------------

    def followed(self, owner: Owner) -> Mark | None:
        """How far the owner's index is."""
        return self._of(owner).followed(owner)

    def following(self, owner: Owner) -> AbstractContextManager[object]:
        """The lock of whichever index it is."""
        return self._of(owner).following(owner)

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        """Load an owner where it belongs."""
        self._of(owner).load(owner, stored, dimension, upto)

    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        """Take in what changed."""
        self._of(owner).follow(owner, stored, gone, upto)

    def drop(self, owners: Iterable[Owner] | None = None) -> None:
        """Forget both places."""
        some = None if owners is None else list(owners)
        self._private.drop(some)
        self._public.drop(some)

    # -- searching --------------------------------------------------------------------------------------------

    def candidates(self, *keys: Sequence[Key | Near], beside: Sequence[Key | Near] = ()) -> Candidates:
        """The candidates of both places, each asked for its own: an owner that got its key lately is still in both."""
        private = {owner for owner in {one[0] for some in (*keys, beside) for one in some} if self._is_private(owner)}
        if not private:
            return self._public.candidates(*keys, beside=beside)
        parts = []
        for index, hidden in ((self._private, True), (self._public, False)):
            chosen, near = (
                [_among(some, private, hidden=hidden) for some in keys],
                _among(beside, private, hidden=hidden),
            )
            parts.append(index.candidates(*chosen, beside=near))
        return gathered.joined([part for part in parts if part.count])

    def health(self) -> Component:
        """As the store's index says."""
        return self._public.health()


def _among(found: Sequence[Key | Near], private: AbstractSet[Owner], *, hidden: bool) -> list[Key | Near]:
    return [one for one in found if (one[0] in private) is hidden]


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
