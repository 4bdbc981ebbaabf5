"""What encrypting and checking a database tells."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionReport:
    """What was encrypted: by a key for the first time, or by another one than before. ``remains`` says where bytes of
    what was plain may still be.

    >>> EncryptionReport(owners=1, memories=2, versions=3).remains
    ()
    """

    owners: int = 0
    memories: int = 0
    versions: int = 0
    remains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCheck:
    """Whether the keys fit: how many keys the keyring has, how many memories are encrypted, and the ids of those that
    do not open.

    >>> KeyCheck(keyring="5f3a", keys=2, encrypted=10, plain=3).fits
    True
    """

    keyring: str
    keys: int
    encrypted: int
    plain: int
    failed: tuple[str, ...] = ()
    recovery: bool | None = None

    @property
    def fits(self) -> bool:
        """Whether everything opens, and the recovery code, if one was given, is the right one."""
        return not self.failed and self.recovery is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotation:
    """What was rotated: the keys that a new master key wraps, and what was encrypted anew by new data keys. A new
    master key has a new recovery code.

    >>> KeyRotation(wrapped=3).retired
    0
    """

    wrapped: int = 0
    encrypted: EncryptionReport = EncryptionReport()
    retired: int = 0
    recovery_code: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysMade:
    """A new keyring: where it is, where its master key is (``None``: in the environment), and the code that brings the
    master key back. Keep the code apart from both.

    >>> KeysMade(keyring="memory.db.keys", master_key_file=None, recovery_code="AAAA-BBBB")
    KeysMade(keyring='memory.db.keys', master_key_file=None)
    """

    keyring: str
    master_key_file: str | None
    recovery_code: str = field(repr=False)
