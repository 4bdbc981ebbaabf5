"""What working memory and context windows ask of the encryption of their snapshots. Keys are the engine's matter."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from wellkept.errors import KeyUnavailable

MARK = "\x1fencrypted:"
"""How an encrypted text begins. No JSON, key or name does; a plain text that does is encrypted with the others."""


class SnapshotCipher(ABC):
    """Encrypts parts of the snapshots of one agent, each bound to its place in them, and decides which ones."""

    @property
    @abstractmethod
    def everything(self) -> bool:
        """Whether all parts are encrypted, sensitive or not."""

    @abstractmethod
    def check(self) -> None:
        """Raise ``KeyUnavailable`` if what is marked as sensitive could not be encrypted."""

    @abstractmethod
    def covers(self, marked: bool | None, read: Callable[[], object]) -> bool:
        """Whether a part is encrypted: by its mark, or without one by what ``read`` gives of it. ``KeyUnavailable`` if
        it is marked and there is no key.
        """

    def batch(self) -> "SnapshotCipher":
        """The same for one snapshot, and not to be kept: it may look a key up once for all parts."""
        return self

    @abstractmethod
    def encrypt(self, told: Mapping[str, Any], *place: str) -> str:
        """Fields as an encrypted text that belongs to a place."""

    @abstractmethod
    def decrypt(self, text: str, *place: str) -> dict[str, Any]:
        """The fields of an encrypted text; ``KeyUnavailable`` without its key, ``Tampered`` if it was altered."""


class NoCipher(SnapshotCipher):
    """For working memory and windows of no database: there are no keys, so nothing can be marked as sensitive.

    >>> NO_CIPHER.covers(None, lambda: "tea")
    False
    """

    @property
    def everything(self) -> bool:
        """Nothing is encrypted."""
        return False

    def check(self) -> None:
        """There are no keys."""
        self._refuse()

    def covers(self, marked: bool | None, read: Callable[[], object]) -> bool:  # noqa: ARG002
        """Nothing is encrypted, and nothing marked is written in the clear."""
        if marked:
            self._refuse()
        return False

    def encrypt(self, told: Mapping[str, Any], *place: str) -> str:  # noqa: ARG002
        """There are no keys."""
        self._refuse()

    def decrypt(self, text: str, *place: str) -> dict[str, Any]:  # noqa: ARG002
        """There are no keys."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise KeyUnavailable(
            "what is sensitive needs a key, and this is no part of a database that has one",
            details={"field": "sensitive"},
            hint="use memories.agent(...) of a database with a keyring, made by 'wellkept keys init'",
        )


NO_CIPHER = NoCipher()
