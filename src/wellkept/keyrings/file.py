"""A keyring in one file: a line for each wrapped key.

A key is added by appending a line. Whatever removes keys or wraps them anew writes the file again and puts it in the
place of the other, so that after a crash there is the one or the other. Another process sees by the file's number, size
and time that it changed.
"""

import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from wellkept import ciphers, codec
from wellkept.errors import ConfigurationError, KeyUnavailable, StoreCorrupt
from wellkept.keyrings import escrow, private_files, wrapping
from wellkept.keyrings.master_key import MasterKeys
from wellkept.ports import Keyring, OwnerKey
from wellkept.types import Owner

T = TypeVar("T")

_LOCK = ".lock"
_ATTEMPTS = 5  # a rotation may come in between while a keyring and its master key are read
_read_line = codec.reader(dict[str, Any])


class _Seen(NamedTuple):
    """What tells one state of a file from another."""

    number: int
    size: int
    changed_ns: int


@dataclass(slots=True)
class _Kept:
    """What the file holds, and what was unwrapped of it."""

    id: str
    master_id: str
    master: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    keys: dict[Owner, dict[str, bytes]] = field(repr=False)
    unwrapped: dict[tuple[Owner, str], OwnerKey] = field(default_factory=dict, repr=False)
    torn: bool = False

    def key(self, owner: Owner, key_id: str | None) -> OwnerKey | None:
        kept = self.keys.get(owner)
        if not kept:
            return None
        wanted = next(reversed(kept)) if key_id is None else key_id
        if wanted not in kept:
            return None
        known = self.unwrapped.get((owner, wanted))
        if known is None:
            known = wrapping.unwrap(self.master, self.id, owner, wanted, kept[wanted])
            self.unwrapped[owner, wanted] = known
        return known

    def every(self) -> Iterator[tuple[Owner, OwnerKey]]:
        for owner, kept in self.keys.items():
            for key_id, wrapped in kept.items():
                yield owner, wrapping.unwrap(self.master, self.id, owner, key_id, wrapped)


class FileKeyring(Keyring):
    """Keys in a file beside the store, wrapped by a master key from elsewhere.

    >>> from wellkept.keyrings.master_key import FileMasterKeys
    >>> from wellkept.types import Layer
    >>> master = FileMasterKeys(Path("master.key"))
    >>> _ = master.create()
    >>> ring, ada = FileKeyring.create_file(Path("memory.db.keys"), master), Owner(Layer.USER, ("ada",))
    >>> ring.create(ada) == FileKeyring(Path("memory.db.keys"), master).key(ada)
    True
    """

    def __init__(self, path: Path, masters: MasterKeys) -> None:
        self.path = path
        self._masters = masters
        self._guard, self._process = threading.RLock(), os.getpid()
        self._seen: _Seen | None = None
        self._kept: _Kept | None = None
        self.id = _parsed_header(self._bytes().split(b"\n", 1)[0], path)[0]  # the master key is needed for more

    @classmethod
    def create_file(cls, path: Path, masters: MasterKeys) -> "FileKeyring":
        """Write an empty keyring; a file that is there is left as it is."""
        master = next(masters.candidates(), None)
        if master is None:
            raise KeyUnavailable("there is no master key", hint="run 'wellkept keys init', or set WELLKEPT_MASTER_KEY")
        with private_files.locked(path.with_name(path.name + _LOCK)):
            if path.exists():
                raise ConfigurationError(
                    f"there is a keyring at {str(path)!r} already", details={"path": str(path)}, hint="use it"
                )
            ring = os.urandom(8).hex()
            private_files.replace(path, _header(ring, master, os.urandom(ciphers.KEY_BYTES)))
        return cls(path, masters)

    def __repr__(self) -> str:
        return f"<FileKeyring {self.id}>"

    # -- reading ----------------------------------------------------------------------------------------------

    def key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        """The current key, or one by its id."""
        with self._lock():
            return self._current().key(owner, key_id)

    def owners(self) -> Iterator[Owner]:
        """Everybody who has a key."""
        with self._lock():
            return iter(list(self._current().keys))

    def signing_seed(self) -> bytes:
        """The seed, made with the file."""
        with self._lock():
            kept = self._current()
            return wrapping.unwrap_seed(kept.master, kept.id, kept.seed)

    def recovery_code(self) -> str:
        """The master key as a person can print it and type it again."""
        with self._lock():
            return escrow.encode(self._current().master)

    def check(self) -> int:
        """Read the file anew, and unwrap everything."""
        with self._lock():
            self._seen = None
            kept = self._current()
            wrapping.unwrap_seed(kept.master, kept.id, kept.seed)
            return sum(1 for _ in kept.every())

    # -- writing ----------------------------------------------------------------------------------------------

    def create(self, owner: Owner) -> OwnerKey:
        """The current key; a line is added if there is none."""
        with self._lock():
            known = self._current().key(owner, None)
            return known or self._changed(lambda kept: kept.key(owner, None) or self._add(kept, owner))

    def renew(self, owner: Owner) -> OwnerKey:
        """A new current key, as another line."""
        return self._changed(lambda kept: self._add(kept, owner))

    def retire(self, owner: Owner) -> int:
        """Write the file without the former keys of an owner."""

        def retired(kept: _Kept) -> int:
            former = list(kept.keys.get(owner, ()))[:-1]
            for key_id in former:
                del kept.keys[owner][key_id]
            if former:
                self._write(kept)
            return len(former)

        return self._changed(retired)

    def destroy(self, owner: Owner) -> int:
        """Write the file without an owner's keys."""

        def destroyed(kept: _Kept) -> int:
            gone = kept.keys.pop(owner, {})
            if gone:
                self._write(kept)
            return len(gone)

        return self._changed(destroyed)

    def rotate(self) -> int:
        """Write the file anew, wrapped by another master key. That key is kept before, and takes the place of the other
        afterwards: whichever of the two the file is wrapped by is there at every moment.
        """

        def rotated(kept: _Kept) -> int:
            if kept.master != next(self._masters.candidates(), None):
                self._masters.settle()  # a rotation that was killed got this far
            fresh = self._masters.proposed()
            lines = [_header(kept.id, fresh, wrapping.unwrap_seed(kept.master, kept.id, kept.seed))]
            for owner, key in kept.every():
                lines.append(_line(owner, key.id, wrapping.wrap(fresh, kept.id, owner, key)))
            private_files.replace(self.path, b"".join(lines))
            self._masters.settle()
            return len(lines) - 1

        return self._changed(rotated)

    def _changed(self, change: Callable[[_Kept], T]) -> T:
        """Change the file while no other process does. What was read before is read again by the next call."""
        with self._lock(), private_files.locked(self.path.with_name(self.path.name + _LOCK)):
            try:
                return change(self._current())
            finally:
                self._seen = None

    def _add(self, kept: _Kept, owner: Owner) -> OwnerKey:
        before = kept.key(owner, None)
        key = wrapping.new_key(before.blind if before else None)
        wrapped = wrapping.wrap(kept.master, kept.id, owner, key)
        if kept.torn:  # the line of a writer that was killed
            kept.keys.setdefault(owner, {})[key.id] = wrapped
            self._write(kept)
        else:
            private_files.append(self.path, _line(owner, key.id, wrapped))
        return key

    def _write(self, kept: _Kept) -> None:
        header = _header_of(kept.id, kept.master_id, kept.seed)
        lines = (_line(owner, key_id, one) for owner, keys in kept.keys.items() for key_id, one in keys.items())
        private_files.replace(self.path, header + b"".join(lines))

    # -- the file ---------------------------------------------------------------------------------------------

    def _lock(self) -> AbstractContextManager[object]:
        if os.getpid() != self._process:  # in a forked child, another thread of the parent may hold it for ever
            self._guard, self._process = threading.RLock(), os.getpid()
        return self._guard

    def _current(self) -> _Kept:
        """The file as it is now, read only if it changed."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise self._missing() from None
        seen = _Seen(status.st_ino, status.st_size, status.st_mtime_ns)
        if self._kept is None or seen != self._seen:
            self._kept, self._seen = self._load(seen), seen
        return self._kept

    def _bytes(self) -> bytes:
        data = private_files.read(self.path)
        if data is None:
            raise self._missing()
        return data

    def _missing(self) -> KeyUnavailable:
        return KeyUnavailable(
            "the keyring is not there",
            details={"path": str(self.path)},
            hint="put its file back, without which nothing that is encrypted can be read; or make it for a new"
            " database with 'wellkept keys init'",
        )

    def _load(self, seen: _Seen) -> _Kept:
        for _ in range(_ATTEMPTS - 1):
            with suppress(KeyUnavailable):
                return self._loaded(seen)
        return self._loaded(seen)

    def _loaded(self, seen: _Seen) -> _Kept:
        header, *lines = self._bytes().split(b"\n")
        ring, master_id, seed = _parsed_header(header, self.path)
        master = next((one for one in self._masters.candidates() if wrapping.fingerprint(one) == master_id), None)
        if master is None:
            raise wrapping.wrong_master(master_id)
        keys: dict[Owner, dict[str, bytes]] = {}
        for line in lines[:-1]:
            owner, key_id, wrapped = _parsed_line(line, self.path)
            keys.setdefault(owner, {})[key_id] = wrapped
        unwrapped = {}
        if self._kept is not None and self._seen is not None and self._seen.number == seen.number:
            unwrapped = self._kept.unwrapped  # lines were added, none removed
        return _Kept(ring, master_id, master, seed, keys, unwrapped, torn=bool(lines[-1]))


def _header(ring: str, master: bytes, seed: bytes) -> bytes:
    return _header_of(ring, wrapping.fingerprint(master), wrapping.wrap_seed(master, ring, seed))


def _header_of(ring: str, master_id: str, wrapped_seed: bytes) -> bytes:
    fields = {"wellkept_keyring": wrapping.FORMAT, "id": ring, "master": master_id}
    return codec.encode_json({**fields, "seed": b64encode(wrapped_seed).decode()}) + b"\n"


def _line(owner: Owner, key_id: str, wrapped: bytes) -> bytes:
    fields = {"owner": codec.encode_owner(owner), "key": key_id, "wrapped": b64encode(wrapped).decode()}
    return codec.encode_json(fields) + b"\n"


def _parsed_header(line: bytes, path: Path) -> tuple[str, str, bytes]:
    try:
        fields = _read_line(line)
        found, ring, master_id = fields["wellkept_keyring"], str(fields["id"]), str(fields["master"])
        seed = b64decode(fields["seed"])
    except codec.UNREADABLE as error:
        raise _damaged(path) from error
    if found != wrapping.FORMAT:
        raise ConfigurationError(
            f"the keyring has format {found!r}, this release reads {wrapping.FORMAT}",
            details={"path": str(path)},
            hint="use the release that wrote it, or a newer one",
        )
    return ring, master_id, seed


def _parsed_line(line: bytes, path: Path) -> tuple[Owner, str, bytes]:
    try:
        fields = _read_line(line)
        return codec.decode_owner(fields["owner"]), str(fields["key"]), b64decode(fields["wrapped"])
    except codec.UNREADABLE as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path.name!r} is no keyring, or it is damaged",
        details={"path": str(path)},
        hint="restore it from a copy; it holds the keys of everything that is encrypted",
    )
