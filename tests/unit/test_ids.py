"""Ids: valid, in the order of time, never twice."""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stand_ins import HandClock
from wellkept import Memories, Memory
from wellkept.ids import Entropy, StampClock, new_origin, stamp_origin, stamp_time, uuid7
from wellkept.testing.cases import Cases
from wellkept.types import Stamp

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


# -- stamps -------------------------------------------------------------------------------------------------------

ORIGIN = "9d2e8b7a6c5d"
MICROS = st.integers(-(10**16), 10**18) | st.integers(1_700_000_000_000_000, 1_700_000_000_000_003)
STAMPS = st.tuples(st.integers(0, 16**14 - 2), st.integers(0, 16**6 - 1)).map(
    lambda clock: Stamp(f"{clock[0]:014x}{clock[1]:06x}-000000000000.000000")
)


@pytest.mark.req("N10")
@given(st.lists(st.tuples(MICROS, st.integers(1, 5)), max_size=20))
def test_stamps_rise_whatever_the_clock_does(asked: list[tuple[int, int]]) -> None:
    clock = StampClock(ORIGIN)
    made = [stamp for micros, count in asked for stamp in clock.stamps(micros, count)]
    assert made == sorted(set(made))
    for stamp in made:
        assert stamp_origin(stamp) == ORIGIN
        assert len(stamp) == len("060a24181e4000000000-9d2e8b7a6c5d.000000")
    assert [stamp_time(stamp) for stamp in made] == sorted(stamp_time(stamp) for stamp in made)


@given(st.integers(0, 16**14 - 1))
def test_a_stamp_tells_the_time_of_a_clock_that_runs(micros: int) -> None:
    assert stamp_time(StampClock(ORIGIN).stamp(micros))[0] == micros


@pytest.mark.req("N10")
@given(st.lists(st.tuples(st.booleans(), MICROS), max_size=20))
def test_two_writers_of_one_store_never_make_the_same_stamp(asked: list[tuple[bool, int]]) -> None:
    writers = (StampClock(ORIGIN, lambda size: b"a" * size), StampClock(ORIGIN, lambda size: b"b" * size))
    made = [writers[first].stamp(micros) for first, micros in asked]
    assert len(set(made)) == len(made)
    assert len({StampClock(ORIGIN).stamp(5) for _ in range(50)}) == 50, "by chance alone"


@pytest.mark.req("N10")
@given(STAMPS, MICROS, st.lists(MICROS, max_size=3))
def test_what_is_written_after_a_stamp_was_seen_comes_after_it(seen: Stamp, micros: int, before: list[int]) -> None:
    clock = StampClock(ORIGIN)
    made = [clock.stamp(one) for one in before]
    clock.observe(seen)
    after = clock.stamp(micros)
    assert after > seen
    assert all(after > one for one in made)


def test_a_clock_that_stands_still_never_runs_out_of_stamps() -> None:
    clock = StampClock(ORIGIN)
    clock.observe(Stamp(f"{5:014x}{16**6 - 2:06x}-000000000000.000000"))
    made = clock.stamps(5, 3)
    assert made == sorted(made)
    assert [stamp_time(one) for one in made] == [(5, 16**6 - 1), (6, 0), (6, 1)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_is_another_writer() -> None:
    clock = StampClock(ORIGIN)
    clock.stamp(5)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, clock.stamp(5).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs, ours = os.read(reader, 100).decode(), clock.stamp(5)
    os.close(reader)
    os.close(writer)
    assert theirs != ours
    assert stamp_time(Stamp(theirs)) == stamp_time(ours)


def test_threads_never_make_the_same_stamp() -> None:
    clock = StampClock(ORIGIN)
    with ThreadPoolExecutor(4) as threads:
        made = [stamp for batch in threads.map(lambda _: clock.stamps(5, 50), range(40)) for stamp in batch]
    assert len(set(made)) == 2_000


def test_what_is_no_stamp_is_told() -> None:
    with Cases() as cases:
        for text in ("", "x", "-", "060a24181e4000000000", "0006-a.b", "zz060a24181e40000000-a.b"):
            with cases.case(text):
                _no_stamp(text)


def _no_stamp(text: str) -> None:
    with pytest.raises(ValueError, match=r"stamp|invalid literal"):
        stamp_time(Stamp(text))


def test_origins_differ() -> None:
    assert len({new_origin() for _ in range(100)}) == 100
    assert len(new_origin()) == 12
