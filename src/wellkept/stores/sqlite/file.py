"""One open file, which journal, records and images share: its connections, transactions and owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from wellkept import codec, ids, logs
from wellkept.errors import ConfigurationError, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, WellkeptError
from wellkept.stores import folder_modes
from wellkept.stores.durability import check_durability
from wellkept.stores.sqlite import connections, rows, schema
from wellkept.stores.sqlite.commit import GroupCommit
from wellkept.stores.sqlite.transaction import Append, Transaction
from wellkept.types import Owner, Owners

_REMEMBERED = 1_000


class SqliteFile:
    """An open file. Every read sees one state of it; every write is part of a group commit."""

    def __init__(self, path: Path, durability: str | None) -> None:
        check_durability(durability)
        self.path = path
        self.readers = connections.Readers(self._connect)
        self.commits = GroupCommit(self._connect, self.begin, self._committed)
        # Owners are never deleted and their numbers never given twice, so what was read once stays true.
        self._number_of: dict[Owner, int] = {}
        self._owner_of: dict[int, Owner] = {}
        self.damaged: set[object] = set()  # ids of memories that were passed over
        self._closed = False
        self._log_to_empty = False
        self.read_only: StoreError | None = None  # why it can only be read
        try:
            first = self._first()
            self.durability = self._settle_durability(first, durability)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise connections.translate(error, path, doctored=True) from error
        self.readers.add(first)
        if self.folder_open():
            logs.folder_open("sqlite", path.name)

    def _first(self) -> apsw.Connection:
        """The first connection; a file that cannot be written can still be read."""
        try:
            return connections.prepare(self.path)
        except (apsw.Error, StoreReadOnly, StoreFull) as error:
            told = connections.translate(error, self.path) if isinstance(error, apsw.Error) else error
            if not isinstance(told, StoreReadOnly | StoreFull):
                raise
            first = connections.unwritable(self.path, told)
            self.read_only = told
            return first

    def folder_open(self) -> bool:
        """Whether everybody may replace the file."""
        return folder_modes.everybody_writes(self.path.absolute().parent, sticky_protects=True)

    def _connect(self) -> apsw.Connection:
        try:
            return connections.connect(self.path, self.durability, immutable=self.read_only is not None)
        except apsw.Error as error:
            raise connections.translate(error, self.path) from error

    def _settle_durability(self, connection: apsw.Connection, wanted: str | None) -> str:
        """The file's own durability holds; the process that makes the file chooses it."""
        found = rows.settings(connection)
        # Origin and epoch are there unless a row is gone. A new origin does no harm, and a new epoch tells followers
        # that their positions are lost.
        usual = {"durability": wanted or "full", "origin": ids.new_origin(), "epoch": ids.new_origin()}
        missing = {name: value for name, value in usual.items() if name not in found}
        if missing and self.read_only is None:
            rows.set_settings(connection, missing, over=False)
            found = rows.settings(connection)
        if not found.keys() >= {"origin", "epoch"}:
            raise StoreCorrupt(
                f"the settings of {self.path.name!r} are damaged",
                details={"file": self.path.name},
                hint="copy the file to where it can be written, and open it there",
            )
        kept = found.get("durability", "full")
        if wanted not in (None, kept):
            connection.close()
            raise ConfigurationError(
                f"{self.path.name!r} has durability {kept!r}, not {wanted!r}",
                details={"field": "durability", "stored": kept, "given": wanted},
                hint="leave durability out, or change the file's with memories.configure(durability=...)",
            )
        return kept

    # -- writing ----------------------------------------------------------------------------------------------

    def write(self, work: Callable[[Transaction], Any]) -> Any:
        """Do some work in a transaction that may be shared with other threads; its result once it is committed."""
        if self.read_only is not None:
            raise type(self.read_only)(
                f"{self.path.name!r} was opened for reading only",
                details={"file": self.path.name},
                hint="make room or give the rights to write it, and open it again",
            )
        try:
            return self.commits.run(work)
        except WellkeptError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error

    def begin(self, connection: apsw.Connection, works: Sequence[Callable[[Transaction], Any]] = ()) -> Transaction:
        """What works on a write transaction that a connection has just begun."""
        # A later release may have migrated the file since it was opened here: what still fits would do harm.
        connections.check_not_newer(schema.version_of(connection), self.path)
        transaction = Transaction(connection, self._number_of)
        transaction.look_for([write.id for work in works if isinstance(work, Append) for write in work.writes])
        return transaction

    def _committed(self, transaction: Transaction) -> None:
        self._number_of.update(transaction.new_owners)

    def empty_log(self, *, erased: bool) -> None:
        """After an erasure, cut the write-ahead log: erased content must not stay in it. If a reader or the disk
        prevents that, the next write tries again; that one is committed by then, and must not fail.
        """
        if not (erased or self._log_to_empty):
            return
        self._log_to_empty = True
        connection = self.readers.take()
        try:
            self._log_to_empty = not connections.empty_log(connection)
        except apsw.Error as error:
            if not erased:
                return
            raise StoreError(
                f"the memory was erased, but its content may still stand in the write-ahead log of {self.path.name!r}",
                details={"file": self.path.name},
                hint="check the disk; the next write and closing try again to empty the log",
            ) from error
        finally:
            self.readers.give(connection)

    # -- reading ----------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A connection for one statement, which sees one state of the file by itself."""
        connection = self.readers.take()
        try:
            yield connection
        except WellkeptError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error
        finally:
            self.readers.give(connection)

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """A connection that sees one state of the file for several statements."""
        try:
            with self.readers.snapshot() as connection:
                yield connection
        except WellkeptError:
            raise
        except connections.UNREADABLE as error:
            raise connections.translate(error, self.path) from error

    def numbers(self, connection: apsw.Connection, owners: Owners) -> dict[int, Owner]:
        """The owners by their numbers, those that the file knows."""
        known = self._number_of
        missing = {codec.encode_owner(owner): owner for owner in owners if owner not in known}
        if missing:
            chosen, values = rows.among(missing)
            for number, name in rows.fetch(
                connection, f"SELECT owner, name FROM owners WHERE name IN {chosen}", values
            ):
                self._check_name(connection, number, name)
                known[missing[name]] = number
        return {known[owner]: owner for owner in owners if owner in known}

    def owner(self, connection: apsw.Connection, number: int) -> Owner:
        """The owner that has a number."""
        owner = self._owner_of.get(number)
        if owner is None:
            name = connection.execute("SELECT name FROM owners WHERE owner = ?", (number,)).get
            self._check_name(connection, number, name)
            owner = self._owner_of[number] = codec.decode_owner(name)
        return owner

    def _check_name(self, connection: apsw.Connection, number: int, name: str) -> None:
        """The table and its index must agree on whose number it is: memories must not change hands by a flipped bit."""
        kept = connection.execute("SELECT name FROM owners NOT INDEXED WHERE owner = ?", (number,)).get
        if kept != name or rows.number_of_name(connection, name) != number:
            raise StoreCorrupt(
                f"the name of an owner in {self.path.name!r} is damaged",
                details={"file": self.path.name, "owner": number},
                hint="restore a backup: whose memories these are cannot be told any more",
            )

    def note_damage(self, memory: object) -> None:
        """Remember that a damaged memory was passed over: health tells of it, and the log does once."""
        if len(self.damaged) < _REMEMBERED and memory not in self.damaged:
            self.damaged.add(memory)
            logs.memory_damaged(memory)

    # -- forks and the end ------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close all connections: none may cross a fork."""
        self.commits.before_fork()
        self.readers.before_fork()

    def after_fork(self, *, in_child: bool) -> None:
        """Open connections again."""
        self.readers.after_fork(in_child=in_child)
        self.commits.after_fork(in_child=in_child)

    def close(self) -> None:
        """Release the file. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        try:
            self.empty_log(erased=self._log_to_empty)
        finally:
            self.commits.close()
            self.readers.close()


def names(owners: Iterable[Owner]) -> dict[str, Owner]:
    """Owners by the names that the file has for them."""
    return {codec.encode_owner(owner): owner for owner in owners}
