"""The keyring of a database whose keys are about to be made."""

from collections.abc import Iterator
from typing import NoReturn

from wellkept.errors import KeyUnavailable
from wellkept.ports import Keyring, OwnerKey
from wellkept.types import Owner


class AbsentKeyring(Keyring):
    """Has no key and makes none, so that nothing is written as long as it stands in for the real one.

    >>> AbsentKeyring(KeyUnavailable("the keyring is not there")).check()
    Traceback (most recent call last):
    wellkept.errors.KeyUnavailable: the keyring is not there
    """

    id = ""

    def __init__(self, why: KeyUnavailable) -> None:
        self._why = why

    def _refuse(self, *_: object) -> NoReturn:
        raise KeyUnavailable(str(self._why), details=self._why.details, hint=self._why.hint)

    def key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        """Refused."""
        self._refuse(owner, key_id)

    def create(self, owner: Owner) -> OwnerKey:
        """Refused."""
        self._refuse(owner)

    def renew(self, owner: Owner) -> OwnerKey:
        """Refused."""
        self._refuse(owner)

    def retire(self, owner: Owner) -> int:
        """Refused."""
        self._refuse(owner)

    def destroy(self, owner: Owner) -> int:
        """Refused."""
        self._refuse(owner)

    def owners(self) -> Iterator[Owner]:
        """Refused."""
        self._refuse()

    def signing_seed(self) -> bytes:
        """Refused."""
        self._refuse()

    def rotate(self) -> int:
        """Refused."""
        self._refuse()

    def check(self) -> int:
        """Refused."""
        self._refuse()
