"""Quotas: what is counted, what is refused, and that writers cannot overrun them together."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import statistics
from recollect.errors import Conflict, QuotaExceeded
from recollect.ports import Quota, Store, Write
from recollect.testing.basics import snapshot
from recollect.testing.builders import (
    START,
    added,
    erased,
    forgotten,
    later,
    memory,
    new_id,
    owner,
    put,
    restored,
    updated,
    vector,
)
from recollect.testing.concurrency import at_once
from recollect.testing.subject import GENERATED, Subject
from recollect.types import Memory, Owner, Vector

ADA, BOB = owner("ada"), owner("bob")
PATIENCE_S = 120
ROUND = 100
# Runs in other processes: adds memories of a hundred characters until the quota refuses one, and says how many it were.
GREEDY = """
import sys
from recollect import ids
from recollect.errors import QuotaExceeded
from recollect.plugins import open_store
from recollect.ports import Quota
from recollect.testing.builders import added, memory, owner
url, name, limit = sys.argv[1:]
store = open_store(url)
quota = Quota(owners={owner("ada")}, limit_bytes=int(limit))
print("ready", flush=True)
sys.stdin.readline()
count = 0
try:
    while True:
        one = memory("x" * 100, id=ids.uuid7(1_767_268_800_000 + count, name.encode().ljust(10, b"-")))
        store.apply([added(one)], quota=quota)
        count += 1
except QuotaExceeded:
    sys.stdout.write(str(count))
finally:
    store.close()
"""


def quota(limit_bytes: int, *owners: Owner) -> Quota:
    """So many bytes for the owners; for ada, if none is named."""
    return Quota(owners=frozenset(owners or (ADA,)), limit_bytes=limit_bytes)


def size(*memories: Memory) -> int:
    """What the memories count for."""
    return sum(map(statistics.footprint, memories))


def fits(store: Store, writes: list[Write], within: Quota) -> bool:
    """Whether a quota let the writes through."""
    try:
        store.apply(writes, quota=within)
    except QuotaExceeded:
        return False
    return True


@pytest.mark.req("L12", "H5")
class Quotas(Subject):
    """Writes under a limit."""

    def test_what_fits_to_the_byte_is_written(self, store: Store) -> None:
        one, two = memory("one"), memory("ünï \U0001f375", tags=("tea",), vector=vector(1, 0))
        limit = size(one, two)
        store.apply([added(one)], quota=quota(limit))
        assert not fits(store, [added(replace(two, content=two.content + "."))], quota(limit))
        assert fits(store, [added(two)], quota(limit))
        assert store.usage({ADA}) == store.stats({ADA}, START).bytes_used == limit

    def test_a_refused_write_leaves_no_trace(self, store: Store) -> None:
        put(store, one := memory("one"))
        before = snapshot(store, ADA, BOB)
        new = memory("two", key="k", vector=vector(1, 0))
        with pytest.raises(QuotaExceeded) as raised:
            store.apply([added(memory("of bob's", BOB)), added(new)], quota=quota(size(one)))
        assert raised.value.details == {"usage": size(one), "needed": size(new), "limit": size(one)}
        assert snapshot(store, ADA, BOB) == before
        assert "embedder" not in store.settings(), "a refused vector decided on the embedder"
        assert store.keys(ADA, ["k"]) == {}
        assert len(put(store, new)) == 1

    def test_a_batch_is_refused_as_a_whole(self, store: Store) -> None:
        batch = [memory("x" * 100) for _ in range(20)]
        assert not fits(store, [added(one) for one in batch], quota(size(*batch) - 1))
        assert store.usage({ADA}) == 0
        assert fits(store, [added(one) for one in batch], quota(size(*batch)))

    def test_the_owners_of_a_quota_count_together_and_nobody_else(self, store: Store) -> None:
        mine, his, elsewhere = memory("mine"), memory("his", BOB), memory("x" * 1000, owner("eve"))
        both = quota(size(mine, his), ADA, BOB)
        put(store, elsewhere)
        assert fits(store, [added(mine)], both)
        assert fits(store, [added(his)], both)
        assert not fits(store, [added(memory("more", BOB))], both)
        assert fits(store, [added(memory("whose else", owner("eve")))], both)
        assert store.usage({ADA, BOB}) == size(mine, his)
        assert store.usage({owner("nobody")}) == 0

    def test_writes_that_do_not_grow_pass_above_the_limit(self, store: Store) -> None:
        one, two = memory("some content"), memory("other content", vector=vector(1, 0))
        put(store, one, two)
        none = quota(0)
        same = updated(one, content="same content"[:12])
        assert fits(store, [same], none)
        shorter = updated(same.memory, content="less")
        assert fits(store, [shorter], none)
        assert not fits(store, [updated(shorter.memory, content="more again")], none)
        bare = updated(two, write={"keeps_vector": False, "vector": None})
        assert fits(store, [bare], none)
        assert not fits(store, [updated(bare.memory, write={"keeps_vector": False, "vector": vector(1, 0)})], none)
        assert fits(store, [erased(bare.memory)], none)
        assert fits(store, [], none)

    def test_erasing_makes_room_and_forgetting_does_not(self, store: Store) -> None:
        one, two = memory("one"), memory("two")
        put(store, one)
        within = quota(size(one, two) - 1)
        gone = forgotten(one)
        store.apply([gone])
        assert not fits(store, [added(two)], within)
        store.apply([erased(gone.memory)])
        assert fits(store, [added(two)], within)

    def test_a_batch_may_make_room_for_itself(self, store: Store) -> None:
        put(store, one := memory("x" * 100))
        new = memory("y" * 100)
        within = quota(size(one))
        assert not fits(store, [added(new)], within)
        assert fits(store, [added(new), erased(one)], within), "what counts is what a batch leaves"

    def test_of_several_versions_in_a_batch_the_last_counts(self, store: Store) -> None:
        one = memory("one", vector=vector(1, 0))
        long = updated(one, content="x" * 1000)
        short = updated(long.memory, content="two", write={"keeps_vector": False, "vector": None})
        assert fits(store, [added(one), long, short], quota(size(replace(short.memory, vector=None))))
        last = updated(short.memory, content="x" * 1000)
        assert not fits(store, [updated(short.memory, content="a"), _one_later(last)], quota(500))

    def test_a_vector_that_stays_is_counted(self, store: Store) -> None:
        put(store, one := memory("one", vector=vector(1, 0, 0, 0)))
        changed = updated(one, content="four")
        assert not fits(store, [changed], quota(size(one)))
        assert fits(store, [changed], quota(size(one) + 1))
        assert store.usage({ADA}) == size(one) + 1

    def test_vectors_that_come_later_are_counted(self, store: Store) -> None:
        put(store, one := memory("one"))
        within = quota(size(one) + 20)
        assert fits(store, [updated(one, content="one.")], within)
        current = replace(one, content="one.", version=2)
        store.embed([later(store, current, vector(1, 0, 0, 0))])
        assert store.usage({ADA}) == size(one) + 1 + 16
        assert not fits(store, [updated(current, content="four.")], quota(size(one) + 17))
        store.embed([later(store, current, Vector.of("other", [1] * 8))])
        assert store.adopt("other", 8)
        assert store.usage({ADA}) == size(one) + 1 + 32
        assert not fits(store, [updated(current, content="four.")], quota(size(one) + 33))

    def test_a_quota_does_not_hide_a_conflict(self, store: Store) -> None:
        put(store, one := memory("one"))
        with pytest.raises(Conflict):
            store.apply([added(one)], quota=quota(10_000))

    @GENERATED
    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["add", "add", "update", "forget", "restore", "erase", "embed"]),
                st.integers(0, 5),
                st.integers(0, 120),
                st.sampled_from([None, None, 150, 400, 1_000]),
                st.booleans(),
            ),
            max_size=14,
        )
    )
    def test_usage_is_what_is_stored_whatever_was_written(self, store: Store, steps: list[tuple[Any, ...]]) -> None:
        """By writers with a quota and by writers without one, in any order."""
        ours = owner(new_id())
        for what, which, length, limit, has_vector in steps:
            known = [stored.memory for stored in store.scan({ours}, vectors=True)]
            before = size(*known)
            write = _step(what, known[which % len(known)] if known else None, ours, length, has_vector)
            if isinstance(write, Write):
                within = None if limit is None else quota(limit, ours)
                try:
                    store.apply([write], quota=within)
                    refused = False
                except QuotaExceeded:
                    refused = True
                now = size(*(stored.memory for stored in store.scan({ours}, vectors=True)))
                assert refused is False or now == before
                assert limit is None or now <= max(limit, before)
            elif known:
                store.embed([later(store, known[which % len(known)], vector(*[0.5] * 4))])
            stored = [stored.memory for stored in store.scan({ours}, vectors=True)]
            assert store.usage({ours}) == store.stats({ours}, START).bytes_used == size(*stored)
            assert Store.usage(store, {ours}) == size(*stored)

    def test_threads_cannot_overrun_it_together(self, store: Store) -> None:
        limit = 20 * size(memory("x" * ROUND))
        batches = [[memory("x" * ROUND) for _ in range(10)] for _ in range(8)]

        def add(batch: list[Memory]) -> int:
            return sum(fits(store, [added(one)], quota(limit)) for one in batch)

        jobs: list[Callable[[], int]] = [partial(add, batch) for batch in batches]
        assert sum(at_once(jobs)) == 20
        assert store.usage({ADA}) == limit

    def test_each_thread_has_its_own_quota(self, store: Store) -> None:
        """Writes that share a transaction are still accepted or refused each by itself."""
        one = size(memory("x" * ROUND, owner("t0")))
        limits = [0, one, 3 * one, None] * 2

        def add(number: int, limit: int | None) -> int:
            own = owner(f"t{number}")
            within = None if limit is None else quota(limit, own)
            batch = [memory("x" * ROUND, own) for _ in range(5)]
            if within is None:
                return sum(len(put(store, one)) for one in batch)
            return sum(fits(store, [added(one)], within) for one in batch)

        written = at_once([partial(add, number, limit) for number, limit in enumerate(limits)])
        assert written == [0, 1, 3, 5] * 2
        assert [store.usage({owner(f"t{number}")}) for number in range(8)] == [one * count for count in written]

    def test_what_others_wrote_is_counted(self, store: Store, place: Path) -> None:
        """Also if they have no quota, change what was there, or erase it."""
        if not (store.capabilities.durable and store.capabilities.shared):
            pytest.skip("nobody else can write to this store")
        first = memory("x" * ROUND)
        within = quota(3 * size(first))
        assert fits(store, [added(first)], within)
        with closing(self.open_store(place)) as other:
            put(other, memory("y" * ROUND))
            assert store.usage({ADA}) == 2 * size(first)
            longer = updated(first, content="z" * 2 * ROUND)
            other.apply([longer])
            assert not fits(store, [added(memory("x"))], within)
            other.apply([erased(longer.memory)])
            assert fits(store, [added(memory("x" * ROUND))], within)
            assert not fits(other, [added(memory("x" * 2 * ROUND))], within)

    def test_processes_cannot_overrun_it_together(self, store: Store, place: Path) -> None:
        url = self.url(place)
        if url is None or not store.capabilities.shared:
            pytest.skip("no other process can use this store")
        one = size(memory("x" * ROUND))
        limit = 60 * one
        children = [_greedy(url, name, limit) for name in ("left", "right")]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told = [child.communicate(timeout=PATIENCE_S) for child in children]
        assert [child.returncode for child in children] == [0, 0], told
        assert sum(int(count) for count, _ in told) == 60
        assert store.usage({ADA}) == limit


def _greedy(url: str, name: str, limit: int) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", GREEDY, url, name, str(limit)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603  # our own script


def _one_later(write: Write) -> Write:
    """The same change, one version later."""
    return replace(write, memory=replace(write.memory, version=write.memory.version + 1))


def _step(what: str, known: Memory | None, ours: Owner, length: int, has_vector: bool) -> Write | None:
    brought = vector(*[0.25] * 4) if has_vector else None
    if what == "add" or known is None:
        return added(memory("x" * length + "!", ours, vector=brought))
    if what == "update":
        kept = {} if has_vector else {"keeps_vector": False, "vector": None}
        return updated(replace(known, vector=None), content="y" * length + "!", write=kept)
    makers = {"forget": forgotten, "restore": restored, "erase": erased}
    return makers[what](known) if what in makers else None
