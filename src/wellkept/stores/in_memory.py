"""A journal whose versions are held in RAM. Stores that hold everything in RAM answer from it, and differ in what they
keep besides.

What changes something comes in two steps: the plan, which may be refused and changes nothing, and ``_take``, which
cannot fail. In between, a subclass writes to its disk.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import attrgetter

from wellkept import codec, ids
from wellkept.ports import Counters, Head, Journal, Plan, Standing, Step, check_vector, plan, positions
from wellkept.ports.positions import Reached
from wellkept.stores.owner_log import Accesses, OwnerLog
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
    State,
    Stored,
    Usage,
    Vector,
    Write,
)

_SEQ = attrgetter("seq")
_RECORDED = attrgetter("recorded_at")


class InMemoryJournal(Journal):
    """Answers from RAM.

    A subclass says how it is entered for reading and for writing (``_reading``, ``_writing``), and keeps what changes
    before it becomes visible: a method ``_keep…`` that raises leaves everything as it was.
    """

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._lock = threading.RLock()
        self._logs: dict[Owner, OwnerLog] = {}
        self._vectors: dict[tuple[Owner, str], Vector] = {}
        self._renewed: dict[tuple[Owner, str], Vector] = {}  # of the embedder that is to take over
        self._accesses: dict[tuple[Owner, str], Accesses] = {}
        self._settings: dict[str, str] = {"origin": ids.new_origin(entropy), "epoch": ids.new_origin(entropy)}

    # -- what a subclass adds ---------------------------------------------------------------------------------

    def _reading(self) -> AbstractContextManager[object]:
        """Hold the lock, in a store that is open and up to date."""
        return self._lock

    def _writing(self, operation: str) -> AbstractContextManager[object]:  # noqa: ARG002  # for locks that tell who
        """The same, and nobody else writes."""
        return self._reading()

    def _keep(self, planned: Plan, stored: Sequence[Stored]) -> None:
        """Keep the versions of an append."""

    def _keep_vectors(self, vectors: Sequence[Embedded], settings: Mapping[str, str]) -> None:
        """Keep vectors that came later, and the settings that the first one brings."""

    def _keep_adoption(self, embedder: str, dimension: int) -> None:
        """Keep that another embedder took over."""

    def _keep_settings(self, values: Mapping[str, str]) -> None:
        """Keep settings."""

    def _versions_of_guards(self, guards: Sequence[Guard]) -> Mapping[tuple[Owner, str, str], int]:  # noqa: ARG002
        """The versions of the records that guards name."""
        return {}

    def _tokens_of_guards(self, guards: Sequence[Guard]) -> Mapping[str, int]:  # noqa: ARG002
        """The tokens of the leases that guards name and that still hold."""
        return {}

    # -- writing ----------------------------------------------------------------------------------------------

    def append(
        self, writes: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()
    ) -> Position:
        """Plan, keep, and only then change anything."""
        with self._writing("append"):
            planned = plan(writes, self._standing(writes, quotas, guards), quotas=quotas, guards=guards)
            stored = [_stored(step) for step in planned.steps]
            if stored:
                self._keep(planned, stored)
                self._take(stored, planned.counters)
                self._take_vectors(planned.steps, planned)
            return self._position({write.owner for write in writes})

    def _standing(self, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]) -> Standing:
        heads: dict[tuple[Owner, str], Head] = {}
        holders: dict[tuple[Owner, str], str] = {}
        for write in writes:
            log = self._logs.get(write.owner)
            if log is None:
                continue
            if (head := log.heads.get(write.id)) is not None:
                heads[write.owner, write.id] = self._head(head)
            if (key := write.facets.get("key")) is not None and key in log.keys:
                holders[write.owner, key] = log.keys[key]
        owners = {write.owner for write in writes}.union(*(quota.owners for quota in quotas))
        dimension = self._settings.get("dimension")
        return Standing(
            heads=heads,
            holders=holders,
            counters={owner: self._logs[owner].counters for owner in owners if owner in self._logs},
            embedder=self._settings.get("embedder"),
            dimension=None if dimension is None else int(dimension),
            records=self._versions_of_guards(guards),
            leases=self._tokens_of_guards(guards),
        )

    def _head(self, one: Stored) -> Head:
        vector = self._vectors.get((one.owner, one.id))
        return Head(
            version=one.version,
            born=one.born,
            born_at=one.born_at,
            stamp=one.stamp,
            erased=one.operation is Operation.ERASED,
            key=one.facets.get("key"),
            size=int(one.facets.get("bytes", 0)),
            vector=0 if vector is None else len(vector.data),
            archived=one.facets.get("state") == State.ARCHIVED,
        )

    def _take(self, stored: Sequence[Stored], counters: Mapping[Owner, Counters]) -> None:
        """Make versions visible that were accepted: here, or before this process began."""
        erased: dict[Owner, set[str]] = {}
        for one in stored:
            self._log(one.owner).take(one)
            if one.operation is Operation.ERASED:
                erased.setdefault(one.owner, set()).add(one.id)
        for owner, gone in erased.items():
            self._logs[owner].forget(gone)
            for memory_id in gone:
                for kept in (self._vectors, self._renewed, self._accesses):
                    kept.pop((owner, memory_id), None)
        for owner, counted in counters.items():
            self._log(owner).counters = counted

    def _log(self, owner: Owner) -> OwnerLog:
        log = self._logs.get(owner)
        if log is None:
            log = self._logs[owner] = OwnerLog(codec.encode_owner(owner))
        return log

    def _take_vectors(self, steps: Sequence[Step], planned: Plan) -> None:
        if planned.embedder is not None and planned.dimension is not None:
            self._settings |= {"embedder": planned.embedder, "dimension": str(planned.dimension)}
        for step in steps:
            write = step.write
            if write.keeps_vector or write.operation is Operation.ERASED:
                continue
            place = (write.owner, write.id)
            self._renewed.pop(place, None)  # it was made from another text
            if write.vector is None:
                self._vectors.pop(place, None)
            else:
                self._vectors[place] = write.vector

    def rewrite(self, versions: Sequence[Stored]) -> None:
        """Put versions in the place of those with their stamps."""
        with self._writing("rewrite"):
            for owner in {one.owner for one in versions} & self._logs.keys():
                self._logs[owner].rewrite({(one.id, one.stamp): one for one in versions if one.owner == owner})
            for one in versions:
                place = (one.owner, one.id)
                head = self._logs[one.owner].heads.get(one.id) if one.owner in self._logs else None
                if one.vector is not None and head is not None and head.stamp == one.stamp:
                    self._vectors[place] = one.vector
                    self._renewed.pop(place, None)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Check everything first, as ``append`` does."""
        with self._writing("embed"):
            fitting = [one for one in vectors if self._fits(one)]
            if not fitting:
                return
            brought = self._brought(fitting)
            self._keep_vectors(fitting, brought)
            self._settings |= brought
            for one in fitting:
                self._take_vector(one)

    def _fits(self, one: Embedded) -> bool:
        log = self._logs.get(one.owner)
        head = None if log is None else log.heads.get(one.id)
        return head is not None and head.operation is not Operation.ERASED and head.version == one.version

    def _brought(self, vectors: Sequence[Embedded]) -> dict[str, str]:
        """The settings that the first vector of a store brings."""
        settings = dict(self._settings)
        for one in vectors:
            if settings.setdefault("embedder", one.vector.embedder) == one.vector.embedder:
                dimension = settings.setdefault("dimension", str(one.vector.dimension))
                check_vector(one.vector, one.vector.embedder, int(dimension))
        return {name: value for name, value in settings.items() if name not in self._settings}

    def _take_vector(self, one: Embedded) -> None:
        place = (one.owner, one.id)
        if one.vector.embedder != self._settings.get("embedder"):
            self._renewed[place] = one.vector
            return
        log = self._logs[one.owner]
        head = log.heads[one.id]
        before = self._size(head)
        self._vectors[place] = one.vector
        log.counters = log.counters._replace(bytes_used=log.counters.bytes_used + self._size(head) - before)
        log.revision += 1

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Exchange all vectors at once, or none."""
        with self._writing("adopt"):
            if self._settings.get("embedder") == embedder:
                return True
            if not all(self._has_vector(head, embedder) for head in self._embeddable()):
                return False
            self._keep_adoption(embedder, dimension)
            self._take_adoption(embedder, dimension)
            return True

    def _take_adoption(self, embedder: str, dimension: int) -> None:
        self._vectors, self._renewed = self._renewed, {}
        self._settings |= {"embedder": embedder, "dimension": str(dimension)}
        self._settings.pop("calibration", None)
        for log in self._logs.values():
            log.revision += 1
            log.counters = log.counters._replace(bytes_used=sum(map(self._size, log.heads.values())))

    def _size(self, one: Stored) -> int:
        if one.facets.get("state") == State.ARCHIVED:
            return 0
        vector = self._vectors.get((one.owner, one.id))
        return int(one.facets.get("bytes", 0)) + (len(vector.data) if vector else 0)

    def _heads(self) -> Iterator[Stored]:
        for log in self._logs.values():
            yield from (one for one in log.heads.values() if one.operation is not Operation.ERASED)

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:  # noqa: ARG002
        """Add them up."""
        with self._writing("count_accesses"):
            for one in accesses:
                self._take_access(one)

    def _take_access(self, one: Access) -> None:
        log = self._logs.get(one.owner)
        head = None if log is None else log.heads.get(one.id)
        if head is None or head.operation is Operation.ERASED:
            return
        before = self._accesses.get((one.owner, one.id), Accesses(0, 0))
        self._accesses[one.owner, one.id] = Accesses(before.times + one.times, max(before.last_at, one.last_at))

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change the given ones and leave the others."""
        with self._writing("set_settings"):
            self._keep_settings(values)
            self._settings |= values

    # -- reading ----------------------------------------------------------------------------------------------

    def settings(self) -> Mapping[str, str]:
        """A copy."""
        with self._reading():
            return dict(self._settings)

    def get(
        self,
        owners: Owners,
        ids: Iterable[str],
        *,
        at: Position | None = None,
        payload: bool = True,
        vectors: bool = False,
    ) -> list[Stored]:
        """Look each id up among the heads, or among the versions up to a position."""
        wanted = dict.fromkeys(ids)
        with self._reading():
            if at is not None:
                return [one for one in self._past(owners, at, payload=payload, vectors=vectors) if one.id in wanted]
            logs = [self._logs[owner] for owner in owners if owner in self._logs]
            found = [log.heads[one] for log in logs for one in wanted if one in log.heads]
            return [
                self._dressed(one, payload=payload, vectors=vectors)
                for one in found
                if one.operation is not Operation.ERASED
            ]

    def _dressed(self, one: Stored, *, payload: bool = True, vectors: bool = False) -> Stored:
        return _dressed(one, self._accesses, self._vectors if vectors else None, payload=payload)

    def keyed(self, owner: Owner, keys: Iterable[str]) -> dict[str, str]:
        """Look each key up."""
        with self._reading():
            log = self._logs.get(owner)
            return {} if log is None else {key: log.keys[key] for key in keys if key in log.keys}

    def scan(
        self, owners: Owners, *, at: Position | None = None, payload: bool = True, vectors: bool = False
    ) -> Iterator[Stored]:
        """Copied under the lock, so that the answer is one state and not a mixture. Only what is quick to copy: nobody
        waits until the last memory was read.
        """
        with self._reading():
            if at is not None:
                return iter(self._past(owners, at, payload=payload, vectors=vectors))
            logs = sorted((self._logs[owner] for owner in owners if owner in self._logs), key=attrgetter("name"))
            copied = [list(log.heads.values()) for log in logs]
            accesses, kept = dict(self._accesses), dict(self._vectors) if vectors else None
        heads = copied[0] if len(copied) == 1 else merge(*copied, key=attrgetter("born_at"))
        return (
            _dressed(one, accesses, kept, payload=payload) for one in heads if one.operation is not Operation.ERASED
        )

    def _past(self, owners: Owners, at: Position, *, payload: bool, vectors: bool) -> list[Stored]:
        reached = self._reached(at, owners, "as_of")
        logs = sorted((self._logs[owner] for owner in owners if owner in self._logs), key=attrgetter("name"))
        by_owner = {id(log): reached.get(owner, Reached(0)).seq for owner, log in self._logs.items()}
        found = merge(*(log.upto(by_owner[id(log)]) for log in logs), key=attrgetter("born_at"))
        return [
            self._dressed(one, payload=payload, vectors=vectors and self._logs[one.owner].heads[one.id] is one)
            for one in found
        ]

    def versions(
        self, owners: Owners, *, after: Position | None = None, limit: int | None = None
    ) -> JournalPage[Stored]:
        """The owners' versions behind a position, in the order of recording."""
        with self._reading():
            reached = {} if after is None else self._reached(after, owners, "after")
            page, last, more = self._behind(owners, reached, limit)
            return JournalPage(page, positions.encode(self._epoch, last), more=more)

    def _behind(
        self, owners: Iterable[Owner], reached: Mapping[Owner, Reached], limit: int | None
    ) -> tuple[list[Stored], dict[Owner, Reached], bool]:
        """Versions behind a place in each owner's journal, where they end, and whether there are more."""
        # In the order of their names: what was recorded at the same time comes in the same order each time.
        known = sorted((self._logs[owner].name, owner) for owner in owners if owner in self._logs)
        logs = {owner: self._logs[owner] for _, owner in known}
        behind = (log.after(reached.get(owner, Reached(0)).seq) for owner, log in logs.items())
        found = list(islice(merge(*behind, key=_RECORDED), None if limit is None else limit + 1))
        page = found if limit is None else found[:limit]
        last = {**reached, **{one.owner: positions.reached_by(one) for one in page}}
        return page, last, len(found) > len(page)

    @property
    def _epoch(self) -> str:
        return self._settings["epoch"]

    def _reached(self, position: Position, owners: Owners, field: str) -> dict[Owner, Reached]:
        """How far a position is with these owners; ``PositionLost`` if a version here has another stamp.

        What it says of others is not compared with anything: the answer must not depend on what they have.
        """
        decoded = positions.decode(position, self._epoch, field)
        reached = {owner: one for owner, one in decoded.items() if owner in owners}
        for owner, one in reached.items():
            log = self._logs.get(owner)
            if log is None or one.seq > log.counters.seq:
                raise positions.lost()
            place = bisect_left(log.versions, one.seq, key=_SEQ)
            known = log.versions[place] if place < len(log.versions) else None
            if known is not None and known.seq == one.seq and one.check not in ("", positions.check_of(known.stamp)):
                raise positions.lost()
        return reached

    def history(self, owner: Owner, memory_id: str) -> list[Stored]:
        """Walk the owner's versions."""
        with self._reading():
            log = self._logs.get(owner)
            if log is None or memory_id not in log.heads:
                return []
            return [one for one in log.versions if one.id == memory_id]

    def feed(self, *, after: Position | None = None, limit: int | None = None) -> JournalPage[Stored]:
        """Everybody's versions: a place in the feed is one in the journal of each owner."""
        with self._reading():
            reached: dict[Owner, Reached] = {}
            if after is not None:
                token = Position(positions.decode_feed(after, self._epoch))
                reached = self._reached(token, positions.decode(token, self._epoch).keys(), "after")
            page, last, more = self._behind(self._logs, reached, limit)
            reached_by_all = positions.encode(self._epoch, last)
            return JournalPage(page, positions.encode_feed(self._epoch, reached_by_all), more=more)

    def position(self, owners: Owners, at: datetime | None = None) -> Position:
        """The last version of each owner, up to a time if given."""
        with self._reading():
            if at is None:
                return self._position(owners)
            micros = codec.to_micros(at)
            reached = {}
            for owner in owners:
                if (log := self._logs.get(owner)) is not None:
                    place = bisect_right(log.versions, micros, key=_RECORDED)
                    if place:
                        one = log.versions[place - 1]
                        reached[owner] = positions.reached_by(one)
            return positions.encode(self._epoch, reached)

    def _position(self, owners: Owners) -> Position:
        logs = {owner: self._logs[owner] for owner in owners if owner in self._logs}
        reached = {owner: positions.reached_by(log.versions[-1]) for owner, log in logs.items() if log.versions}
        return positions.encode(self._epoch, reached)

    def marks(self, owners: Owners) -> dict[Owner, Mark]:
        """From the counters."""
        with self._reading():
            logs = {owner: self._logs[owner] for owner in owners if owner in self._logs}
            return {owner: Mark(log.counters.seq, log.revision) for owner, log in logs.items()}

    def usage(self, owners: Owners) -> dict[Owner, Usage]:
        """From the counters."""
        with self._reading():
            logs = {owner: self._logs[owner] for owner in owners if owner in self._logs}
            return {owner: Usage(log.counters.memories, log.counters.bytes_used) for owner, log in logs.items()}

    def owners(self, *, after: Owner | None = None, limit: int | None = None) -> list[Owner]:
        """In the order of their names."""
        with self._reading():
            name = "" if after is None else codec.encode_owner(after)
            found = sorted((log.name, owner) for owner, log in self._logs.items() if log.name > name and log.versions)
            return [owner for _, owner in islice(found, limit)]

    def unembedded(self, embedder: str, limit: int) -> list[Stored]:
        """Look at every head."""
        with self._reading():
            missing = (one for one in self._embeddable() if not self._has_vector(one, embedder))
            return [self._dressed(one) for one in islice(missing, limit)]

    def _embeddable(self) -> Iterator[Stored]:
        return (one for one in self._heads() if one.facets.get("state") != State.MOVED)

    def _has_vector(self, one: Stored, embedder: str) -> bool:
        having = (kept.get((one.owner, one.id)) for kept in (self._vectors, self._renewed))
        return any(vector is not None and vector.embedder == embedder for vector in having)


def _dressed(
    one: Stored,
    accesses: Mapping[tuple[Owner, str], Accesses],
    vectors: Mapping[tuple[Owner, str], Vector] | None,
    *,
    payload: bool,
) -> Stored:
    """A memory as it is given away: with its accesses and, if wanted, its vector."""
    read = accesses.get((one.owner, one.id)) if accesses else None
    if read is not None:
        one = one._replace(access_count=read.times, last_accessed_at=read.last_at)
    if vectors is not None:
        one = one._replace(vector=vectors.get((one.owner, one.id)))
    return one if payload else one._replace(payload=b"")


def _stored(step: Step) -> Stored:
    """The version of a step. Facets are copied by value: nobody outside can change what is stored."""
    write = step.write
    erased = write.operation is Operation.ERASED
    return Stored(
        owner=write.owner,
        id=write.id,
        version=write.version,
        seq=step.seq,
        born=step.born,
        born_at=step.born_at,
        recorded_at=step.recorded_at,
        operation=write.operation,
        stamp=write.stamp,
        replaced=write.replaced,
        reason=write.reason,
        facets={} if erased else codec.decode_json(codec.encode_json(write.facets)),
        payload=b"" if erased else write.payload,
        write_id=step.write_id,
    )
