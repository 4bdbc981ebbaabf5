"""The engine of a view that acts under a grant: the one place that holds it to what the grant says.

Everything that a view, its sessions and its agent can do goes through the journal and the records of its engine. Those
of a granted engine look at every call: whether the grant is still good, whether it reaches so far, whether it covers
the owners, and which memories an access policy withholds. A method that nobody thought of here is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from wellkept import authorization, filters
from wellkept.authorization import Reader
from wellkept.engine import access_policies, api_keys
from wellkept.engine.core import Engine
from wellkept.errors import Unauthorized
from wellkept.filters import Where
from wellkept.ports import Journal, Lease, Query, Record, Records
from wellkept.types import (
    Access,
    Grant,
    Guard,
    Identity,
    JournalPage,
    Layer,
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
    Write,
)

_EVERYTHING = Grant()
_SESSION = "session"  # the kind of the records of sessions, which belong to the user


def acting(engine: Engine, identity: Identity, grant: Grant | None) -> tuple[Engine, tuple[Owner, ...]]:
    """The engine for the calls of an identity under a grant, and the owners that it may reach.

    Who has no grant, and sees nothing but what is its own, needs no watching.
    """
    held = _EVERYTHING if grant is None else authorization.checked(grant)
    owners = authorization.covered_owners(held, identity)
    reader = authorization.reader_of(held, identity)
    if held == _EVERYTHING and all(authorization.sees_all(reader, owner) for owner in owners):
        return engine, owners
    return GrantedEngine(engine, held, reader), owners


def authorize(engine: Engine, grant: Grant, identity: Identity, need: Need) -> None:
    """Raise ``Unauthorized`` unless a grant allows a call of that need with that identity now."""
    authorization.authorize(grant, identity, need, engine.clock())
    if grant.key is not None:
        api_keys.check_valid(engine, grant.key)


class GrantedEngine(Engine):
    """The engine, as far as a grant allows. All else is that of the whole engine, as it is now."""

    __slots__ = ("_grant", "_journal", "_reader", "_records", "_stored", "_whole")
    _whole: Engine
    _grant: Grant
    _reader: Reader
    _journal: Journal
    _stored: Journal
    _records: Records

    def __init__(self, whole: Engine, grant: Grant, reader: Reader) -> None:
        own = {"_whole": whole, "_grant": grant, "_reader": reader, "_records": GrantedRecords(self)}
        own |= {"_journal": GrantedJournal(self, "journal"), "_stored": GrantedJournal(self, "stored_journal")}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """What is not set here: the fields of the whole engine."""
        return getattr(object.__getattribute__(self, "_whole"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._whole, name, value)

    @property
    def grant(self) -> Grant:
        """What the caller may do."""
        return self._grant

    @property
    def whole(self) -> Engine:
        """The engine without the grant: for bookkeeping of which no caller sees anything."""
        return self._whole

    @property
    def journal(self) -> Journal:
        """The journal, as far as the grant allows."""
        return self._journal

    @property
    def stored_journal(self) -> Journal:
        """The journal with what is encrypted, as far as the grant allows."""
        return self._stored

    @property
    def records(self) -> Records:
        """The records, as far as the grant allows."""
        return self._records

    @property
    def stored_records(self) -> Records:
        """The records, opened: under a grant nobody needs them as they are stored."""
        return self._records

    def check(self, need: Need, owners: Iterable[Owner]) -> None:
        """Raise ``Unauthorized`` unless the grant allows this now. A revoked key is seen at once."""
        authorization.check(self._grant, need, self.clock())
        if self._grant.key is not None:
            api_keys.check_valid(self._whole, self._grant.key)
        for owner in owners:
            authorization.check_covered(self._grant, owner)

    @property
    def max_trust(self) -> float:
        """How far what is written under the grant is trusted at most."""
        return self._grant.max_trust

    def withholding(self, owners: Owners) -> list[tuple[Owners, frozenset[str]]]:
        """The owners in groups: those of whom everything may be read, and each of the others. An id may stand with
        several owners, and be withheld by one of them.
        """
        hidden: dict[Owner, set[str]] = {}
        for owner, id in self.withheld(owners):
            hidden.setdefault(owner, set()).add(id)
        groups: list[tuple[Owners, frozenset[str]]] = [
            (frozenset({owner}), frozenset(ids)) for owner, ids in hidden.items()
        ]
        rest = frozenset(owners) - hidden.keys()
        return [(rest, frozenset()), *groups] if rest or not groups else groups

    def withheld(self, owners: Owners) -> frozenset[tuple[Owner, str]]:
        """The memories that access policies withhold."""
        return frozenset(self.policies.hidden(self._whole.journal, owners, self._reader))

    def covers(self, owner: Owner) -> bool:
        """Whether the grant covers an owner."""
        return self._grant.owners is None or authorization.covers(self._grant.owners, owner)

    def readable(self, stored: Stored) -> bool:
        """Whether the newest version of a memory may be read."""
        return access_policies.readable(self._reader, stored)


class GrantedJournal(Journal):
    """A journal that lets through what a grant allows, and refuses what concerns other owners than those named."""

    def __init__(self, engine: GrantedEngine, name: str) -> None:
        self._engine = engine
        self._name = name

    @property
    def _journal(self) -> Journal:
        """Asked for each time: another keyring makes another journal."""
        found: Journal = getattr(self._engine.whole, self._name)
        return found

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Append, if the grant allows writing, or erasing if one of them erases."""
        erases = any(write.operation is Operation.ERASED for write in writes)
        self._engine.check(Need.ERASE if erases else Need.WRITE, {write.owner for write in writes})
        return self._journal.append(writes, quotas=quotas, guards=guards)

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Count what was read."""
        self._engine.check(Need.READ, {one.owner for one in accesses})
        self._journal.count_accesses(accesses, wait_ms=wait_ms)

    # -- reading ----------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, str]:
        """What the store keeps about itself."""
        self._engine.check(Need.READ, ())
        return self._journal.settings()

    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
    ) -> Sequence[Stored]:
        """Memories by id that may be read."""
        self._engine.check(Need.READ, owners)
        found = self._journal.get(owners, ids, at=at, payload=payload, vectors=vectors)
        return list(self._shown(owners, found, at))

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Ids by key, also of memories that may not be read: a key is taken all the same."""
        self._engine.check(Need.READ, {owner})
        return self._journal.keyed(owner, keys)

    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """All memories that may be read."""
        self._engine.check(Need.READ, owners)
        return self._shown(owners, self._journal.scan(owners, at=at, payload=payload, vectors=vectors), at)

    def _shown(self, owners: Owners, found: Iterable[Stored], at: Position | None) -> Iterator[Stored]:
        """The newest version decides, also where older ones are asked for."""
        if at is None:
            return filter(self._engine.readable, found)
        withheld = self._engine.withheld(owners)
        return (one for one in found if (one.owner, one.id) not in withheld)

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The versions of memories that may be read now."""
        self._engine.check(Need.READ, owners)
        page = self._journal.versions(owners, after=after, limit=limit)
        withheld = self._engine.withheld(owners)
        return replace(page, items=[one for one in page.items if (one.owner, one.id) not in withheld])

    def history(self, owner: Owner, memory_id: str) -> Sequence[Stored]:
        """Every version of a memory that may be read now."""
        self._engine.check(Need.READ, {owner})
        found = self._journal.history(owner, memory_id)
        return () if (owner, memory_id) in self._engine.withheld({owner}) else found

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """Where the journals of the owners end."""
        self._engine.check(Need.READ, owners)
        return self._journal.position(owners, at)

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """How far each owner is."""
        self._engine.check(Need.READ, owners)
        return self._journal.marks(owners)

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """What each owner holds; what may not be read counts as well."""
        self._engine.check(Need.READ, owners)
        return self._journal.usage(owners)

    def changed(self, owners: Owners, *, after: Position) -> Sequence[tuple[Owner, str]]:
        """What has versions behind a position and may be read now."""
        self._engine.check(Need.READ, owners)
        withheld = self._engine.withheld(owners)
        return [one for one in self._journal.changed(owners, after=after) if one not in withheld]

    def select(self, query: Query) -> Sequence[Stored]:
        """One page of what may be read."""
        parts = self._parts(query.owners, query.where)
        if len(parts) == 1:
            return self._journal.select(replace(query, where=parts[0][1]))
        wanted = None if query.limit is None else query.offset + query.limit
        found: list[Stored] = []
        for owners, where in parts:
            found += self._journal.select(replace(query, owners=owners, where=where, limit=wanted, offset=0))
        return filters.page(found, query.sort, after=query.after, offset=query.offset, limit=query.limit)

    def count(self, owners: Owners, where: Where, *, at: Position | None = None) -> int:
        """How many of those that may be read match."""
        return sum(self._journal.count(some, asked, at=at) for some, asked in self._parts(owners, where))

    def ids(self, owners: Owners, where: Where, *, at: Position | None = None) -> Sequence[tuple[Owner, str]]:
        """All that match and may be read."""
        return [one for some, asked in self._parts(owners, where) for one in self._journal.ids(some, asked, at=at)]

    def _parts(self, owners: Owners, where: Where) -> list[tuple[Owners, Where]]:
        """What is asked of which owners, so that nothing is found that is withheld."""
        self._engine.check(Need.READ, owners)
        return [
            (some, replace(where, without=where.without | hidden) if hidden else where)
            for some, hidden in self._engine.withholding(owners)
        ]

    def stats(self, owners: Owners, now: datetime) -> Stats:
        """Counts over what may be read."""
        self._engine.check(Need.READ, owners)
        return super().stats(owners, now) if self._engine.withheld(owners) else self._journal.stats(owners, now)

    # -- what no grant for some owners allows -----------------------------------------------------------------

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise Unauthorized(
            "this concerns the whole database",
            details={"needed": Need.ADMIN.value},
            hint="use memories without a grant",
        )

    embed = adopt = set_settings = feed = owners = unembedded = count_unembedded = embedded = _refuse


class GrantedRecords(Records):
    """Records, as far as a grant covers whom they are about. That of a session is kept by its user, and is about the
    session.
    """

    def __init__(self, engine: GrantedEngine) -> None:
        self._engine = engine

    @property
    def _kept(self) -> Records:
        return self._engine.whole.records

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """One record."""
        self._engine.check(Need.READ, {_subject(owner, kind, name)})
        return self._kept.get(owner, kind, name)

    def put(self, record: Record) -> None:
        """Keep a record."""
        self._engine.check(Need.WRITE, {_subject(record.owner, record.kind, record.name)})
        self._kept.put(record)

    def restore(self, record: Record) -> None:
        """Keep a record of another store."""
        self._engine.check(Need.ADMIN, {_subject(record.owner, record.kind, record.name)})
        self._kept.restore(record)

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Remove a record, for good."""
        self._engine.check(Need.ERASE, {_subject(owner, kind, name)})
        return self._kept.drop(owner, kind, name)

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """The records of some owners that the grant covers."""
        self._engine.check(Need.ADMIN if owners is None else Need.READ, ())
        found = self._kept.list(owners, kind, after=after, limit=limit)
        return [one for one in found if self._engine.covers(_subject(one.owner, one.kind, one.name))]

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Take a lease."""
        self._engine.check(Need.ADMIN, ())
        return self._kept.lease(name, holder, ttl_ms)

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._engine.check(Need.ADMIN, ())
        self._kept.release(lease)


def _subject(owner: Owner, kind: str, name: str) -> Owner:
    return Owner(Layer.SESSION, (owner.ids[0], name)) if kind == _SESSION else owner
