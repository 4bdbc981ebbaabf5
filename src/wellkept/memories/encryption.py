"""Keys of a database: making, checking and rotating them, and encrypting what is there already."""

from dataclasses import replace
from pathlib import Path

from wellkept import plugins, validation
from wellkept.engine import encryption
from wellkept.engine.core import Engine, operation
from wellkept.engine.encryption import Progress
from wellkept.engine.memory_cipher import KEYRING
from wellkept.errors import ConfigurationError, KeyUnavailable, Unsupported
from wellkept.settings.schema import EncryptionSettings
from wellkept.text import plurals
from wellkept.types import EncryptionReport, KeyCheck, KeyRotation, KeysMade, Need


class Encryption:
    """Encryption of an open database, as ``memories.encryption``.

    >>> import wellkept
    >>> from wellkept.keyrings.ram import RamKeyring
    >>> with wellkept.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
    ...     memory = memories.view(user="ada").add("My IBAN is DE89370400440532013000")
    ...     memory.sensitive, memories.encryption.check().encrypted
    (True, 1)
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @operation(Need.ADMIN)
    def init(
        self,
        *,
        keyring: str | Path | None = None,
        master_key_file: str | Path | None = None,
        recover: str | None = None,
    ) -> KeysMade:
        """Make a keyring for the database, and a master key if there is none, and use them from now on.

        Without ``keyring`` it is the file beside the database. The master key comes from the environment variable
        ``WELLKEPT_MASTER_KEY``, or is in ``master_key_file``, by default in the user's folder. ``recover`` is a
        recovery code: the master key is then written anew from it, for a keyring that is there.

        >>> import wellkept
        >>> with wellkept.open("memory.db", embedder=None) as memories:
        ...     made = memories.encryption.init(master_key_file="master.key")
        ...     made.keyring.endswith("memory.db.keys"), memories.encryption.check().fits
        (True, True)
        """
        from wellkept.keyrings import escrow  # lazy: keys are made once
        from wellkept.keyrings.file import FileKeyring  # lazy: as above
        from wellkept.keyrings.master_key import (  # lazy: as above
            VARIABLE,
            EnvironmentMasterKeys,
            FileMasterKeys,
            text_of,
        )

        section = self._section(keyring, master_key_file)
        path = self._path(section)
        masters = plugins.master_keys(section)
        if recover is not None:
            if not isinstance(masters, FileMasterKeys):
                raise ConfigurationError(
                    "the master key is in the environment", details={"field": "recover"}, hint="set it there"
                )
            master = escrow.decode(recover)
            FileKeyring(path, EnvironmentMasterKeys({VARIABLE: text_of(master)})).check()  # before anything is written
            masters.restore(master)
            ring = FileKeyring(path, masters)
        else:
            if path.exists():
                raise ConfigurationError(
                    f"there is a keyring at {str(path)!r} already",
                    details={"path": str(path)},
                    hint="the database uses it; 'wellkept keys check' tells whether it fits",
                )
            self._check_new()
            if isinstance(masters, FileMasterKeys) and not masters.path.exists():
                masters.create()
            ring = FileKeyring.create_file(path, masters)
        self._engine.use_keyring(ring)
        place = str(masters.path) if isinstance(masters, FileMasterKeys) else None
        return KeysMade(keyring=str(path), master_key_file=place, recovery_code=ring.recovery_code())

    def _check_new(self) -> None:
        """Refuse another keyring for a database that has one: it would open nothing any more."""
        if needed := self._engine.journal.settings().get(KEYRING):
            raise KeyUnavailable(
                f"the database is encrypted by the keyring {needed!r}, which is not here",
                details={"needed": needed},
                hint="put its file back, or name it with encryption.keyring; no other one opens the database",
            )

    def _section(self, keyring: str | Path | None, master_key_file: str | Path | None) -> EncryptionSettings:
        section = self._engine.settings.encryption
        if keyring is not None:
            section = replace(section, keyring=str(keyring))
        return section if master_key_file is None else replace(section, master_key_file=str(master_key_file))

    def _path(self, section: EncryptionSettings) -> Path:
        if section.keyring is not None:
            return Path(section.keyring.removeprefix("file:")).expanduser()
        place = self._engine.store.path
        if place is None:
            raise ConfigurationError(
                "the database is in no file that a keyring could be beside",
                details={"field": "keyring"},
                hint="name a file for it, such as keyring='memory.keys'",
            )
        return plugins.keyring_path(place)

    @operation(Need.ADMIN)
    def check(self, *, recovery_code: str | None = None, progress: Progress | None = None) -> KeyCheck:
        """Unwrap every key and open every encrypted version: the drill for the day on which it matters. With a
        ``recovery_code``, whether it would bring the master key back.

        >>> import wellkept
        >>> from wellkept.keyrings.ram import RamKeyring
        >>> with wellkept.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
        ...     memories.encryption.check().fits
        True
        """
        keyring = encryption.keyring_of(self._engine)
        keys = keyring.check()
        recovers = None
        if recovery_code is not None:
            recovers = _letters(recovery_code) == _letters(keyring.recovery_code())
        encrypted, plain, failed = encryption.check(self._engine, progress)
        return KeyCheck(
            keyring=keyring.id, keys=keys, encrypted=encrypted, plain=plain, failed=tuple(failed), recovery=recovers
        )

    @operation(Need.ADMIN)
    def recovery_code(self) -> str:
        """The master key as a code to print and keep in a safe.

        >>> import wellkept
        >>> with wellkept.open("other.db", embedder=None) as memories:
        ...     made = memories.encryption.init(master_key_file="other.key")
        ...     memories.encryption.recovery_code() == made.recovery_code
        True
        """
        return encryption.keyring_of(self._engine).recovery_code()

    @operation(Need.ADMIN)
    def encrypt(self, *, everything: bool = False, progress: Progress | None = None) -> EncryptionReport:
        """Encrypt what is plain and sensitive, or everything, with all former versions. It can be stopped and run
        again; the database can be used meanwhile.

        >>> import wellkept
        >>> from wellkept.keyrings.ram import RamKeyring
        >>> from wellkept.stores.ram import RamStore
        >>> store = RamStore()
        >>> with wellkept.open(store=store, embedder=None, keyring=RamKeyring()) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     memories.encryption.encrypt(everything=True).memories
        1
        """
        validation.flag("everything", everything)
        wanted = everything or self._engine.settings.encryption.encrypt == "all"
        return encryption.encrypt(self._engine, everything=wanted, progress=progress)

    @operation(Need.ADMIN)
    def rotate(self, *, data: bool = False, retire: bool = False, progress: Progress | None = None) -> KeyRotation:
        """Go over to a new master key: data keys are wrapped anew, and no memory changes.

        With ``data``, every owner gets a new data key instead, and memories are encrypted anew; ``retire`` then removes
        the former keys, and with them what older copies of the database hold.

        >>> import wellkept
        >>> from wellkept.keyrings.ram import RamKeyring
        >>> with wellkept.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
        ...     _ = memories.view(user="ada").add("A secret", sensitive=True)
        ...     memories.encryption.rotate().wrapped
        1
        """
        for name, value in (("data", data), ("retire", retire)):
            validation.flag(name, value)
        if retire and not data:
            raise ConfigurationError(
                "there are former keys only where data keys are rotated",
                details={"field": "retire"},
                hint="pass data=True as well",
            )
        keyring = encryption.keyring_of(self._engine)
        if not data:
            wrapped = keyring.rotate()
            try:
                code = keyring.recovery_code()
            except Unsupported:
                code = None
            return KeyRotation(wrapped=wrapped, recovery_code=code)
        report = encryption.renew(self._engine, progress)
        retired = 0
        if retire:
            _, _, failed = encryption.check(self._engine)
            if failed:
                raise KeyUnavailable(
                    f"{plurals.counted(len(failed), 'memory does', 'memories do')} not open; no key was removed",
                    details={"memory_id": failed[0]},
                    hint="run 'wellkept keys check', restore or erase them, then rotate again",
                )
            retired = encryption.retire(self._engine)
        return KeyRotation(encrypted=report, retired=retired)


def _letters(code: str) -> str:
    return "".join(one for one in code.upper() if one.isalnum())
