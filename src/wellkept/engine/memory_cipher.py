"""Encryption of memories on their way to the store: of what is sensitive, or of everything.

Whether a key of a memory is taken, the store sees if all keys of an owner are hashed, or none is. So a record says from
when on they are, before the first is, and a plain key is stored on the condition that the record is not there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from wellkept import codec
from wellkept.engine import encrypted_versions as versions_of
from wellkept.engine.encrypted_versions import ENCRYPTED, MARK, PLAIN_KEY
from wellkept.errors import Conflict, Unsupported
from wellkept.filters import Where
from wellkept.keyrings import lookup
from wellkept.lifecycle import duplicates
from wellkept.ports import Journal, Keyring, OwnerKey, Record, Records
from wellkept.types import Embedded, Guard, Operation, Owner, Owners, Position, Quota, Stored, Write

KEYRING = "keyring"
"""The setting of a store that holds something encrypted: which keyring opens it."""

HASHED_KEYS = "hashed_keys"
"""The record of an owner whose memories have hashed keys."""

_SHOWN = frozenset(
    "now types tiers min_importance created_after created_before occurred_after occurred_before ids without"
    " states".split()
)
"""The conditions that a store can judge of an encrypted memory."""

_NOTHING = Where(now=datetime(1970, 1, 1, tzinfo=UTC))

Call = Callable[..., Any]
"""Calls a method of the stored journal."""

Key = tuple[Owner, str]


class MemoryCipher:
    """Encrypts what is sensitive, or everything, and opens it again; the same for all callers of a database.

    Without a keyring it opens what is plain. ``needed``: the store says that it holds something encrypted. As long as
    it is not active, nothing is encrypted, and nothing becomes so.
    """

    def __init__(self, keyring: Keyring | None, *, everything: bool = False, needed: bool = False) -> None:
        self.keyring = keyring
        self.everything = everything
        self.is_active = keyring is not None or needed
        self._noted = False

    def use(self, keyring: Keyring) -> None:
        """Encrypt from now on."""
        self.keyring = keyring
        self.is_active = True

    def key(self, owner: Owner) -> OwnerKey | None:
        """The current key of an owner, if there is one."""
        return None if self.keyring is None else self.keyring.key(owner)

    def may_hold(self, owners: Owners) -> bool:
        """Whether something of the owners may be encrypted."""
        keyring = self.keyring
        return self.is_active if keyring is None else any(keyring.key(owner) is not None for owner in owners)

    def _named(self, owner: Owner, key_id: str) -> OwnerKey:
        return lookup.opening_key(self.keyring, owner, key_id, what=f"{owner.layer.value} memories")

    # -- opening ----------------------------------------------------------------------------------------------

    def opened(self, versions: Iterable[Stored]) -> list[Stored]:
        """Versions, opened. Each key is looked up once for all of them; one that was destroyed, by the next call."""
        keys = cache(self._named)
        return [_opened(stored, keys) for stored in versions]

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self,
        call: Call,
        records: Records,
        writes: Sequence[Write],
        quotas: Sequence[Quota],
        guards: Sequence[Guard],
    ) -> Position:
        """Encrypt what is sensitive, and append."""
        keys = self._keys_of_owners(records, writes)
        unhashed = [_unhashed(owner) for owner in {write.owner for write in writes if _names_key(write)} - keys.keys()]
        heads = self._heads(call, writes)
        ready, before = [], set[Key]()
        for write in writes:
            ready.append(self._written(call, write, heads.get((write.owner, write.id)), before, keys))
            before.add((write.owner, write.id))
        if not self._noted and any(ENCRYPTED in write.facets for write in ready):
            call(Journal.set_settings, {KEYRING: lookup.writing_keyring(self.keyring).id})
            self._noted = True
        # First what stands there: a process that is killed between the two leaves nothing plain behind what is marked.
        self._conceal(call, [write for write in ready if _becomes_encrypted(write, heads.get((write.owner, write.id)))])
        try:
            position: Position = call(Journal.append, ready, quotas=quotas, guards=[*guards, *unhashed])
        except Conflict:
            if not any(_hashes_keys(records, guard.owner) for guard in unhashed if guard.owner is not None):
                raise
            # hashed from here on: nobody is passed by twice
            return self.append(call, records, writes, quotas, guards)
        self._renew(call, writes, ready)
        return position

    def _keys_of_owners(self, records: Records, writes: Sequence[Write]) -> dict[Owner, OwnerKey]:
        """The data keys of the owners of some writes, made for what is sensitive and where keys of memories are
        hashed.
        """
        if not any(write.operation is not Operation.ERASED for write in writes):
            return {}
        keyring = lookup.writing_keyring(self.keyring)
        named = {write.owner for write in writes if _names_key(write)}
        sensitive = {one.owner for one in writes if self._sensitive(one) and one.operation is not Operation.ERASED}
        keys: dict[Owner, OwnerKey] = {}
        for owner in {write.owner for write in writes}:
            hashes = owner in named and _hashes_keys(records, owner)
            key = keyring.create(owner) if hashes or owner in sensitive else keyring.key(owner)
            if key is not None:
                keys[owner] = key
                if owner in named and not hashes:
                    now = codec.from_micros(writes[0].recorded_at)
                    with suppress(Conflict):  # somebody else recorded it
                        records.put(
                            Record(
                                owner=owner, kind=HASHED_KEYS, name=HASHED_KEYS, body=b"{}", version=1, updated_at=now
                            )
                        )
        return keys

    def _conceal(self, call: Call, writes: Sequence[Write]) -> None:
        """Encrypt the former versions of memories that became sensitive, where the store can rewrite them."""
        for write in writes:
            key = self._named(write.owner, write.facets[ENCRYPTED]["key"])
            former = [one for one in call(Journal.history, write.owner, write.id) if ENCRYPTED not in one.facets]
            with suppress(Unsupported):
                call(Journal.rewrite, [versions_of.concealed(one, key) for one in self.opened(former)])

    def _renew(self, call: Call, writes: Sequence[Write], ready: Sequence[Write]) -> None:
        """Encrypt again what was encrypted by a key that somebody retired meanwhile: nobody could ever read it."""
        if self.keyring is None:
            return
        known = cache(self.keyring.key)
        for write, appended in zip(writes, ready, strict=True):
            named = appended.facets.get(ENCRYPTED)
            if named is None or known(write.owner, named["key"]) is not None:
                continue
            again = versions_of.encrypted(write, self.keyring.create(write.owner))
            stored = [one for one in call(Journal.history, write.owner, write.id) if one.stamp == write.stamp]
            call(
                Journal.rewrite,
                [one._replace(facets=again.facets, payload=again.payload, vector=again.vector) for one in stored],
            )

    def _heads(self, call: Call, writes: Sequence[Write]) -> dict[Key, Stored]:
        """What is stored of the memories that are written again: a plain vector must not stay with an encrypted memory,
        nor an encrypted one with a plain memory.
        """
        wanted: dict[Owner, list[str]] = {}
        for write in writes:
            if write.version > 1 and write.operation is not Operation.ERASED and self._concerns(write):
                wanted.setdefault(write.owner, []).append(write.id)
        return {
            (one.owner, one.id): one
            for owner, ids in wanted.items()
            for one in call(Journal.get, {owner}, ids, payload=False, vectors=True)
        }

    def _concerns(self, write: Write) -> bool:
        """Whether a write leaves something encrypted, or may find something encrypted."""
        return self._sensitive(write) or self.key(write.owner) is not None

    def _sensitive(self, write: Write) -> bool:
        return self.everything or write.facets.get("sensitive") is True

    def _written(
        self,
        call: Call,
        write: Write,
        head: Stored | None,
        before: AbstractSet[Key],
        keys: Mapping[Owner, OwnerKey],
    ) -> Write:
        """A write as the store gets it; ``before`` are the memories that the same batch writes to before it."""
        if write.operation is Operation.ERASED:
            key = None if write.reason is None else self.key(write.owner)
            if key is None or write.reason is None:
                return write
            return write._replace(reason=versions_of.encrypted_reason(write.reason, key, write.owner, write.id))
        key = keys.get(write.owner)
        if key is None:
            return write
        sensitive = self._sensitive(write)
        _check_key(call, write, before)
        vector = None if head is None or not write.keeps_vector else head.vector
        if vector is not None and versions_of.is_encrypted_vector(vector) is not sensitive:
            vector = versions_of.opened_vector(vector, self._named, write.owner, write.id)
            write = write._replace(vector=vector, keeps_vector=False, given=True)
        return versions_of.encrypted(write, key) if sensitive else versions_of.with_hashed_key(write, key)

    def embed(self, call: Call, vectors: Sequence[Embedded]) -> None:
        """Encrypt the vectors of what is encrypted, and store them; again, if memories were encrypted meanwhile."""
        keys: dict[Key, OwnerKey] | None = None
        while keys != (current := self._keys_of(call, vectors)):
            keys = current
            call(Journal.embed, [_embedded(one, keys.get((one.owner, one.id))) for one in vectors])

    def _keys_of(self, call: Call, vectors: Sequence[Embedded]) -> dict[Key, OwnerKey]:
        """The keys by which the vectors of some memories are to be encrypted now."""
        wanted: dict[Owner, list[str]] = {}
        for one in vectors:
            wanted.setdefault(one.owner, []).append(one.id)
        return {
            (stored.owner, stored.id): key
            for owner, ids in wanted.items()
            if (key := self.key(owner)) is not None
            for stored in call(Journal.get, {owner}, ids, payload=False)
            if ENCRYPTED in stored.facets
        }

    # -- asking -----------------------------------------------------------------------------------------------

    def hashes(self, owner: Owner, names: Iterable[str]) -> dict[str, str]:
        """Keys of memories by what stands in the store for them."""
        key = self.key(owner)
        return {} if key is None else {versions_of.hashed(key, "key", name): name for name in names}

    def asked(self, where: Where, owner: Owner) -> Where:
        """What a store can judge of the encrypted memories of an owner; they may be more than those that match."""
        shown = {name: getattr(where, name) for name in _SHOWN}
        key = self.key(owner)
        if key is None:
            return Where(**shown, tags=(MARK,))
        hashed = partial(versions_of.hashed, key)
        tags, any_tags, no_tags = (
            tuple(hashed("tag", tag) for tag in some) for some in (where.tags, where.any_tags, where.no_tags)
        )
        authors = None if where.authors is None else frozenset(hashed("author", author) for author in where.authors)
        return Where(**shown, tags=(MARK, *tags), any_tags=any_tags, no_tags=no_tags, authors=authors)


def is_shown(where: Where) -> bool:
    """Whether a store can judge every condition of encrypted memories, too."""
    names = (one.name for one in fields(Where) if one.name not in _SHOWN)
    return all(getattr(where, name) == getattr(_NOTHING, name) for name in names)


def plain(where: Where) -> Where:
    """The same of plain memories alone."""
    return replace(where, no_tags=(*where.no_tags, MARK))


def _opened(stored: Stored, keys: versions_of.Keys) -> Stored:
    facets = stored.facets
    if ENCRYPTED not in facets and stored.reason is None and PLAIN_KEY not in facets:
        return stored
    return versions_of.opened(stored, keys)


def _names_key(write: Write) -> bool:
    """Whether a caller gave the key. Marks of equal texts are no keys of callers: two memories may have the same."""
    name = write.facets.get("key")
    return name is not None and not duplicates.is_mark(name)


def _hashes_keys(records: Records, owner: Owner) -> bool:
    return records.get(owner, HASHED_KEYS, HASHED_KEYS) is not None


def _unhashed(owner: Owner) -> Guard:
    return Guard(owner=owner, kind=HASHED_KEYS, name=HASHED_KEYS, version=0)


def _check_key(call: Call, write: Write, before: AbstractSet[Key]) -> None:
    """A key of a memory is unique. All memories of an owner have theirs hashed, so that the store sees to that; but for
    those that were written before the owner had a data key.
    """
    if not _names_key(write):
        return
    name = write.facets["key"]
    holder = call(Journal.keyed, write.owner, [name]).get(name)
    if holder not in (None, write.id) and (write.owner, holder) not in before:
        raise Conflict(
            f"the key of memory {write.id!r} belongs to memory {holder!r}",
            details={"memory_id": write.id, "holder": holder},
            hint="read the memory that has the key, then decide",
        )


def _becomes_encrypted(write: Write, head: Stored | None) -> bool:
    return ENCRYPTED in write.facets and head is not None and ENCRYPTED not in head.facets


def _embedded(one: Embedded, key: OwnerKey | None) -> Embedded:
    if key is None:
        return one
    return one._replace(vector=versions_of.encrypted_vector(one.vector, key, one.owner, one.id), digest=None)
