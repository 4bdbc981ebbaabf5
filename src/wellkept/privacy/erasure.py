"""Erasure that can be proven: planned, recorded as an intent, done in batches, entered in the ledger, receipted.

What an erasure is about to do is recorded before it begins. If the process is killed, the next one that opens the
database finishes it: every step can be repeated.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from wellkept import codec, events, layers
from wellkept.engine import holds, ledger, revisions
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.encrypted_records import is_encrypted
from wellkept.engine.encrypted_versions import ENCRYPTED
from wellkept.engine.ledger import ERASING, INTENTS, Ledger
from wellkept.errors import Conflict, Held, StoreCorrupt
from wellkept.ports import Record, sound
from wellkept.privacy import ledger_file, receipts, selection
from wellkept.privacy import owners as whose
from wellkept.privacy.selection import Chosen, Place
from wellkept.types import (
    ErasureCounts,
    ErasurePlan,
    ErasureReceipt,
    ErasureScope,
    Hold,
    Layer,
    LedgerEntry,
    Operation,
    Owner,
    OwnerCount,
    Replayed,
    Stored,
    Write,
)
from wellkept.types.owners import DATABASE

_SESSION = "session"  # the records of a user's sessions, each named by the session's id
_REPLAY = "replay"
_PLAIN = "older backups of what was not encrypted; open them with the ledger, and it is erased from them as well"
_ROUNDS = 3

Forget = Callable[[Engine, Callable[[Owner, str], bool]], int]
"""Takes memories out of the records of another capability; how many records it changed."""


class Parts(NamedTuple):
    """What the surface contributes: other capabilities' records of memories, and what agents hold in this process."""

    forget: Sequence[Forget] = ()
    clear: Callable[[Owner], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What an erasure is about to do. It names owners, so it goes when the erasure is done."""

    id: str
    scope: ErasureScope
    at: datetime
    whole: tuple[str, ...]
    person: str = ""
    places: dict[str, list[str]] = field(default_factory=dict)
    buried: dict[str, list[str]] = field(default_factory=dict)
    counts: ErasureCounts = field(default_factory=ErasureCounts)
    plain: bool = True
    scrub: bool = True


_read_intent = codec.reader(Intent)


# -- planning -----------------------------------------------------------------------------------------------------


def plan(engine: Engine, chosen: Chosen) -> ErasurePlan:
    """What would be erased; ``Held`` if a hold covers any of it."""
    return _planned(engine, chosen)[0]


class _Seen(NamedTuple):
    """When the last of what an erasure takes was recorded, and whether anything of it is not encrypted."""

    last: int
    plain: bool


def _planned(engine: Engine, chosen: Chosen) -> tuple[ErasurePlan, _Seen]:
    """The plan, and what was seen when it was made."""
    every = [*selection.everything(engine, frozenset(chosen.whole)), *chosen.places, *chosen.derived]
    counted: dict[Owner, list[int]] = {owner: [0, 0] for owner in chosen.whole}
    versions = last = 0
    found: list[Stored | Place] = list(selection.found(engine, every))
    if holds.read(engine).every:
        holds.check(engine, (_erasing(engine, one, engine.clock()) for one in found))
    for one in found:
        owner = one.owner if isinstance(one, Stored) else one[0]
        count = counted.setdefault(owner, [0, 0])
        count[0] += 1
        if isinstance(one, Stored):
            count[1] += int(one.facets.get("bytes", 0))
            versions += one.version
            last = max(last, one.recorded_at)
    kept = {owner: list(_records_of(engine, owner)) for owner in chosen.whole}
    records = {owner: len(some) for owner, some in kept.items()}
    keyring = engine.keyring
    keys = sum(keyring.key(owner) is not None for owner in chosen.whole) if keyring else 0
    shown = (
        OwnerCount(owner=owner, memories=count, bytes_used=size, records=records.get(owner, 0))
        for owner, (count, size) in counted.items()
    )
    owners = tuple(one for one in shown if one.memories or one.records)
    counts = ErasureCounts(
        owners=len(owners),
        memories=len(found),
        versions=versions,
        derived=len(chosen.derived),
        records=len({(one.owner, one.kind, one.name) for some in kept.values() for one in some}),
        keys=keys,
    )
    made = ErasurePlan(
        scope=chosen.scope, counts=counts, owners=owners, whole=chosen.whole, derived=tuple(chosen.derived)
    )
    encrypted = [one for one in found if isinstance(one, Stored) and ENCRYPTED in one.facets]
    shown_records = any(not is_encrypted(record) for some in kept.values() for record in some)
    return made, _Seen(last, plain=len(encrypted) < len(found) or shown_records)


def _records_of(engine: Engine, owner: Owner) -> Iterator[Record]:
    """The records of an owner, as they are stored; that of a session stands with its user."""
    yield from engine.records.list({owner}, opened=False)
    user = layers.user_of(owner)
    if owner.layer is Layer.SESSION and user is not None:
        described = engine.records.get(user, _SESSION, owner.ids[-1], opened=False)
        if described is not None:
            yield described


# -- erasing ------------------------------------------------------------------------------------------------------


def erase(engine: Engine, chosen: Chosen, parts: Parts, *, scrub: bool) -> ErasureReceipt:
    """Erase what was chosen, and return the receipt."""
    made, seen = _planned(engine, chosen)
    now = engine.clock()
    intent = Intent(
        id=engine.new_ids(now, 1)[0],
        scope=chosen.scope,
        at=max(now, codec.from_micros(seen.last)),
        whole=tuple(map(codec.encode_owner, chosen.whole)),
        person=codec.encode_owner(_user(chosen)) if chosen.scope is ErasureScope.PERSON else "",
        places=_named([*chosen.places, *chosen.derived]),
        buried=_named(chosen.buried),
        counts=made.counts,
        plain=seen.plain,
        scrub=scrub,
    )
    _begin(engine, intent.id, codec.encode_json(intent), now)
    return _finish(engine, intent, parts)


def _user(chosen: Chosen) -> Owner:
    return next(owner for owner in chosen.whole if owner.layer is Layer.USER)


def _named(places: Iterable[Place]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for owner, id in places:
        found.setdefault(codec.encode_owner(owner), []).append(id)
    return found


def _begin(engine: Engine, name: str, body: bytes, now: datetime) -> None:
    engine.journal.set_settings({ERASING: "1"})
    engine.records.put(Record(owner=DATABASE, kind=INTENTS, name=name, body=body, version=1, updated_at=now))


def _end(engine: Engine, name: str) -> None:
    engine.records.drop(DATABASE, INTENTS, name)
    _settle(engine)


def _settle(engine: Engine) -> None:
    """Nothing is to be finished, if there is no intent."""
    if not engine.records.list({DATABASE}, INTENTS, limit=1):
        engine.journal.set_settings({ERASING: ""})
        if engine.records.list({DATABASE}, INTENTS, limit=1):  # one that began at this moment
            engine.journal.set_settings({ERASING: "1"})


def resume(engine: Engine, parts: Parts) -> None:
    """Finish the erasures that were interrupted."""
    for record in sound(engine.records.list({DATABASE}, INTENTS)):
        if record.name == _REPLAY:
            _enforce(engine, parts)
        else:
            _finish(engine, _read_intent(record.body), parts)
    _settle(engine)


def _finish(engine: Engine, intent: Intent, parts: Parts) -> ErasureReceipt:
    """Everything that is still to be done of an erasure: all of it can be repeated."""
    whole = [codec.decode_owner(name) for name in intent.whole]
    until = codec.to_micros(intent.at)
    engine.accesses.flush()
    for _ in range(_ROUNDS):  # others may be writing
        every = [*selection.everything(engine, frozenset(whole)), *_places(intent.places)]
        if not _erase(engine, every, until):
            break
    reasons = _bury(engine, [*_told(engine, whole), *_places(intent.buried)])
    erased, single = frozenset(whole), frozenset(_places(intent.places))
    records = _drop_records(engine, whole, parts, lambda owner, id: owner in erased or (owner, id) in single)
    for owner in whole:
        if engine.keyring is not None:
            engine.keyring.destroy(owner)
        parts.clear(owner)
    engine.store.compact(frozenset(engine.journal.marks({*whole, *(owner for owner, _ in single)})))
    remains = engine.store.scrub().remains if intent.scrub else _unscrubbed(engine)
    counts = replace(intent.counts, reasons=reasons, records=max(intent.counts.records, records))
    entry = _entered(engine, intent, counts)
    remains = (*remains, *_migration_copies(engine), *([_PLAIN] if intent.plain else []))
    receipt = receipts.made(engine, entry, remains)
    with suppress(Conflict):  # made before the interruption
        receipts.keep(engine, receipt)
    _end(engine, intent.id)
    return receipt


def _unscrubbed(engine: Engine) -> tuple[str, ...]:
    return () if engine.store.capabilities.erases else ("the tables of the server, until it is scrubbed",)


def _migration_copies(engine: Engine) -> Iterator[str]:
    """The copies that a migration left beside the database hold what was there before."""
    path = engine.store.path
    if path is not None:
        found = sorted(one.name for one in path.parent.glob(f"{glob.escape(path.name)}.*.bak"))
        yield from (f"the copy {name!r} that a migration made; delete it" for name in found)


def _places(named: dict[str, list[str]]) -> Iterator[Place]:
    return ((codec.decode_owner(name), id) for name, ids in named.items() for id in ids)


def _erase(engine: Engine, places: Iterable[Place], until: int | None, *, again: bool = False) -> int:
    """Erase memories, in batches; how many. What was first recorded after a time stays. ``again``: they were erased
    before.
    """
    done = 0
    for batch in _batches(engine, dict.fromkeys(places)):
        for _ in range(ATTEMPTS):
            now = engine.clock()
            found = [
                one
                for one in selection.found(engine, batch)
                if until is None or not isinstance(one, Stored) or one.born_at <= until
            ]
            writes = [_erasing(engine, one, now) for one in found]
            try:
                if writes:
                    holds.append(engine, writes, again=again)
            except Conflict:
                continue
            break
        else:
            raise Conflict("the memories kept changing while they were erased", hint="try again with fewer writers")
        done += len(writes)
        _announce(engine, writes)
    return done


def _batches(engine: Engine, places: Iterable[Place]) -> Iterator[list[Place]]:
    """Memories that are erased in one transaction: of several owners where the store can do that."""
    several = engine.store.capabilities.batches
    batch: list[Place] = []
    for place in places:
        if batch and (len(batch) >= selection.BATCH or (not several and batch[-1][0] != place[0])):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _erasing(engine: Engine, one: Stored | Place, now: datetime) -> Write:
    """The write that erases a memory; of one that cannot be read, the store needs to know no more than its id."""
    if isinstance(one, Stored):
        return revisions.erasing(engine, one, now, None)
    owner, id = one
    version = 1
    try:
        engine.journal.get({owner}, [id], opened=False)
    except StoreCorrupt as error:
        told = error.details.get("version")
        version = told if isinstance(told, int) else 1
    return revisions.erasure(engine, owner, id, version, now, reason=None)


def _announce(engine: Engine, writes: Iterable[Write]) -> None:
    for write in writes if engine.bus.handlers else ():
        at = codec.from_micros(write.recorded_at)
        engine.bus.emit(
            events.MemoryForgotten(at=at, memory_id=write.id, owner=write.owner, permanent=True, reason=None)
        )


def _told(engine: Engine, whole: Iterable[Owner]) -> Iterator[Place]:
    """The memories of some owners whose tombstones still have a reason, from earlier erasures."""
    for owner in whole:
        page = engine.journal.versions({owner}, limit=selection.BATCH, opened=False)
        while page:
            yield from ((owner, one.id) for one in page if one.operation is Operation.ERASED and one.reason is not None)
            page = engine.journal.versions({owner}, after=page.next, limit=selection.BATCH, opened=False)


def _bury(engine: Engine, places: Iterable[Place]) -> int:
    """Give memories that were erased before a tombstone without a reason; how many."""
    done = 0
    for batch in _batches(engine, list(places)):
        now, writes = engine.clock(), []
        for owner, id in batch:
            for one in engine.journal.history(owner, id, opened=False):
                if one.operation is Operation.ERASED and one.reason is not None:
                    writes.append(revisions.erasing(engine, one, now, None))
        if writes:
            engine.journal.append(writes)
        done += len(writes)
    return done


def _drop_records(engine: Engine, whole: Iterable[Owner], parts: Parts, is_erased: Callable[[Owner, str], bool]) -> int:
    """Drop the records of owners that go, and take the memories out of those of others; how many were dropped."""
    dropped = 0
    for owner in whole:
        for record in _records_of(engine, owner):
            dropped += engine.records.drop(record.owner, record.kind, record.name)
        if owner.layer is Layer.SESSION and engine.session_limits is not None:
            engine.session_limits.forget(owner)
    for forget in parts.forget:
        forget(engine, is_erased)
    return dropped


def _entered(engine: Engine, intent: Intent, counts: ErasureCounts) -> LedgerEntry:
    """Enter an erasure in the ledger, once, and into the file beside the database."""
    salt = ledger.salt_of(ledger.read(engine.records).entries, engine.entropy)
    names = [intent.person] if intent.person else intent.whole
    entry = LedgerEntry(
        seq=0,
        previous="",
        id=intent.id,
        at=intent.at,
        scope=intent.scope,
        salt=salt,
        owners=tuple(ledger.hashed(salt, codec.decode_owner(name)) for name in names),
        memories=tuple(
            ledger.hashed(salt, owner, id) for named in (intent.places, intent.buried) for owner, id in _places(named)
        ),
        counts=counts,
    )
    made = ledger.append(engine.records, entry, engine.clock())
    ledger_file.bring_up_to_date(engine)
    return made


# -- replaying ----------------------------------------------------------------------------------------------------


def replay(engine: Engine, entries: Sequence[LedgerEntry], parts: Parts) -> Replayed:
    """Take over the entries of a ledger that this database does not have, and erase again what they say."""
    known = {entry.id for entry in ledger.read(engine.records).entries}
    now = engine.clock()
    with suppress(Conflict):  # another one was interrupted
        _begin(engine, _REPLAY, b"{}", now)
    fresh = [entry for entry in entries if entry.id not in known]
    for entry in fresh:
        ledger.append(engine.records, entry, now)
    counts = _enforce(engine, parts)
    ledger_file.bring_up_to_date(engine)
    return Replayed(entries=len(fresh), counts=counts)


def _enforce(engine: Engine, parts: Parts) -> ErasureCounts:
    """Erase whatever the ledger says is erased: an older backup brought it back.

    What is held stays, and ``Held`` says so after all else is erased; the next opening tries again.
    """
    known = ledger.read(engine.records)
    found = [place for owner in whose.every(engine) for place in _returned(engine, known, owner)]
    held = dict(holds.covering(engine, holds.read(engine), found, again=True))
    returned = [place for place in found if place not in held]
    owners = {owner for owner, _ in returned}
    memories = _erase(engine, returned, None, again=True)
    erased = frozenset(returned)
    gone = [owner for owner in whose.every(engine) if known.until(owner) or known.names_memories]
    reasons = _bury(engine, [place for place in _told(engine, gone) if _is_covered(engine, known, place)])
    records = 0
    for record in engine.records.list(None, opened=False):
        if record.owner != DATABASE and codec.to_micros(record.updated_at) <= known.until(record.owner):
            records += engine.records.drop(record.owner, record.kind, record.name)
    for forget in parts.forget:
        forget(engine, lambda owner, id: (owner, id) in erased)
    engine.store.compact(frozenset(owners))
    if memories or reasons or records:
        engine.store.scrub()
    for (_, id), hold in held.items():
        raise _still_held(id, hold, len(held))
    _end(engine, _REPLAY)
    return ErasureCounts(owners=len(owners), memories=memories, records=records, reasons=reasons)


def _still_held(id: str, hold: Hold, count: int) -> Held:
    which = f"memory {id!r} was" if count == 1 else f"{count} memories, such as {id!r}, were"
    return Held(
        f"{which} erased before, but held here by {hold.id}: {hold.reason}",
        details={"memory_id": id, "hold": hold.id, "reason": hold.reason, "count": count},
        hint="all else was erased; an administrator releases the hold, and the next opening erases the rest",
    )


def _returned(engine: Engine, known: Ledger, owner: Owner) -> Iterator[Place]:
    """The memories of an owner that are erased by the ledger, and there all the same."""
    if not (known.until(owner) or known.names_memories):
        return
    for one in selection.found(engine, selection.everything(engine, {owner})):
        id, born_at = (one.id, one.born_at) if isinstance(one, Stored) else (one[1], 0)
        if known.covers(owner, id, born_at):
            yield owner, id


def _is_covered(engine: Engine, known: Ledger, place: Place) -> bool:
    return any(known.covers(*place, one.born_at) for one in engine.journal.history(*place, opened=False))
