"""Positions as text: they come back, and nothing else is taken for one."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stand_ins import HandClock
from wellkept import View, codec
from wellkept.errors import InvalidInput, PositionLost
from wellkept.ports import positions
from wellkept.ports.positions import Reached
from wellkept.stores.ram import RamStore
from wellkept.testing import strategies
from wellkept.testing.builders import START, START_US, Writer, owner, put
from wellkept.testing.cases import Cases
from wellkept.types import Owner, Position

ADA, BOB = owner("ada"), owner("bob")
TIMES = st.integers(codec.to_micros(datetime(1, 1, 1, tzinfo=UTC)), codec.to_micros(datetime(9998, 1, 1, tzinfo=UTC)))
REACHED = st.builds(Reached, st.integers(1, 2**62 - 1), st.text("0123456789abcdef", max_size=8), TIMES)
PLACES = st.dictionaries(strategies.owners(), REACHED, max_size=4)
ODD: list[Any] = [None, 5, "text", [], ["e1"], ["e1", [], []], {"e1": []}, [5, []], [None, []]]
READERS: dict[str, Callable[[Any], object]] = {
    "decode": lambda text: positions.decode(text, "e1"),
    "decode_feed": lambda text: positions.decode_feed(text, "e1"),
    "time_of": positions.time_of,
}


def packed(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(PLACES)
def test_a_position_comes_back_and_fits_into_urls(places: dict[Owner, Reached]) -> None:
    text = positions.encode("e1", places)
    assert positions.decode(text, "e1") == places
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert text == positions.encode("e1", dict(reversed(places.items())))
    assert positions.time_of(text) == max((one.at for one in places.values()), default=None)


@given(PLACES)
def test_owners_without_versions_are_left_out(places: dict[Owner, Reached]) -> None:
    with_nobody = {**places, owner("nobody"): Reached(0)}
    assert positions.encode("e1", with_nobody) == positions.encode("e1", places)


@given(st.text(st.characters(codec="utf-8")))
def test_a_place_in_the_feed_comes_back(token: str) -> None:
    assert positions.decode_feed(positions.encode_feed("e1", token), "e1") == token


@given(PLACES, st.text(st.characters(codec="utf-8")).filter(lambda epoch: epoch != "e1"))
def test_a_position_of_another_epoch_is_lost(places: dict[Owner, Reached], epoch: str) -> None:
    for text, read in (
        (positions.encode(epoch, places), positions.decode),
        (positions.encode_feed(epoch, "7"), positions.decode_feed),
    ):
        with pytest.raises(PositionLost) as caught:
            read(text, "e1")
        assert caught.value.hint


NONSENSE: list[Any] = [
    *(None, 5, 1.5, b"text", ["x"], {}, START),
    *("", " ", "nonsense", "a", "é", "\ud800", "\x00", "====", "a" * 100_000),
    *(packed(value) for value in ODD),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    base64.urlsafe_b64encode(b"[" * 5_000 + b"]" * 5_000).decode(),
]
NO_OWNERS = ("", "ada", "[]", '["moon","x"]', '["user",5]', "{}", None, 5)
NO_PLACES: list[Any] = [
    *(None, 5, {"a": 1}, [5], [[]], [None], ["text"]),
    *([['["user","ada"]', *one]] for one in ([], [1], [1, ""], [1, "", 0, 0], ["1", "", 0])),
    *([['["user","ada"]', *one]] for one in ([-1, "", 0], [1.5, "", 0], [1, 5, 0], [1, "", "0"])),
    *([['["user","ada"]', *one]] for one in ([2**62, "", 0], [1, "", 2**62], [1, None, 0])),
    *([['["user","ada"]', *one]] for one in ([1, "", None], [True, "", 0], [1, "", False])),
    *([['["user","ada"]', 1, "", time]] for time in (10**18, -(10**18))),
]


def test_nonsense_is_refused() -> None:
    with Cases() as cases:
        for reader, text in product(READERS, NONSENSE):
            with cases.case(f"{reader} of {text!r}"):
                with pytest.raises(InvalidInput) as caught:
                    READERS[reader](text)
                assert caught.value.details["field"] in ("after", "as_of")
                assert caught.value.hint


def test_what_looks_like_a_position_is_refused() -> None:
    with Cases() as cases:
        for reader, value in product(("decode", "time_of"), NO_PLACES):
            with cases.case(f"{reader} of {value!r}"), pytest.raises(InvalidInput):
                READERS[reader](packed(["e1", value]))


def test_what_names_nobody_is_refused() -> None:
    with Cases() as cases:
        for name in NO_OWNERS:
            with cases.case(name), pytest.raises(InvalidInput):
                positions.decode(packed(["e1", [[name, 1, "", 0]]]), "e1")


@given(st.text())
def test_any_text_is_a_position_or_is_refused(text: str) -> None:
    for read in READERS.values():
        try:
            read(text)
        except (InvalidInput, PositionLost):
            continue


def test_a_place_in_the_feed_is_no_position_of_owners() -> None:
    with pytest.raises(InvalidInput):
        positions.decode(positions.encode_feed("e1", "42"), "e1")
    with pytest.raises(InvalidInput):
        positions.decode_feed(positions.encode("e1", {ADA: Reached(1)}), "e1")
    with pytest.raises(InvalidInput):
        positions.time_of(positions.encode_feed("e1", "42"))


@given(st.lists(st.sampled_from([ADA, BOB]), max_size=8), st.integers(0, 8), st.integers(1, 8))
def test_along_a_page_each_version_has_the_place_behind_it(whose: list[Owner], start: int, limit: int) -> None:
    """Resumed behind any version, exactly those after it come."""
    journal, make = RamStore().journal, Writer()
    journal.append([make.add(one) for one in whose])
    everything = list(journal.versions({ADA, BOB}))
    places = positions.along(None, journal.versions({ADA, BOB}))
    after = None if start == 0 or start > len(places) else places[start - 1]
    page = journal.versions({ADA, BOB}, after=after, limit=limit)
    along = positions.along(after, page)
    assert len(along) == len(page)
    assert (along[-1] if along else page.next) == page.next
    for number, place in enumerate(places, 1):
        assert list(journal.versions({ADA, BOB}, after=place)) == everything[number:]
        assert positions.time_of(place) == max(one.recorded_at for one in everything[:number])


def test_the_time_of_a_position_is_that_of_its_last_version() -> None:
    store, make = RamStore(), Writer()
    journal = store.journal
    assert positions.time_of(journal.position({ADA, BOB})) is None
    put(store, make.add(ADA), make.add(BOB), make.add(ADA))
    assert positions.time_of(journal.position({ADA})) == START_US + 2_000_000
    assert positions.time_of(journal.position({BOB})) == START_US + 1_000_000
    assert positions.time_of(journal.position({ADA, BOB}, START + timedelta(seconds=1))) == START_US + 1_000_000


@pytest.mark.req("L7")
def test_a_position_is_a_time_in_every_store(view: View, clock: HandClock) -> None:
    """What expires is judged by it, wherever the position came from."""
    view.add("short", expires_at=START + timedelta(hours=1))
    clock.forward(minutes=30)
    view.add("long")
    changes = view.changes()
    for place in (view.position(), changes.next, changes[-1].position, view.position(at=clock.time)):
        assert positions.time_of(place) == codec.to_micros(clock.time)
    then = view.position()
    clock.forward(hours=1)
    assert sorted(memory.content for memory in view.list(as_of=then)) == ["long", "short"]
    assert [memory.content for memory in view.list()] == ["long"]


@pytest.mark.req("L7")
def test_a_position_of_another_database_is_lost(view: View) -> None:
    store = RamStore()
    store.journal.append([Writer().add(ADA)])
    for foreign in (store.journal.position({ADA}), Position(packed(["e1", []]))):
        with pytest.raises(PositionLost):
            view.changes(after=foreign)
        with pytest.raises(PositionLost):
            view.list(as_of=foreign)
