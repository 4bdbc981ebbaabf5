"""The journal of a database with keys: what is sensitive is encrypted on its way to the store and opened on its way
back, so that no path of the engine can forget it, and everything above sees versions as they are.

What a filter asks of an encrypted memory cannot be seen by the store, but for keyed hashes. So such a query has two
parts: the plain memories, which the store answers, and the encrypted ones, which are opened page by page and compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice

from wellkept import codec, filters, statistics
from wellkept.engine import encrypted_versions as versions_of
from wellkept.engine.encrypted_versions import ENCRYPTED, MARK, PLAIN_KEY
from wellkept.errors import Conflict, Unsupported
from wellkept.filters import Where
from wellkept.keyrings import lookup
from wellkept.lifecycle import duplicates
from wellkept.ports import Journal, Keyring, OwnerKey, Query, Record, Records
from wellkept.types import (
    Access,
    Embedded,
    Guard,
    JournalPage,
    Mark,
    Operation,
    Owner,
    Owners,
    Position,
    Quota,
    Stats,
    Stored,
    Usage,
    Vector,
    Write,
)

KEYRING = "keyring"
"""The setting of a store that holds something encrypted: which keyring opens it."""

HASHED_KEYS = "hashed_keys"
"""The record of an owner whose memories have hashed keys."""

_PAGE = 500
_SHOWN = frozenset(
    "now types tiers min_importance created_after created_before occurred_after occurred_before ids without"
    " states".split()
)
"""The conditions that a store can judge of an encrypted memory."""

_NOTHING = Where(now=datetime(1970, 1, 1, tzinfo=UTC))
Key = tuple[Owner, str]


class EncryptedJournal(Journal):
    """Encrypts what is sensitive, or everything. Without a keyring it reads what is plain, and writes nothing."""

    def __init__(
        self, wrapped: Journal, records: Records, keyring: Keyring | None, *, everything: bool = False
    ) -> None:
        self._wrapped = wrapped
        self._records = records
        self._keyring = keyring
        self._everything = everything
        self._noted = False

    # -- keys -------------------------------------------------------------------------------------------------

    def _current(self, owner: Owner) -> OwnerKey | None:
        return None if self._keyring is None else self._keyring.key(owner)

    def _named(self, owner: Owner, key_id: str) -> OwnerKey:
        return lookup.opening_key(self._keyring, owner, key_id, what=f"{owner.layer.value} memories")

    def _required(self) -> Keyring:
        return lookup.writing_keyring(self._keyring)

    def _opened(self, found: Iterable[Stored]) -> list[Stored]:
        """Versions, opened. Each key is looked up once for all of them; one that was destroyed, by the next call."""
        keys = cache(self._named)
        return [_open(stored, keys) for stored in found]

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Encrypt what is sensitive, and append."""
        keys = self._keys_of_owners(writes)
        unhashed = [_unhashed(owner) for owner in {write.owner for write in writes if _names_key(write)} - keys.keys()]
        heads = self._heads(writes)
        ready, done = [], set[Key]()
        for write in writes:
            ready.append(self._written(write, heads.get((write.owner, write.id)), done, keys))
            done.add((write.owner, write.id))
        if not self._noted and any(ENCRYPTED in write.facets for write in ready):
            self._wrapped.set_settings({KEYRING: self._required().id})
            self._noted = True
        # First what stands there: a process that is killed between the two leaves nothing plain behind what is marked.
        self._conceal([write for write in ready if _becomes_encrypted(write, heads.get((write.owner, write.id)))])
        try:
            position = self._wrapped.append(ready, quotas=quotas, guards=[*guards, *unhashed])
        except Conflict:
            if not any(self._hashes_keys(guard.owner) for guard in unhashed if guard.owner is not None):
                raise
            return self.append(writes, quotas=quotas, guards=guards)  # hashed from here on: nobody is passed by twice
        self._renew(writes, ready)
        return position

    def _keys_of_owners(self, writes: Sequence[Write]) -> dict[Owner, OwnerKey]:
        """The data keys of the owners of some writes, made for what is sensitive and where keys of memories are hashed.

        A store sees that a key is taken if all keys of an owner are hashed, or none is. So a record says from when on
        they are, before the first is, and a plain key is stored on the condition that the record is not there.
        """
        if not any(write.operation is not Operation.ERASED for write in writes):
            return {}
        keyring = self._required()
        named = {write.owner for write in writes if _names_key(write)}
        sensitive = {one.owner for one in writes if self._sensitive(one) and one.operation is not Operation.ERASED}
        keys: dict[Owner, OwnerKey] = {}
        for owner in {write.owner for write in writes}:
            hashes = owner in named and self._hashes_keys(owner)
            key = keyring.create(owner) if hashes or owner in sensitive else keyring.key(owner)
            if key is not None:
                keys[owner] = key
                if owner in named and not hashes:
                    self._hash_keys(owner, codec.from_micros(writes[0].recorded_at))
        return keys

    def _hashes_keys(self, owner: Owner) -> bool:
        return self._records.get(owner, HASHED_KEYS, HASHED_KEYS) is not None

    def _hash_keys(self, owner: Owner, now: datetime) -> None:
        record = Record(owner=owner, kind=HASHED_KEYS, name=HASHED_KEYS, body=b"{}", version=1, updated_at=now)
        with suppress(Conflict):  # somebody else did
            self._records.put(record)

    def _conceal(self, writes: Sequence[Write]) -> None:
        """Encrypt the former versions of memories that became sensitive, where the store can rewrite them."""
        for write in writes:
            key = self._named(write.owner, write.facets[ENCRYPTED]["key"])
            former = [one for one in self._wrapped.history(write.owner, write.id) if ENCRYPTED not in one.facets]
            with suppress(Unsupported):
                self._wrapped.rewrite([versions_of.concealed(one, key) for one in self._opened(former)])

    def _renew(self, writes: Sequence[Write], ready: Sequence[Write]) -> None:
        """Encrypt again what was encrypted by a key that somebody retired meanwhile: nobody could ever read it."""
        known = cache(self._required().key) if self._keyring is not None else None
        retired = [
            write
            for write, done in zip(writes, ready, strict=True)
            if known and ENCRYPTED in done.facets and known(write.owner, done.facets[ENCRYPTED]["key"]) is None
        ]
        for write in retired:
            again = versions_of.encrypted(write, self._required().create(write.owner))
            self._wrapped.rewrite(
                [
                    one._replace(facets=again.facets, payload=again.payload, vector=again.vector)
                    for one in self._wrapped.history(write.owner, write.id)
                    if one.stamp == write.stamp
                ]
            )

    def _heads(self, writes: Sequence[Write]) -> dict[Key, Stored]:
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
            for one in self._wrapped.get({owner}, ids, payload=False, vectors=True)
        }

    def _concerns(self, write: Write) -> bool:
        """Whether a write leaves something encrypted, or may find something encrypted."""
        return self._sensitive(write) or self._current(write.owner) is not None

    def _sensitive(self, write: Write) -> bool:
        return self._everything or write.facets.get("sensitive") is True

    def _written(
        self, write: Write, head: Stored | None, done: AbstractSet[Key], keys: Mapping[Owner, OwnerKey]
    ) -> Write:
        """A write as the store gets it; ``done`` are the memories that the same batch writes to before."""
        if write.operation is Operation.ERASED:
            key = None if write.reason is None else self._current(write.owner)
            if key is None or write.reason is None:
                return write
            reason = versions_of.encrypted_reason(write.reason, key, write.owner, write.id)
            return write._replace(reason=reason)
        key = keys.get(write.owner)
        if key is None:
            return write
        sensitive = self._sensitive(write)
        self._check_key(write, done)
        vector = None if head is None or not write.keeps_vector else head.vector
        if vector is not None and versions_of.is_encrypted_vector(vector) is not sensitive:
            vector = versions_of.opened_vector(vector, self._named, write.owner, write.id)
            write = write._replace(vector=vector, keeps_vector=False, given=True)
        return versions_of.encrypted(write, key) if sensitive else versions_of.with_hashed_key(write, key)

    def _check_key(self, write: Write, done: AbstractSet[Key]) -> None:
        """A key of a memory is unique. All memories of an owner have theirs hashed, so that the store sees to that; but
        for those that were written before the owner had a data key.
        """
        if not _names_key(write):
            return
        name = write.facets["key"]
        holder = self._wrapped.keyed(write.owner, [name]).get(name)
        if holder not in (None, write.id) and (write.owner, holder) not in done:
            raise Conflict(
                f"the key of memory {write.id!r} belongs to memory {holder!r}",
                details={"memory_id": write.id, "holder": holder},
                hint="read the memory that has the key, then decide",
            )

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Encrypt the vectors of what is encrypted; again, if memories were encrypted in place meanwhile."""
        keys: dict[Key, OwnerKey] | None = None
        while keys != (found := self._keys_of(vectors)):
            keys = found
            self._wrapped.embed([self._embedded(one, keys.get((one.owner, one.id))) for one in vectors])

    def _keys_of(self, vectors: Sequence[Embedded]) -> dict[Key, OwnerKey]:
        """The keys by which the vectors of some memories are to be encrypted now."""
        wanted: dict[Owner, list[str]] = {}
        for one in vectors:
            wanted.setdefault(one.owner, []).append(one.id)
        return {
            (stored.owner, stored.id): key
            for owner, ids in wanted.items()
            if (key := self._current(owner)) is not None
            for stored in self._wrapped.get({owner}, ids, payload=False)
            if ENCRYPTED in stored.facets
        }

    def _embedded(self, one: Embedded, key: OwnerKey | None) -> Embedded:
        if key is None:
            return one
        return one._replace(vector=versions_of.encrypted_vector(one.vector, key, one.owner, one.id), digest=None)

    def adopt(self, embedder: str, dimension: int) -> bool:
        """As the store does: stand-ins have the name of their embedder."""
        return self._wrapped.adopt(embedder, dimension)

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Counts are in the clear."""
        self._wrapped.count_accesses(accesses, wait_ms=wait_ms)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Settings are in the clear."""
        self._wrapped.set_settings(values)

    # -- reading ----------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, str]:
        """Settings are in the clear."""
        return self._wrapped.settings()

    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
    ) -> Sequence[Stored]:
        """Versions, opened. Of an owner that has a key the payload is always read: the facets are in it."""
        whole = payload or self._may_hold(owners)
        found = self._wrapped.get(owners, ids, at=at, payload=whole, vectors=vectors)
        opened = self._opened(found)
        return opened if payload else [_bare(one) for one in opened]

    def _may_hold(self, owners: Owners) -> bool:
        """Whether something of the owners may be encrypted."""
        return self._keyring is None or any(self._keyring.key(owner) is not None for owner in owners)

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """The holders of keys, plain or hashed."""
        plain = list(keys)
        key = self._current(owner)
        if key is None:
            return self._wrapped.keyed(owner, plain)
        names = {versions_of.hashed(key, "key", one): one for one in plain}
        found = self._wrapped.keyed(owner, [*plain, *names])
        return {names.get(one, one): id for one, id in found.items()}

    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """All memories, opened."""
        whole = payload or self._may_hold(owners)
        found = self._in_pages(self._wrapped.scan(owners, at=at, payload=whole, vectors=vectors))
        return found if payload else map(_bare, found)

    def _in_pages(self, found: Iterator[Stored]) -> Iterator[Stored]:
        """Opened some at a time, so that a key that is destroyed meanwhile is missed soon."""
        while page := self._opened(islice(found, _PAGE)):
            yield from page

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The journals of the owners, opened."""
        return self._page(self._wrapped.versions(owners, after=after, limit=limit))

    def history(self, owner: Owner, memory_id: str) -> Sequence[Stored]:
        """Every version, opened."""
        return self._opened(self._wrapped.history(owner, memory_id))

    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """The journals of all owners, opened."""
        return self._page(self._wrapped.feed(after=after, limit=limit))

    def _page(self, page: JournalPage[Stored]) -> JournalPage[Stored]:
        return replace(page, items=self._opened(page))

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """Positions are in the clear."""
        return self._wrapped.position(owners, at)

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """Marks are in the clear."""
        return self._wrapped.marks(owners)

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """Counters are in the clear."""
        return self._wrapped.usage(owners)

    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> Sequence[Owner]:
        """Owners are in the clear."""
        return self._wrapped.owners(after=after, limit=limit)

    def unembedded(self, embedder: str, limit: int) -> Sequence[Stored]:
        """What has no vector, opened."""
        return self._opened(self._wrapped.unembedded(embedder, limit))

    def count_unembedded(self, embedder: str) -> int:
        """As the store counts."""
        return self._wrapped.count_unembedded(embedder)

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Vectors of plain memories: encrypted ones have no digest."""
        return self._wrapped.embedded(digests)

    def changed(self, owners: Owners, *, after: Position) -> Sequence[Key]:
        """Ids are in the clear."""
        return self._wrapped.changed(owners, after=after)

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts; by going through everything where tags are hidden."""
        if not self._may_hold(owners):
            return self._wrapped.stats(owners, now)
        return statistics.tally(self.scan(owners, payload=False, vectors=True), now)

    # -- filters ----------------------------------------------------------------------------------------------

    def select(self, query: Query) -> Sequence[Stored]:
        """One page. What only an opened memory can tell is asked of the encrypted ones apart from the others."""
        if _is_shown(query.where):
            return self._opened(self._wrapped.select(query))
        wanted = None if query.limit is None else query.offset + query.limit
        plain = self._wrapped.select(replace(query, where=_plain(query.where), limit=wanted, offset=0))
        found = self._opened(plain)
        for owner in query.owners:
            found += self._matched(replace(query, owners={owner}, limit=wanted, offset=0))
        return filters.page(found, query.sort, after=query.after, offset=query.offset, limit=query.limit)

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many match."""
        if _is_shown(where):
            return self._wrapped.count(owners, where, at=at)
        plain = self._wrapped.count(owners, _plain(where), at=at)
        return plain + sum(len(self._matched(Query(owners={one}, where=where, at=at))) for one in owners)

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[Key]:
        """All that match, by owner and id."""
        if _is_shown(where):
            return self._wrapped.ids(owners, where, at=at)
        found = list(self._wrapped.ids(owners, _plain(where), at=at))
        for owner in owners:
            found += [(one.owner, one.id) for one in self._matched(Query(owners={owner}, where=where, at=at))]
        return found

    def _matched(self, query: Query) -> list[Stored]:
        """The encrypted memories of one owner that match, the first of them in the order of the query."""
        [owner] = query.owners
        fits = filters.matching(query.where)
        found: list[Stored] = []
        size = None if query.limit is None else max(_PAGE, query.limit)
        asked = replace(query, where=_encrypted(query.where, self._current(owner)), limit=size)
        while True:
            page = self._wrapped.select(asked)
            found += [one for one in self._opened(page) if fits(one)]
            if size is None or len(page) < size or len(found) >= (query.limit or 0):
                return found
            size *= 4  # a page costs the store the order of all that it could be from
            after = filters.place_of(page[-1], filters.sort_value(page[-1], query.sort))
            asked = replace(asked, after=after, limit=size)


def _open(stored: Stored, keys: versions_of.Keys) -> Stored:
    facets = stored.facets
    if ENCRYPTED not in facets and stored.reason is None and PLAIN_KEY not in facets:
        return stored
    return versions_of.opened(stored, keys)


def _names_key(write: Write) -> bool:
    """Whether a caller gave the key. Marks of equal texts are no keys of callers: two memories may have the same."""
    name = write.facets.get("key")
    return name is not None and not duplicates.is_mark(name)


def _unhashed(owner: Owner) -> Guard:
    return Guard(owner=owner, kind=HASHED_KEYS, name=HASHED_KEYS, version=0)


def _becomes_encrypted(write: Write, head: Stored | None) -> bool:
    return ENCRYPTED in write.facets and head is not None and ENCRYPTED not in head.facets


def _bare(stored: Stored) -> Stored:
    """A version without its text and its payload."""
    facets = {name: value for name, value in stored.facets.items() if name != "text"}
    return stored._replace(facets=facets, payload=b"")


def _is_shown(where: Where) -> bool:
    """Whether a store can judge every condition of encrypted memories, too."""
    names = (one.name for one in fields(Where) if one.name not in _SHOWN)
    return all(getattr(where, name) == getattr(_NOTHING, name) for name in names)


def _plain(where: Where) -> Where:
    """The same of plain memories alone."""
    return replace(where, no_tags=(*where.no_tags, MARK))


def _encrypted(where: Where, key: OwnerKey | None) -> Where:
    """What a store can judge of the encrypted memories of an owner; they may be more than those that match."""
    shown = {name: getattr(where, name) for name in _SHOWN}
    if key is None:
        return Where(**shown, tags=(MARK,))
    tags, any_tags, no_tags = (
        tuple(versions_of.hashed(key, "tag", one) for one in some)
        for some in (where.tags, where.any_tags, where.no_tags)
    )
    authors = where.authors
    hashes = None if authors is None else frozenset(versions_of.hashed(key, "author", one) for one in authors)
    return Where(**shown, tags=(MARK, *tags), any_tags=any_tags, no_tags=no_tags, authors=hashes)
