"""Ids: valid, in the order of time, never twice."""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Memories, Memory
from recollect.ids import Entropy, uuid7
from tests.unit.stand_ins import HandClock

TIMES = st.integers(0, 2**48 - 1)
ENTROPY = st.binary(min_size=10, max_size=10)


@given(TIMES, ENTROPY)
def test_an_id_is_a_uuid_of_version_7(time_ms: int, entropy: bytes) -> None:
    text = uuid7(time_ms, entropy)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 80 == time_ms


@given(TIMES, TIMES, ENTROPY, ENTROPY)
def test_ids_sort_as_their_times(first: int, second: int, one: bytes, other: bytes) -> None:
    if first != second:
        assert (uuid7(first, one) < uuid7(second, other)) == (first < second)


@given(TIMES, ENTROPY, st.integers(0, 79))
def test_every_random_bit_counts_but_six(time_ms: int, entropy: bytes, bit: int) -> None:
    """Six of eighty are taken by the version and the variant."""
    flipped = (int.from_bytes(entropy, "big") ^ 1 << bit).to_bytes(10, "big")
    fixed = bit >= 76 or bit in (62, 63)
    assert (uuid7(time_ms, flipped) == uuid7(time_ms, entropy)) is fixed


def test_entropy_is_fetched_for_many_ids_and_given_once() -> None:
    calls: list[int] = []

    def source(size: int) -> bytes:
        calls.append(size)
        return os.urandom(size)

    entropy = Entropy(source)
    taken = [entropy(10) for _ in range(1_000)]
    assert {len(one) for one in taken} == {10}
    assert len(set(taken)) == 1_000
    assert len(calls) < 20
    assert len(entropy(30)) == 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_gives_ids_of_its_own() -> None:
    entropy = Entropy()
    entropy(10)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"".join(entropy(10) for _ in range(20)))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 200)
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 200
    assert {theirs[start : start + 10] for start in range(0, 200, 10)}.isdisjoint(entropy(10) for _ in range(63))


@pytest.mark.req("L1", "L2")
def test_the_engine_gives_no_id_twice(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")

    def add(number: int) -> list[Memory]:
        return view.add_many([f"{number}.{part}" for part in range(50)])

    with ThreadPoolExecutor(4) as threads:
        first = [memory.id for batch in threads.map(add, range(20)) for memory in batch]
    clock.forward(milliseconds=1)
    later = [memory.id for memory in add(20)]
    assert len(set(first + later)) == 1050
    assert max(first) < min(later)
    assert {uuid.UUID(one).int >> 80 for one in first} == {int(memories_ms(clock)) - 1}


def memories_ms(clock: HandClock) -> float:
    return clock.time.timestamp() * 1000
