"""Idempotent adding: a key stands for one request of an owner, however often it is repeated."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from wellkept import codec
from wellkept.engine import drafts, provenance, quotas, references, revisions, supersession
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.revisions import Prepared
from wellkept.engine.sealing import seal, unseal
from wellkept.errors import Conflict
from wellkept.lifecycle import duplicates
from wellkept.types import Duplicates, Memory, Operation, Owner, Owners, State, Stored, Write

EXPIRED = "expired"
"""What the history says of the version by which an expired memory frees its key."""

MERGED = "merged"
"""What the history says of the version that a memory got when the same was added again."""

_FRESH = timedelta(days=1)
"""What is added again within this time changes nothing. Later it gets a version, and is young again for retention."""

_GONE = frozenset({State.FORGOTTEN, State.QUARANTINED})


def marked(memory: Memory, write: Write, *, timed: bool) -> Prepared:
    """A new memory that is found again when the same is added: its write has a key for that.

    One that came with a vector of its own stays by itself, since the vector could not be kept.
    """
    mark = None if write.given else duplicates.mark_of(memory, timed=timed)
    return memory, write if mark is None else write._replace(facets={**write.facets, "key": mark})


def append_once(
    engine: Engine,
    offered: Sequence[Prepared],
    owners: Owners,
    *,
    dangling: bool = False,
    policy: Duplicates = Duplicates.KEEP,
    beside: Sequence[Write] = (),
) -> tuple[list[Memory], list[Memory]]:
    """Write what is not stored under its key already; return that, and the stored memory for each offer.

    What is written supersedes memories of the owners only, and refers to no others unless it may be ``dangling``.
    What is stored word for word is merged, or refused, as the ``policy`` says. An expired memory frees its key: it gets
    a version without it. Another writer may take a key between our look and our write; then the look is repeated.
    ``beside`` is written in the same append.
    """
    if not beside and all(memory.key is None and not memory.supersedes for memory, _ in offered):
        memories = [memory for memory, _ in offered]
        try:  # nearly everything is new, and the journal tells what is not
            quotas.append(engine, [write for _, write in offered])
        except Conflict:
            if all(_key(one) is None for one in offered):
                raise  # no key was taken, so that there is nothing to look for again
        else:
            return memories, memories
    for _ in range(ATTEMPTS):
        known, freed, former = _known(engine, [one for one in offered if not duplicates.is_mark(_key(one))])
        same, ended = _same(engine, offered)
        now = engine.clock()
        fresh = _fresh(offered, known, same, policy, now)
        if not dangling:
            references.check(engine, owners, references.of([memory for memory, _ in fresh.values()]))
            provenance.check(engine, owners, [memory for memory, _ in fresh.values()])
        fresh, closed = supersession.closing(engine, owners, fresh, former)
        joined = _joined(engine, same, now)
        try:
            quotas.append(engine, [*beside, *freed, *ended, *closed, *joined, *(write for _, write in fresh.values())])
        except Conflict:
            continue
        stored = known | {name: memory for name, (memory, _) in fresh.items()}
        stored |= {name: memory for name, (_, memory) in same.items()}
        return [memory for memory, _ in fresh.values()], [_answer(one, stored[_name(one)]) for one in offered]
    raise Conflict("a key was taken again and again by other writers", details={"field": "key"}, hint="try again")


_Named = tuple[Owner, str]


def _key(offer: Prepared) -> str | None:
    key: str | None = offer[1].facets.get("key")
    return key


def _name(offer: Prepared) -> _Named:
    """What an offer is known by: its key if it has one, else its own id."""
    key = _key(offer)
    return offer[0].owner, offer[0].id if key is None else f"key {key}"


def _answer(offer: Prepared, stored: Memory) -> Memory:
    """The stored memory for an offer, and whether it was merged into that."""
    merged = duplicates.is_mark(_key(offer)) and stored.id != offer[0].id
    return replace(stored, merged=True, embedded=False) if merged else stored


def _same(engine: Engine, offered: Sequence[Prepared]) -> tuple[dict[_Named, tuple[Stored, Memory]], list[Write]]:
    """What is stored word for word: as it is, and as it will be. And the writes that take marks from expired ones."""
    marks: dict[Owner, dict[str, None]] = {}
    for one in offered:
        if duplicates.is_mark(key := _key(one)) and key is not None:
            marks.setdefault(one[0].owner, {})[key] = None
    same: dict[_Named, tuple[Stored, Memory]] = {}
    ended: list[Write] = []
    now = engine.clock()
    for owner, wanted in marks.items():
        holders = {id: key for key, id in engine.journal.keyed(owner, wanted).items()}
        for stored in engine.journal.get({owner}, list(holders)) if holders else ():
            if _has_ended(stored, now):
                ended.append(_without_key(engine, stored, now))
            else:
                same[owner, f"key {holders[stored.id]}"] = stored, unseal(stored)
    return same, ended


def _joined(engine: Engine, same: Mapping[_Named, tuple[Stored, Memory]], now: datetime) -> list[Write]:
    """The writes that add what is new about memories that are stored word for word."""
    return [
        revisions.changed(engine, after, Operation.UPDATED, stored, now, keeps_vector=True, reason=MERGED)
        for stored, after in same.values()
        if after.version > stored.version
    ]


def _known(
    engine: Engine, wanted: Sequence[Prepared]
) -> tuple[dict[_Named, Memory], list[Write], dict[_Named, Stored]]:
    """The stored memories that drafts with a key ask for again, the writes that take keys from expired ones, and the
    facts that new facts supersede.
    """
    former: dict[_Named, Stored] = {}
    known: dict[_Named, Memory] = {}
    freed: dict[str, Write] = {}
    now = engine.clock()
    for offer in wanted:
        memory, name = offer[0], _name(offer)
        if memory.key is None or name in known:
            continue
        found = engine.journal.keyed(memory.owner, [memory.key]).get(memory.key)
        for one in engine.journal.get({memory.owner}, [found]) if found and found not in freed else ():
            if _has_ended(one, now) or (memory.fact is not None and one.facets["state"] in _GONE):
                freed[one.id] = _without_key(engine, one, now)
            elif memory.fact is not None and not _is_same(engine, memory, one):
                former[name] = one
            else:
                _check_same(engine, memory, one)
                known[name] = unseal(one)
    return known, list(freed.values()), former


def _has_ended(stored: Stored, now: datetime) -> bool:
    """Whether a memory has expired. One that was forgotten before keeps its key: a replay must not undo that."""
    ends = stored.facets.get("expires_at")
    return ends is not None and ends <= codec.to_micros(now) and stored.facets["state"] != State.FORGOTTEN


def _without_key(engine: Engine, stored: Stored, now: datetime) -> Write:
    after = replace(unseal(stored), key=None, version=stored.version + 1, updated_at=now)
    return revisions.changed(engine, after, Operation.UPDATED, stored, now, keeps_vector=True, reason=EXPIRED)


def _check_same(engine: Engine, memory: Memory, stored: Stored) -> None:
    """A key stands for one request. It may be repeated, but it cannot mean two things or undo a deletion."""
    if (state := stored.facets["state"]) in _GONE:
        back = "restore" if state == State.FORGOTTEN else "release"
        raise Conflict(
            f"the key belongs to memory {stored.id!r}, which is {state}",
            details={"field": "key", "memory_id": stored.id},
            hint=f"{back} that memory, or use another key",
        )
    if not _is_same(engine, memory, stored):
        raise _another(stored.id)


def _is_same(engine: Engine, memory: Memory, stored: Stored) -> bool:
    """Whether a draft asks for the memory as it was first stored."""
    first = engine.journal.history(stored.owner, stored.id)
    return bool(first) and drafts.same_request(memory, unseal(first[0]))


def _another(memory_id: str) -> Conflict:
    return Conflict(
        f"the key belongs to memory {memory_id!r}, which was added with other fields",
        details={"field": "key", "memory_id": memory_id},
        hint="update that memory, or use another key",
    )


def _fresh(
    offered: Sequence[Prepared],
    known: Container[_Named],
    same: dict[_Named, tuple[Stored, Memory]],
    policy: Duplicates,
    now: datetime,
) -> dict[_Named, Prepared]:
    """The writes to make, each key once. What is stored word for word takes in what is new about it."""
    fresh: dict[_Named, Prepared] = {}
    for offer in offered:
        name, memory = _name(offer), offer[0]
        if name in known:
            continue
        if name in same:
            stored, before = same[name]
            _check_policy(policy, stored.id)
            after = duplicates.joined(before, memory)
            if after is not before or now - before.updated_at >= _FRESH:
                after = replace(after, version=stored.version + 1, updated_at=now)
            same[name] = stored, after
        elif name not in fresh:
            fresh[name] = offer
        elif duplicates.is_mark(_key(offer)):
            _check_policy(policy, fresh[name][0].id)
            fresh[name] = _grown(fresh[name], memory)
        elif not drafts.same_request(fresh[name][0], memory):
            raise _another(fresh[name][0].id)
    return fresh


def _grown(first: Prepared, again: Memory) -> Prepared:
    """A new memory that stands twice in one batch."""
    memory, write = first
    after = duplicates.joined(memory, again)
    facets, payload = seal(after)
    return after, write._replace(facets={**facets, "key": write.facets["key"]}, payload=payload)


def _check_policy(policy: Duplicates, stored: str) -> None:
    if policy is Duplicates.REFUSE:
        raise Conflict(
            f"memory {stored!r} says the same word for word",
            details={"field": "content", "memory_id": stored},
            hint="nothing was added; update that memory, or pass duplicates='keep'",
        )
