"""Where the master key comes from: a file of its own, or the environment.

A rotation has two keys for a moment: the one in use and the one that it goes over to. Both are candidates, so that a
keyring opens with whichever it is wrapped by.
"""

import base64
import binascii
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from wellkept import ciphers
from wellkept.errors import ConfigurationError, KeyUnavailable
from wellkept.keyrings import private_files

VARIABLE = "WELLKEPT_MASTER_KEY"
NEXT_VARIABLE = "WELLKEPT_NEXT_MASTER_KEY"
_NEXT = ".next"
_LOCK = ".lock"


class MasterKeys(ABC):
    """The source of a master key."""

    @abstractmethod
    def candidates(self) -> Iterator[bytes]:
        """The key in use, then the one that a rotation goes over to."""

    @abstractmethod
    def proposed(self) -> bytes:
        """The key to go over to, kept durably before anything is wrapped with it."""

    @abstractmethod
    def settle(self) -> None:
        """Make the proposed key the one in use."""


class FileMasterKeys(MasterKeys):
    """Master keys in a file that only its user may read: a line for the one in use, then one for each former key.

    Former keys stay, because the keyrings of several databases may share the file, and each of them is rotated by
    itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next = path.with_name(path.name + _NEXT)
        self._lock = path.with_name(path.name + _LOCK)

    def create(self) -> bytes:
        """Write a random key; a file that is there is left as it is."""
        if self.path.exists():
            raise ConfigurationError(
                f"there is a master key at {str(self.path)!r} already",
                details={"path": str(self.path)},
                hint="to change it, run 'wellkept keys rotate'; to use it, leave it where it is",
            )
        made = os.urandom(ciphers.KEY_BYTES)
        self.restore(made)
        return made

    def restore(self, master: bytes) -> None:
        """Write a key that was lost, behind those that are there."""
        private_files.make_folder(self.path.parent)
        with private_files.locked(self._lock):
            self._write([*_kept(self.path), master])

    def candidates(self) -> Iterator[bytes]:
        """What the file holds, then what the file of a rotation holds."""
        for path in (self.path, self._next):
            yield from _kept(path)

    def proposed(self) -> bytes:
        """A random key, in a file beside; the one that is there, if a rotation was killed: its keyring may need it."""
        with private_files.locked(self._lock):
            waiting = _kept(self._next)
            if waiting and waiting[0] not in _kept(self.path):
                return waiting[0]
            made = os.urandom(ciphers.KEY_BYTES)
            private_files.replace(self._next, _lines([made]))
        return made

    def settle(self) -> None:
        """The key of the rotation goes in front of the others."""
        with private_files.locked(self._lock):
            if waiting := _kept(self._next):
                self._write([*waiting, *_kept(self.path)])
                private_files.remove(self._next)

    def _write(self, keys: list[bytes]) -> None:
        private_files.replace(self.path, _lines(dict.fromkeys(keys)))


def _kept(path: Path) -> list[bytes]:
    """The keys in a file; none if there is no file."""
    data = private_files.read(path)
    if data is None:
        return []
    return [parsed(one, str(path)) for one in data.decode("ascii", "replace").split() or [""]]


def _lines(keys: Iterable[bytes]) -> bytes:
    return "".join(text_of(one) + "\n" for one in keys).encode()


class EnvironmentMasterKeys(MasterKeys):
    """A master key in an environment variable; for a rotation, the next one stands in another."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def candidates(self) -> Iterator[bytes]:
        """What the two variables hold."""
        for name in (VARIABLE, NEXT_VARIABLE):
            if text := self._environment.get(name):
                yield parsed(text, name)

    def proposed(self) -> bytes:
        """What the second variable holds."""
        text = self._environment.get(NEXT_VARIABLE)
        if not text:
            raise KeyUnavailable(
                f"{NEXT_VARIABLE} is not set",
                details={"field": NEXT_VARIABLE},
                hint=f"set it to a new key, rotate, then make it {VARIABLE}",
            )
        return parsed(text, NEXT_VARIABLE)

    def settle(self) -> None:
        """Whoever sets the variables does that."""


def text_of(master: bytes) -> str:
    """A master key as a file or a variable holds it.

    >>> parsed(text_of(bytes(32)), "master.key") == bytes(32)
    True
    """
    return base64.b64encode(master).decode()


def parsed(text: str, where: str) -> bytes:
    """A master key that a file or a variable holds."""
    try:
        master = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        master = b""
    if len(master) != ciphers.KEY_BYTES:
        raise ConfigurationError(
            f"{where} holds no master key",
            details={"field": where},
            hint="it is 32 bytes in base64, as 'wellkept keys init' writes it",
        )
    return master
