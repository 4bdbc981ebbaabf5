"""The ledger of erasures: which owners and memories must not come back, as salted hashes in a chain.

It is kept in the records of the database, one record for each entry, and copied into a file beside it: a backup that is
restored does not know of the erasures since, the ledger does. The hashes are salted, but whoever has the ledger can
check whether an id that he guesses is in it.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import codec, hash_chain, layers
from wellkept.errors import Conflict, StoreCorrupt
from wellkept.hash_chain import GENESIS, Break
from wellkept.ports import Record, Records
from wellkept.types import ErasureScope, LedgerEntry, Owner
from wellkept.types.owners import DATABASE

KIND = "erasures"
"""The kind of the records: one for each entry, named by its number."""

RECEIPTS, INTENTS, ANCHORS = "receipt", "erasure", "audit"
KINDS = frozenset({KIND, RECEIPTS, INTENTS, ANCHORS})
"""The kinds of records that are a database's own: a copy does not get them in the place of its own."""

ERASING = "erasing"
"""The setting that says that an erasure is to be finished."""

SALT = 16
_DIGITS = 12
_ATTEMPTS = 100
_read = codec.reader(LedgerEntry)


def hashed(salt: str, owner: Owner, memory_id: str | None = None) -> str:
    """What stands in the ledger for an owner, or for one of its memories.

    >>> from wellkept.types import Layer
    >>> bob = Owner(Layer.USER, ("bob",))
    >>> hashed("00", bob) == hashed("00", bob), hashed("00", bob) == hashed("01", bob)
    (True, False)
    """
    text = codec.encode_owner(owner) + ("" if memory_id is None else f"\n{memory_id}")
    return hmac.new(bytes.fromhex(salt), text.encode(), hashlib.sha256).hexdigest()[:32]


class Ledger:
    """Entries, and whether they say of a memory that it is erased."""

    def __init__(self, entries: Iterable[LedgerEntry]) -> None:
        self.entries = tuple(entries)
        self._owners: dict[str, dict[str, int]] = {}  # by salt: until when all of an owner is erased
        self._people: dict[str, dict[str, int]] = {}  # the same for users, with all their agents and sessions
        self._memories: dict[str, set[str]] = {}
        self._known: dict[Owner, int] = {}
        for entry in self.entries:
            is_person = entry.scope is ErasureScope.PERSON
            owners = (self._people if is_person else self._owners).setdefault(entry.salt, {})
            for name in entry.owners:  # a copy may have taken over an older erasure after one of its own
                owners[name] = max(owners.get(name, 0), codec.to_micros(entry.at))
            self._memories.setdefault(entry.salt, set()).update(entry.memories)

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def names_memories(self) -> bool:
        """Whether single memories are in it, and not owners alone."""
        return any(self._memories.values())

    def until(self, owner: Owner) -> int:
        """Until when everything of an owner is erased, in microseconds; 0 if nothing is."""
        if owner not in self._known:
            person = layers.user_of(owner) or owner
            found = [owners.get(hashed(salt, owner), 0) for salt, owners in self._owners.items() if owners]
            found += [people.get(hashed(salt, person), 0) for salt, people in self._people.items() if people]
            self._known[owner] = max(found, default=0)
        return self._known[owner]

    def covers(self, owner: Owner, memory_id: str, born_at: int) -> bool:
        """Whether a memory is erased: one of an owner who was erased after it was first recorded, or a single one."""
        if born_at <= self.until(owner):
            return True
        return any(hashed(salt, owner, memory_id) in memories for salt, memories in self._memories.items() if memories)


def read(records: Records) -> Ledger:
    """The ledger of a database."""
    return Ledger(map(_entry, records.list({DATABASE}, KIND)))


def _entry(record: Record) -> LedgerEntry:
    try:
        return _read(record.body)
    except codec.UNREADABLE as error:
        raise StoreCorrupt(
            f"entry {record.name} of the ledger of erasures cannot be read",
            details={"entry": record.name},
            hint="restore it from the file of the ledger: memories.privacy.replay",
        ) from error


def find(records: Records, seq: int) -> LedgerEntry | None:
    """One entry by its number."""
    record = records.get(DATABASE, KIND, _name(seq))
    return None if record is None else _entry(record)


def append(records: Records, entry: LedgerEntry, now: datetime) -> LedgerEntry:
    """Append an entry, once: it gets its number and its hashes, unless one of its id is there already."""
    for _ in range(_ATTEMPTS):
        entries = read(records).entries
        known = next((one for one in entries if one.id == entry.id), None)
        if known is not None:
            return known
        last = entries[-1] if entries else None
        made = linked(replace(entry, seq=last.seq + 1 if last else 1, previous=last.hash if last else GENESIS))
        try:
            put(records, made, now)
        except Conflict:
            continue
        return made
    raise Conflict("the ledger of erasures kept changing", hint="try again when there are fewer erasures")


def put(records: Records, entry: LedgerEntry, now: datetime) -> None:
    """Keep an entry that has its number and its hashes; ``Conflict`` if there is one of that number."""
    body, name = codec.encode_json(entry), _name(entry.seq)
    records.put(Record(owner=DATABASE, kind=KIND, name=name, body=body, version=1, updated_at=now))


def linked(entry: LedgerEntry) -> LedgerEntry:
    """An entry with the hash of what it says."""
    return replace(entry, hash=hash_chain.digest(plain(entry)))


def plain(entry: LedgerEntry) -> dict[str, Any]:
    """An entry as it is hashed, and as it stands in a file."""
    found: dict[str, Any] = codec.decode_json(codec.encode_json(entry))
    return found


def broken(entries: Sequence[LedgerEntry]) -> Break | None:
    """Where the chain of a ledger is broken."""
    return hash_chain.broken(map(plain, entries))


def salt_of(entries: Sequence[LedgerEntry], random: Callable[[int], bytes]) -> str:
    """The salt of a ledger: one for all entries, so that each owner is hashed once to be looked up."""
    return entries[-1].salt if entries else random(SALT).hex()


def parse(line: bytes) -> LedgerEntry:
    """An entry from a line of a file; ``ValueError`` if it is none."""
    return _read(line)


def _name(seq: int) -> str:
    return f"{seq:0{_DIGITS}d}"
