"""The job of consolidation: memories of an owner that say the same become one that knows them all.

One pass reads the words of all memories. Those that share the words, or the skeleton (``recall.sameness``), meet in a
dictionary; only among those that share a skeleton are vectors compared, in blocks. So the time grows with the number
of memories.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from wellkept.engine import embedding, run_log
from wellkept.engine.core import Engine
from wellkept.engine.holds import Holds
from wellkept.engine.sealing import unseal
from wellkept.lifecycle import consolidation
from wellkept.recall import proposals, sameness
from wellkept.types import (
    ConsolidationPolicy,
    Memory,
    Merge,
    Owner,
    State,
    Stored,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
    UpkeepStep,
)
from wellkept.upkeep import planning, policies, runs
from wellkept.upkeep.planning import Asked, Looked, Summariser

if TYPE_CHECKING:
    from wellkept.recall.arrays import Array

MOST = 200
"""How many memories become one at once; if more say the same, the next run merges what became of them."""

_AT_ONCE = 1_000
_DAY = 86_400_000_000  # microseconds
_ROUNDING = 0.01  # what 8-bit codes may be wrong by


def plan(engine: Engine, asked: Asked) -> UpkeepPlan:
    """What the consolidation policies would merge now."""

    def look(owner: Owner, policy: ConsolidationPolicy, known: Holds, _: datetime) -> Looked:
        if owner.layer not in policy.layers:
            return Looked()
        read = _read(engine, owner, known, again=asked.again)
        found = Looked(newest=read.newest)
        if read.active >= policy.trigger:
            for ids in _same(engine, owner, read, policy.threshold):
                _add(found, engine, sorted(engine.journal.get({owner}, ids), key=_by_id), asked.summariser)
        found.shares.append(planning.share(owner, read.memories, found.steps))
        return found

    return planning.plan(engine, UpkeepJob.CONSOLIDATION, asked, policies.CONSOLIDATION, look)


@dataclass(slots=True)
class _Read:
    """The memories of an owner: how many there are, and the ids of those that may be merged, by a digest of their
    words; for each digest of a skeleton, the digests of words that have it.
    """

    memories: int = 0
    active: int = 0
    newest: int = 0
    by_words: dict[bytes, list[str]] = field(default_factory=dict)
    by_skeleton: dict[bytes, list[bytes]] = field(default_factory=dict)


def _read(engine: Engine, owner: Owner, known: Holds, *, again: bool) -> _Read:
    """One pass through all memories of an owner, without their vectors."""
    found, held = _Read(), known.over(owner)
    for stored in engine.journal.scan({owner}):
        found.memories += 1
        found.active += stored.facets["state"] == State.ACTIVE
        found.newest = max(found.newest, stored.recorded_at)
        if not consolidation.may_merge(stored) or held(stored) is not None:
            continue
        if not again and run_log.taken_back(stored):
            continue
        said = sameness.read(stored.facets["text"])
        about = _about(stored)
        spelt = _digest(about, said.words)
        ids = found.by_words.setdefault(spelt, [])
        ids.append(stored.id)
        if len(ids) == 1:
            found.by_skeleton.setdefault(_digest(about, said.skeleton), []).append(spelt)
    return found


def _about(stored: Stored) -> str:
    """What memories must have in common to be merged, beside what they say. What tells of a time, such as tomorrow,
    depends on the day on which it was said.
    """
    facets = stored.facets
    day = facets["occurred_at"] // _DAY if sameness.tells_time(facets["text"]) else None
    return f"{facets['type']}\0{facets.get('author')}\0{facets.get('session')}\0{day}"


def _digest(about: str, said: Iterable[str]) -> bytes:
    return hashlib.blake2b("\0".join((about, *said)).encode(), digest_size=12).digest()


def _same(engine: Engine, owner: Owner, read: _Read, threshold: float) -> Iterator[list[str]]:
    """The ids of memories that say the same, group by group; every member says the same as the first one."""
    near: dict[str, list[str]] = {}
    if engine.embedder is not None:
        near = _near(engine, owner, read, threshold)
    whole = {ids[0]: ids for ids in read.by_words.values()}
    taken: set[str] = set()
    for first, ids in whole.items():
        if first in taken:
            continue
        taken.add(first)
        members = list(ids)
        for other in near.get(first, ()):
            if other not in taken:
                taken.add(other)
                members += whole[other]
        for some in _pieces(members, MOST):
            if len(some) > 1:
                yield some


def _pieces(ids: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(ids)
    while some := list(islice(rest, size)):
        yield some


def _near(engine: Engine, owner: Owner, read: _Read, threshold: float) -> dict[str, list[str]]:
    """For memories of one skeleton, one for each wording, those that say the same in other words."""
    low = embedding.scale(engine, {owner}).low
    near: dict[str, list[str]] = {}
    for some in _in_batches([[read.by_words[one][0] for one in group] for group in read.by_skeleton.values()]):
        for group, texts, rows in _compared(engine, owner, some):
            for left, right in _pairs(texts, rows, threshold, low):
                near.setdefault(group[left], []).append(group[right])
                near.setdefault(group[right], []).append(group[left])
    return near


def _in_batches(groups: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Groups of more than one, together as many as are read at once."""
    batch: list[list[str]] = []
    for group in groups:
        if len(group) > 1:
            batch.append(group)
            if sum(map(len, batch)) >= _AT_ONCE:
                yield batch
                batch = []
    if batch:
        yield batch


def _compared(engine: Engine, owner: Owner, groups: list[list[str]]) -> Iterator[tuple[list[str], list[str], "Array"]]:
    """The ids, the texts and the vectors of each group, without those that have none or several passages."""
    import numpy as np  # lazy: only this job compares vectors here

    found: dict[str, tuple[str, Array]] = {}
    for ids in _pieces((id for group in groups for id in group), _AT_ONCE):
        for stored in engine.journal.get({owner}, ids, vectors=True):
            vector = stored.vector
            if vector is not None and not vector.spans:
                row = np.frombuffer(vector.data, "<f4").astype(np.float16)
                found[stored.id] = stored.facets["text"], row
    for group in groups:
        having = [id for id in group if id in found]
        if len({len(found[id][1]) for id in having}) == 1 and len(having) > 1:
            yield having, [found[id][0] for id in having], np.array([found.pop(id)[1] for id in having])


def _pairs(texts: Sequence[str], rows: "Array", threshold: float, low: float) -> Iterator[tuple[int, int]]:
    """The pairs of texts that say the same."""
    import numpy as np  # lazy: as above

    from wellkept.recall import neighbours, quantized  # lazy: as above

    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
    codes = quantized.encode(rows.astype(np.float32)) if len(rows) <= _AT_ONCE else _encoded(rows)
    least = low + threshold * (1 - low) - _ROUNDING
    for left, right, _ in neighbours.pairs(codes, least):
        product = float(np.dot(rows[left].astype(np.float32), rows[right].astype(np.float32)))
        nearness = (product / float(lengths[left] * lengths[right] or 1) - low) / (1 - low)
        if sameness.same(sameness.read(texts[left]), sameness.read(texts[right]), nearness, threshold):
            yield left, right


def _encoded(rows: "Array") -> "Array":
    """Codes of many rows, in pieces: as 64-bit numbers all of them would take too much room."""
    import numpy as np  # lazy: as above

    from wellkept.recall import quantized  # lazy: as above

    starts = range(0, len(rows), _AT_ONCE)
    return np.concatenate([quantized.encode(rows[start : start + _AT_ONCE].astype(np.float32)) for start in starts])


def _by_id(stored: Stored) -> str:
    return stored.id


def _add(found: Looked, engine: Engine, stored: list[Stored], summariser: Summariser | None) -> None:
    """Add the merge of some memories of one owner to a plan."""
    owner = stored[0].owner
    sources = [unseal(one) for one in stored]
    if any(one.data is not None for one in sources):
        return  # the text of an object says less than the object
    text, proposed = consolidation.best(sources).content, False
    if summariser is not None:
        answer, fault = _asked(summariser, sources)
        if fault is not None:
            found.notes.append(f"{runs.named(owner)}: the summariser's text for {sources[0].id} {fault}")
        else:
            text, proposed = answer, True
    merge = Merge(
        id=engine.new_ids(engine.clock(), 1)[0],
        owner=owner,
        content=text,
        sources=tuple(one.id for one in sources),
        differing=sameness.differing([one.content for one in sources]),
        proposed=proposed,
    )
    found.merges.append(merge)
    found.steps += [_step(one, len(stored) - 1, merge.id) for one in stored]


def _asked(summariser: Summariser, sources: Sequence[Memory]) -> tuple[str, str | None]:
    """What a summariser proposes, and what is wrong with it."""
    try:
        answer = summariser(tuple(sources))
    except Exception as error:  # noqa: BLE001  # reason: foreign code may raise anything, and must not stop upkeep
        return "", f"was not made: it raised {type(error).__name__}"
    fault = proposals.fault(answer, [one.content for one in sources])
    return ("", fault) if fault is not None else (answer.strip(), None)


def _step(stored: Stored, others: int, into: str) -> UpkeepStep:
    return UpkeepStep(
        memory_id=stored.id,
        owner=stored.owner,
        version=stored.version,
        state=State.ACTIVE,
        action=UpkeepAction.MERGE,
        reason=f"says the same as {others} {'other' if others == 1 else 'others'}",
        bytes_used=int(stored.facets["bytes"]),
        into=into,
    )
