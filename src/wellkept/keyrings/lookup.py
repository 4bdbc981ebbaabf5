"""Keys that have to be there: to read what is encrypted, and to write it."""

from wellkept.errors import KeyUnavailable
from wellkept.ports import Keyring, OwnerKey
from wellkept.types import Owner


def opening_key(keyring: Keyring | None, owner: Owner, key_id: str, *, what: str, **details: str) -> OwnerKey:
    """The key of an owner that ``what`` was encrypted with.

    >>> from wellkept.types import Layer
    >>> opening_key(None, Owner(Layer.USER, ("ada",)), "k1", what="the snapshot")
    Traceback (most recent call last):
    wellkept.errors.KeyUnavailable: the key 'k1' of the snapshot is not available: no keyring was given (open ...
    """
    key = None if keyring is None else keyring.key(owner, key_id)
    if key is None:
        why = "no keyring was given" if keyring is None else "it is not in the keyring, or was destroyed"
        raise KeyUnavailable(
            f"the key {key_id[:64]!r} of {what} is not available: {why}",
            details={**details, "key_id": key_id[:64]},
            hint="open the database with the keyring that belongs to it; 'wellkept keys check' tells more",
        )
    return key


def writing_keyring(keyring: Keyring | None) -> Keyring:
    """The keyring that something encrypted is to be written with."""
    if keyring is None:
        raise KeyUnavailable(
            "this database is encrypted, and no keyring was given to write with",
            hint="open it with keyring=, or set WELLKEPT_KEYRING and WELLKEPT_MASTER_KEY",
        )
    return keyring
