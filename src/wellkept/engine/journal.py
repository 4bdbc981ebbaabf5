"""The journal and the records as one caller may use them: all that stands between the engine and a store.

Each method does the same, in this order: check the caller's grant; narrow the query to what the caller may see and the
store can judge; call the store, repeated only if the method is listed; open what is encrypted; leave out what an access
policy withholds. A method of a port that is not defined here is an error at import, so that none passes unchecked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from wellkept import authorization, filters, statistics
from wellkept.engine import access_policies, api_keys, encrypted_records, memory_cipher
from wellkept.engine.access_policies import AccessPolicies
from wellkept.engine.memory_cipher import KEYRING, MemoryCipher
from wellkept.errors import Unauthorized, WellkeptError
from wellkept.filters import Where
from wellkept.keyrings import lookup
from wellkept.ports import Clock, DamagedRecord, Journal, Lease, Query, Record, Records, positions, says
from wellkept.settings import RetryPolicy
from wellkept.types import (
    Access,
    Embedded,
    Grant,
    Guard,
    Identity,
    JournalPage,
    Mark,
    Need,
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
from wellkept.types.stored import ACCESS_POLICY

REPEATED: Final = frozenset[Callable[..., Any]](
    (
        *(Journal.append, Journal.embed, Journal.adopt, Journal.set_settings, Journal.rewrite),
        *(Journal.settings, Journal.get, Journal.keyed, Journal.versions, Journal.history, Journal.feed),
        *(Journal.position, Journal.marks, Journal.usage, Journal.owners, Journal.unembedded, Journal.select),
        *(Journal.count, Journal.ids, Journal.changed, Journal.stats, Journal.count_unembedded, Journal.embedded),
        *(Records.get, Records.list),
    )
)
"""The calls of a store that are repeated as the retry policy says: reads, and writes that do the same once more; the
stamps of an append make it one. A record that is put again would be a conflict, and accesses would count twice. A scan
fails, if at all, while it is iterated over.
"""

P = ParamSpec("P")
R = TypeVar("R")

_PAGE = 500
_EVERYTHING = Grant()


class Caller(NamedTuple):
    """Who calls: with what grant, and as whom. Without an identity it is who runs the database, from whom no access
    policy withholds anything.
    """

    grant: Grant
    identity: Identity | None


class Bookkeeping(Enum):
    """The engine itself, for what it keeps beside memories. No grant limits it; what it reads is shown to nobody."""

    BOOKKEEPING = "bookkeeping"


BOOKKEEPING: Final = Bookkeeping.BOOKKEEPING

ADMINISTRATOR: Final = Caller(_EVERYTHING, None)
"""Who runs the database."""

BOOKKEEPING_USES: Final = {
    "core.Engine.__post_init__": "reads are counted by whoever reads next, also after the reader's grant has ended",
    "embedding._bookkeeping": "vectors that wait, the embedder's name and its scale are the database's",
    "embedding.meaning": "handles share working memory, and the grant of each ends at another time",
    "holds._records": "holds are for everybody, whatever a grant covers",
    "holds.append": "an index holds everybody's memories, and follows the whole journal",
    "journal.EngineJournal.append": "whether the keys of memories are hashed is recorded for their owner",
    "journal.EngineJournal.withheld": "who may not read a memory is told by its newest version",
    "journal.EngineRecords._encrypted": "what was encrypted stays so, and the store says by which keyring",
    "journal._Checked.check": "whether an API key was revoked is recorded with the database",
    "moves._intents": "what a move is about to do is recorded with the database",
    "quotas._journal": "all owners of a user count together for the limit of a plan",
    "run_log._records": "the log of upkeep is the database's, whoever started a run",
    "run_log.running": "a run treats all memories alike, and takes a lease; the caller's grant is checked before",
    "search._scope": "an index holds everybody's memories, and follows the whole journal",
    "writing._damaged": "what cannot be opened is erased by its id, and nothing of it is shown",
}
"""Who acts as ``BOOKKEEPING``, and why. A test compares this list with the source; only ``wellkept.engine`` may."""


@dataclass(slots=True, kw_only=True)
class Shared:
    """What the journals and the records of all callers of an open database have in common."""

    journal: Journal
    records: Records
    cipher: MemoryCipher
    clock: Clock
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], None] = time.sleep
    policies: AccessPolicies = field(default_factory=AccessPolicies)


class _Checked:
    """Checks the grant of a caller before each call of a store, and before each repetition."""

    def __init__(self, shared: Shared, caller: Caller | Bookkeeping, port: Journal | Records) -> None:
        self._shared = shared
        self._port = port
        self._cipher = shared.cipher
        self.grant: Grant | None = None  # if it limits the caller
        self._reader: authorization.Reader | None = None  # if policies may withhold something
        self._is_identity = False
        if isinstance(caller, Caller):
            grant, identity = caller
            self.grant = None if grant == _EVERYTHING else grant
            if identity is not None:
                self._is_identity = True
                self._reader = authorization.reader_of(grant, identity)

    def check(self, need: Need, owners: Iterable[Owner]) -> None:
        """Raise ``Unauthorized`` unless the grant allows this now. A revoked key is seen at once."""
        grant = self.grant
        if grant is None:
            return
        authorization.check(grant, need, self._shared.clock())
        if grant.key is not None:
            api_keys.check_valid(EngineRecords(self._shared, BOOKKEEPING), grant.key)
        for owner in owners:
            authorization.check_covered(grant, owner)

    def _call(
        self,
        need: Need,
        owners: Iterable[Owner],
        method: Callable[Concatenate[Any, P], R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Check the grant, and call a method of the store."""
        self.check(need, owners)
        return self._checked_call(need, owners, method, *args, **kwargs)

    def _checked_call(
        self,
        need: Need,
        owners: Iterable[Owner],
        method: Callable[Concatenate[Any, P], R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Call a method of the store, for which the grant was checked; if it fails and is listed, as often as the
        policy says, each time after another check.
        """
        call: Callable[P, R] = getattr(self._port, method.__name__)
        failures = 0
        while True:
            try:
                return call(*args, **kwargs)
            except WellkeptError as error:
                failures += 1
                pause_s = self._shared.retry.pause_s(error, failures) if method in REPEATED else None
                if pause_s is None:
                    raise
            self._shared.sleep(pause_s)
            self.check(need, owners)


class _Part(NamedTuple):
    """A part of a query: of which owners what is asked. Where the store can judge only some of it, ``opened`` is what
    the memories must match once they are opened.
    """

    owners: Owners
    where: Where
    opened: Where | None = None


class EngineJournal(_Checked, Journal):
    """The journal of a store for one caller; ``opened=False`` leaves encrypted what is."""

    def __init__(self, shared: Shared, caller: Caller | Bookkeeping) -> None:
        super().__init__(shared, caller, shared.journal)

    def _of_database(self, method: Callable[Concatenate[Any, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what concerns the whole database: nobody who acts as an identity may."""
        if self._is_identity:
            raise Unauthorized(
                "this concerns the whole database",
                details={"needed": Need.ADMIN.value},
                hint="use memories without a grant",
            )
        return self._call(Need.ADMIN, (), method, *args, **kwargs)

    # -- what is withheld, and what is encrypted --------------------------------------------------------------

    def withheld(self, owners: Owners) -> frozenset[tuple[Owner, str]]:
        """The memories that access policies withhold from the caller."""
        if self._reader is None:
            return frozenset()
        everybody = EngineJournal(self._shared, BOOKKEEPING)
        return frozenset(self._shared.policies.hidden(everybody, owners, self._reader))

    def withholding(self, owners: Owners) -> list[tuple[Owners, frozenset[str]]]:
        """The owners in groups, each with the ids that are withheld there."""
        return _grouped(owners, self.withheld(owners))

    def _readable(
        self, owners: Owners, versions: Iterable[Stored], at: Position | None, *, opened: bool
    ) -> Iterator[Stored]:
        """What policies do not withhold. The newest version decides, opened, also where others are asked for."""
        reader = self._reader
        if reader is None:
            return iter(versions)
        if at is None and (opened or not self._cipher.is_active):
            return (one for one in versions if ACCESS_POLICY not in one.facets or access_policies.readable(reader, one))
        withheld = self.withheld(owners)
        return (one for one in versions if (one.owner, one.id) not in withheld)

    def _opened(self, versions: Iterable[Stored]) -> list[Stored]:
        return self._cipher.opened(versions) if self._cipher.is_active else list(versions)

    def _opened_page(self, page: JournalPage[Stored], *, opened: bool) -> JournalPage[Stored]:
        return replace(page, items=self._opened(page)) if opened and self._cipher.is_active else page

    def _narrowed(self, owners: Owners, where: Where, withheld: frozenset[tuple[Owner, str]]) -> list[_Part]:
        """The parts of a query, so that nothing is counted that is withheld, and the store is asked for nothing that it
        cannot judge: where a condition is encrypted, plain memories and each owner's encrypted ones are apart.
        """
        parts = []
        for some, hidden in _grouped(owners, withheld):
            asked = replace(where, without=where.without | hidden) if hidden else where
            if not self._cipher.is_active or memory_cipher.is_shown(asked):
                parts.append(_Part(some, asked))
                continue
            parts.append(_Part(some, memory_cipher.plain(asked)))
            parts += [_Part({owner}, self._cipher.asked(asked, owner), asked) for owner in some]
        return parts

    def _selected(self, part: _Part, query: Query) -> list[Stored]:
        """What matches in one part; of encrypted memories, at least as many as a page takes. What became private since
        the query was narrowed is left out as well.
        """
        asked = replace(query, owners=part.owners, where=part.where)
        if part.opened is None:
            rows = self._opened(self._checked_call(Need.READ, part.owners, Journal.select, asked))
            return list(self._readable(part.owners, rows, query.at, opened=True))
        fits = filters.matching(part.opened)
        matches: list[Stored] = []
        size = None if query.limit is None else max(_PAGE, query.limit)
        asked = replace(asked, limit=size)
        while True:
            page = self._checked_call(Need.READ, part.owners, Journal.select, asked)
            readable = self._readable(part.owners, self._opened(page), query.at, opened=True)
            matches += [one for one in readable if fits(one)]
            if size is None or len(page) < size or len(matches) >= (query.limit or 0):
                return matches
            size *= 4  # a page costs the store the order of all that it could be from
            after = filters.place_of(page[-1], filters.sort_value(page[-1], query.sort))
            asked = replace(asked, after=after, limit=size)

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Append, if the grant allows writing, or erasing if one of them erases; what is sensitive is encrypted."""
        erases = any(write.operation is Operation.ERASED for write in writes)
        need, owners = Need.ERASE if erases else Need.WRITE, {write.owner for write in writes}
        self.check(need, owners)
        if self._cipher.is_active:
            call, records = partial(self._checked_call, need, owners), EngineRecords(self._shared, BOOKKEEPING)
            return self._cipher.append(call, records, writes, quotas, guards)
        return self._checked_call(need, owners, Journal.append, writes, quotas=quotas, guards=guards)

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Count what was read."""
        self._call(Need.READ, {one.owner for one in accesses}, Journal.count_accesses, accesses, wait_ms=wait_ms)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors; those of what is encrypted are encrypted."""
        if self._cipher.is_active:
            self._cipher.embed(self._of_database, vectors)
        else:
            self._of_database(Journal.embed, vectors)

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Make another embedder the store's."""
        return self._of_database(Journal.adopt, embedder, dimension)

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change what the store keeps about itself."""
        self._of_database(Journal.set_settings, values)

    def rewrite(self, versions: Sequence[Stored]) -> None:
        """Put versions that are encrypted already into the place of stored ones."""
        self._of_database(Journal.rewrite, versions)

    # -- reading ----------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, str]:
        """What the store keeps about itself."""
        return self._call(Need.READ, (), Journal.settings)

    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
        opened: bool = True,
    ) -> list[Stored]:
        """Memories by id that may be read. Of an owner that has a key the payload is always read: facets are in it."""
        opened = opened and self._cipher.is_active
        whole = payload or (opened and self._cipher.may_hold(owners))
        self.check(Need.READ, owners)
        versions: Iterable[Stored] = self._checked_call(
            Need.READ, owners, Journal.get, owners, list(ids), at=at, payload=whole, vectors=vectors
        )
        if opened:
            versions = self._cipher.opened(versions)
        if whole and not payload:
            versions = map(_bare, versions)
        return list(self._readable(owners, versions, at, opened=opened))

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Ids by key, also of memories that may not be read: a key is taken all the same."""
        names = list(keys)
        hashes = self._cipher.hashes(owner, names)
        holders = self._call(Need.READ, {owner}, Journal.keyed, owner, [*names, *hashes])
        return {hashes.get(name, name): id for name, id in holders.items()}

    def scan(
        self,
        owners: Owners,
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
        opened: bool = True,
    ) -> Iterator[Stored]:
        """All memories that may be read."""
        opened = opened and self._cipher.is_active
        whole = payload or (opened and self._cipher.may_hold(owners))
        versions = self._call(Need.READ, owners, Journal.scan, owners, at=at, payload=whole, vectors=vectors)
        if opened:
            versions = self._opened_in_pages(versions)
        if whole and not payload:
            versions = map(_bare, versions)
        return self._readable(owners, versions, at, opened=opened)

    def _opened_in_pages(self, versions: Iterator[Stored]) -> Iterator[Stored]:
        """Opened some at a time, so that a key that is destroyed meanwhile is missed soon."""
        while page := self._cipher.opened(islice(versions, _PAGE)):
            yield from page

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None, opened: bool = True
    ) -> JournalPage[Stored]:
        """The versions of memories that may be read now; a page is full, or the last."""

        def read(after: Position | None, size: int | None) -> JournalPage[Stored]:
            page = self._call(Need.READ, owners, Journal.versions, owners, after=after, limit=size)
            return self._opened_page(page, opened=opened)

        page = read(after, limit)
        if not self.withheld(owners):
            return page
        items: list[Stored] = []
        while True:
            withheld = self.withheld(owners)  # of what was just read
            for place, one in enumerate(page):
                if (one.owner, one.id) in withheld:
                    continue
                items.append(one)
                if len(items) == limit and place + 1 < len(page):
                    return JournalPage(items, positions.along(after, page)[place], more=True)
            if not page.more or len(items) == limit:
                return replace(page, items=items)
            after = page.next
            page = read(after, None if limit is None else max(limit, _PAGE))

    def history(self, owner: Owner, memory_id: str, *, opened: bool = True) -> Sequence[Stored]:
        """Every version of a memory that may be read now."""
        versions = self._call(Need.READ, {owner}, Journal.history, owner, memory_id)
        if (owner, memory_id) in self.withheld({owner}):
            return ()
        return self._opened(versions) if opened else list(versions)

    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """The journals of all owners."""
        return self._opened_page(self._of_database(Journal.feed, after=after, limit=limit), opened=True)

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """Where the journals of the owners end."""
        return self._call(Need.READ, owners, Journal.position, owners, at)

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """How far each owner is."""
        return self._call(Need.READ, owners, Journal.marks, owners)

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """What each owner holds; what may not be read counts as well."""
        return self._call(Need.READ, owners, Journal.usage, owners)

    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> Sequence[Owner]:
        """Everybody who has anything."""
        return self._of_database(Journal.owners, after=after, limit=limit)

    def unembedded(self, embedder: str, limit: int) -> Sequence[Stored]:
        """What has no vector."""
        return self._opened(self._of_database(Journal.unembedded, embedder, limit))

    def count_unembedded(self, embedder: str) -> int:
        """How many memories have no vector."""
        return self._of_database(Journal.count_unembedded, embedder)

    def embedded(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Vectors of plain memories by digest: encrypted ones have none."""
        return self._of_database(Journal.embedded, list(digests))

    def changed(self, owners: Owners, *, after: Position) -> Sequence[tuple[Owner, str]]:
        """What has versions behind a position and may be read now."""
        changed = self._call(Need.READ, owners, Journal.changed, owners, after=after)
        withheld = self.withheld(owners)
        return [place for place in changed if place not in withheld] if withheld else changed

    def select(self, query: Query) -> Sequence[Stored]:
        """One page of what may be read."""
        self.check(Need.READ, query.owners)
        parts = self._narrowed(query.owners, query.where, self.withheld(query.owners))
        if len(parts) == 1:
            return self._selected(parts[0], query)
        wanted = None if query.limit is None else query.offset + query.limit
        query_of_part = replace(query, limit=wanted, offset=0)
        matches = [one for part in parts for one in self._selected(part, query_of_part)]
        return filters.page(matches, query.sort, after=query.after, offset=query.offset, limit=query.limit)

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many of those that may be read match."""
        self.check(Need.READ, owners)
        withheld = self.withheld(owners)
        count = sum(
            self._checked_call(Need.READ, part.owners, Journal.count, part.owners, part.where, at=at)
            if part.opened is None
            else len(self._selected(part, Query(owners=part.owners, where=part.where, at=at)))
            for part in self._narrowed(owners, where, withheld)
        )
        return count if self.withheld(owners) == withheld else len(self.ids(owners, where, at=at))

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[tuple[Owner, str]]:
        """All that match and may be read."""
        self.check(Need.READ, owners)
        places: list[tuple[Owner, str]] = []
        for part in self._narrowed(owners, where, self.withheld(owners)):
            if part.opened is None:
                places += self._checked_call(Need.READ, part.owners, Journal.ids, part.owners, part.where, at=at)
            else:
                matches = self._selected(part, Query(owners=part.owners, where=part.where, at=at))
                places += [(one.owner, one.id) for one in matches]
        withheld = self.withheld(owners)  # also what became private since the query was narrowed
        return [place for place in places if place not in withheld] if withheld else places

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts over what may be read, by going through everything where tags are encrypted or something withheld."""
        if not self._cipher.may_hold(owners):
            stats = self._call(Need.READ, owners, Journal.stats, owners, now)
            if not self.withheld(owners):
                return stats
        return statistics.tally(self.scan(owners, payload=False, vectors=True), now)


class EngineRecords(_Checked, Records):
    """The records of a store for one caller; ``opened=False`` leaves encrypted what is.

    A record of a session is kept by its user, and is about the session.
    """

    def __init__(self, shared: Shared, caller: Caller | Bookkeeping) -> None:
        super().__init__(shared, caller, shared.records)

    def get(self, owner: Owner, kind: str, name: str, *, opened: bool = True) -> Record | None:
        """One record."""
        subject = encrypted_records.subject(owner, kind, name)
        record = self._call(Need.READ, {subject}, Records.get, owner, kind, name)
        return record if record is None or not opened else self._opened(record)

    def put(self, record: Record) -> None:
        """Keep a record; what tells something is encrypted if everything is, or if it was before."""
        self._keep(Need.WRITE, Records.put, record)

    def restore(self, record: Record) -> None:
        """Keep a record of another store."""
        self._keep(Need.ADMIN, Records.restore, record)

    def _keep(self, need: Need, method: Callable[[Any, Record], None], record: Record) -> None:
        subject = {encrypted_records.subject_of(record)}
        self.check(need, subject)
        self._checked_call(need, subject, method, self._encrypted(record))

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record for good, whether it can be opened or not."""
        subject = encrypted_records.subject(owner, kind, name)
        return self._call(Need.ERASE, {subject}, Records.drop, owner, kind, name)

    def list(
        self,
        owners: Owners | None,
        kind: str | None = None,
        *,
        after: str = "",
        limit: int | None = None,
        opened: bool = True,
    ) -> Sequence[Record]:
        """The records of some owners that the grant covers; a page is full, or the last."""
        need = Need.ADMIN if owners is None else Need.READ
        covered = None if self.grant is None else self.grant.owners
        asked = limit if covered is None else None
        records = self._call(need, (), Records.list, owners, kind, after=after, limit=asked)
        if covered is not None:
            records = [one for one in records if authorization.covers(covered, encrypted_records.subject_of(one))]
            records = records[:limit]
        return [self._opened(one) for one in records] if opened else records

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Take a lease."""
        return self._call(Need.ADMIN, (), Records.lease, name, holder, ttl_ms)

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._call(Need.ADMIN, (), Records.release, lease)

    def _opened(self, record: Record) -> Record:
        return encrypted_records.opened(record, self._cipher.keyring)

    def _encrypted(self, record: Record) -> Record:
        """What is to be kept: a record that is encrypted already as it is."""
        cipher, tells = self._cipher, record.kind in encrypted_records.TELLING
        if not cipher.is_active or not tells or encrypted_records.is_encrypted(record):
            return record
        if not cipher.everything:
            before = EngineRecords(self._shared, BOOKKEEPING).get(record.owner, record.kind, record.name, opened=False)
            if not isinstance(before, DamagedRecord) and (before is None or not encrypted_records.is_encrypted(before)):
                return record
        keyring, journal = lookup.writing_keyring(cipher.keyring), EngineJournal(self._shared, BOOKKEEPING)
        if not says(journal.settings(), KEYRING, keyring.id):
            journal.set_settings({KEYRING: keyring.id})
        return encrypted_records.encrypted(record, keyring.create(encrypted_records.subject_of(record)))


def authorize(shared: Shared, grant: Grant, identity: Identity, need: Need) -> None:
    """Raise ``Unauthorized`` unless a grant allows a call of that need with that identity now."""
    authorization.authorize(grant, identity, need, shared.clock())
    EngineRecords(shared, Caller(grant, identity)).check(need, ())


def check_complete(port: type, implementation: type) -> None:
    """Raise ``TypeError`` if a port has a method that its implementation does not define itself: what it inherits
    would check nothing.
    """
    public = {name for name in dir(port) if not name.startswith("_")}
    if missing := sorted(public - vars(implementation).keys()):
        raise TypeError(f"{implementation.__name__} does not define {', '.join(missing)}")


check_complete(Journal, EngineJournal)
check_complete(Records, EngineRecords)


def _grouped(owners: Owners, withheld: Iterable[tuple[Owner, str]]) -> list[tuple[Owners, frozenset[str]]]:
    """The owners in groups, each with the ids that are withheld there: two owners may each have a memory of one id.
    Those of whom everything may be read are one group.
    """
    hidden: dict[Owner, set[str]] = {}
    for owner, id in withheld:
        hidden.setdefault(owner, set()).add(id)
    if not hidden:
        return [(owners, frozenset())]
    groups: list[tuple[Owners, frozenset[str]]] = [
        (frozenset({owner}), frozenset(ids)) for owner, ids in hidden.items()
    ]
    rest = frozenset(owners) - hidden.keys()
    return [(rest, frozenset()), *groups] if rest else groups


def _bare(stored: Stored) -> Stored:
    """A version without its text and its payload."""
    facets = {name: value for name, value in stored.facets.items() if name != "text"}
    return stored._replace(facets=facets, payload=b"")
