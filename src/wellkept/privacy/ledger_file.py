"""The file of the ledger: a copy beside the database, which a restored backup does not take back in time."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from wellkept import codec, logs
from wellkept.engine import ledger
from wellkept.engine.core import Engine
from wellkept.errors import InvalidInput, StoreCorrupt
from wellkept.types import LedgerEntry

SUFFIX = ".erasures.jsonl"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def path_of(engine: Engine) -> Path | None:
    """Where the ledger of a database is copied to; nowhere if the database is no file or folder."""
    configured = engine.settings.privacy.ledger
    if configured is not None:
        return Path(configured)
    place = engine.store.path
    return None if place is None else Path(f"{place}{SUFFIX}")


def is_ahead(engine: Engine) -> bool:
    """Whether the file tells of an erasure that the database does not know: it was restored from an older copy."""
    path = path_of(engine)
    try:
        if path is None or not path.is_file():
            return False
        if path.stat().st_mode & _OTHERS:  # whoever can write a ledger can have anything erased
            logs.ledger_untrusted()
            return False
        entry = _last(path)
    except (OSError, InvalidInput):
        return False  # replay tells of it; opening must work
    if entry is None:
        return False
    try:
        return all(one.id != entry.id for one in ledger.read(engine.records).entries)
    except StoreCorrupt:
        return True  # replay tells of it as well


def _last(path: Path) -> LedgerEntry | None:
    lines = path.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)
    return _parsed(lines[-1], path) if lines[-1] else None


def read(path: Path) -> list[LedgerEntry]:
    """The entries of a file; an error if its chain is broken."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the ledger {path.name!r} cannot be read: {error.strerror}",
            details={"field": "path"},
            hint="check the path; it is the file that ends in " + SUFFIX,
        ) from error
    entries = [_parsed(line, path) for line in data.split(b"\n") if line.strip()]
    broken = ledger.broken(entries)
    if broken is not None:
        raise InvalidInput(
            f"entry {broken.seq} of the ledger {path.name!r} cannot be trusted: {broken.why}",
            details={"field": "path", "entry": broken.seq},
            hint="use another copy of the ledger",
        )
    return entries


def _parsed(line: bytes, path: Path) -> LedgerEntry:
    try:
        return ledger.parse(line)
    except codec.UNREADABLE:
        raise InvalidInput(
            f"{path.name!r} is no ledger of erasures",
            details={"field": "path"},
            hint="pass a file that memories.privacy.export_ledger wrote, or one that ends in " + SUFFIX,
        ) from None


def bring_up_to_date(engine: Engine) -> None:
    """Add to the file what it lacks. If it cannot be written, the log says so: the erasure stands."""
    path = path_of(engine)
    if path is None:
        return
    entries = ledger.read(engine.records).entries
    try:
        known = tuple(read(path)) if path.is_file() else ()
        if known == entries[: len(known)]:
            _append(path, entries[len(known) :])
        elif {entry.id for entry in known} <= {entry.id for entry in entries}:  # the same erasures in another order
            written = path.with_name(f".{path.name}.new")
            written.unlink(missing_ok=True)
            _append(written, entries, new=True)
            written.replace(path)
    except (OSError, InvalidInput) as error:
        logs.ledger_not_copied(type(error).__name__)


def write(path: Path, entries: Iterable[LedgerEntry]) -> int:
    """Write a ledger into a new file; how many entries."""
    every = list(entries)
    try:
        _append(path, every, new=True)
    except FileExistsError:
        raise InvalidInput(
            f"{path.name!r} is there already", details={"field": "path"}, hint="choose another name, or remove it"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{path.name!r} cannot be written: {error.strerror}", details={"field": "path"}, hint="choose another place"
        ) from error
    return len(every)


def _append(path: Path, entries: Iterable[LedgerEntry], *, new: bool = False) -> None:
    data = b"".join(codec.encode_json(entry) + b"\n" for entry in entries)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_EXCL if new else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
