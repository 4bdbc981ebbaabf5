"""Working memory refuses what it cannot keep: limits, keys, values and fields, with nothing changed."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Literal

import msgspec
import pytest

from tests.support.stand_ins import HandClock
from wellkept.errors import ContentTooLong, InvalidInput, LimitReached, WellkeptError
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.working import Limits, WorkingMemory


@dataclass
class Step:
    name: str
    done: bool = False


class Turn(msgspec.Struct):
    role: Literal["user", "assistant"]
    words: int


class Opaque:
    """Not JSON. The ids of tests contain its repr, which must be the same in every worker of a parallel run."""

    def __repr__(self) -> str:
        return "Opaque()"


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    return WorkingMemory("debugger", clock=clock)


@pytest.mark.req("W6")
def test_there_are_ten_thousand_entries_one_megabyte_and_a_hundred_scopes() -> None:
    assert Limits() == Limits(entries=10_000, entry_bytes=1_048_576, scopes=100)


@pytest.mark.req("W6")
def test_an_entry_may_have_a_megabyte_and_not_a_byte_more(working: WorkingMemory) -> None:
    working.set("key", "x" * (1_048_576 - 2))
    with pytest.raises(ContentTooLong, match="'key' has 1048577 bytes, the limit is 1048576") as caught:
        working.set("key", "y" * (1_048_576 - 1))
    assert caught.value.details == {"field": "value", "key": "key", "bytes": 1_048_577, "limit": 1_048_576}
    assert working.get("key")[0] == "x"
    assert working.stats().bytes_used == 1_048_576
    with pytest.raises(ContentTooLong):
        working.set("key", [NAN] * 300_000)
    with pytest.raises(ContentTooLong, match="has 1048580 bytes"):
        working.set("key", "x" * (1_048_576 - 9), metadata={"a": "bcd"})


@pytest.mark.req("W6")
def test_the_next_entry_over_the_limit_is_refused_until_there_is_room(clock: HandClock) -> None:
    working = WorkingMemory("a", clock=clock, limits=Limits(entries=3))
    scope = working.create_scope("s")
    working.set("a", 1)
    working.set("b", 1, ttl=timedelta(minutes=1))
    scope.set("c", 1)
    for full in (working, scope):
        with pytest.raises(LimitReached, match=r"cannot add 'd'.* has 3 entries, the limit is 3") as caught:
            full.set("d", 1)
        assert caught.value.details == {"field": "key", "key": "d", "entries": 3, "limit": 3}
    with pytest.raises(LimitReached):
        working.get_or_set("d", lambda: 1)
    working.set("a", 2)
    clock.forward(minutes=1)
    scope.set("d", 1)
    with pytest.raises(LimitReached):
        working.set("e", 1)
    scope.dispose()
    working.set("e", 1)
    assert working.keys() == ("a", "e")


@pytest.mark.req("W6")
def test_the_default_limit_of_entries_holds(working: WorkingMemory) -> None:
    for number in range(10_000):
        working.set(f"k{number}", number)
    with pytest.raises(LimitReached, match="cannot add 'one more'") as caught:
        working.set("one more", 1)
    assert caught.value.details == {"field": "key", "key": "one more", "entries": 10_000, "limit": 10_000}
    assert (len(working), working.stats().entries) == (10_000, 10_000)


class Loop(list[object]):
    """Holds itself."""

    def __init__(self) -> None:
        super().__init__([self])


NAN: Any = float("nan")
BAD_KEYS: list[tuple[object, str]] = [
    ("", "is empty"),
    ("a\nb", "control characters"),
    ("\x00", "control characters"),
    ("\x7f", "control characters"),
    ("a\u2028", "control characters"),
    ("\ud800", "control characters"),
    ("x" * 1_001, "has 1001 characters"),
    (None, "must be text, not NoneType"),
    (7, "must be text, not int"),
    (b"key", "must be text, not bytes"),
    ([], "must be text, not list"),
]
BAD_VALUES: list[object] = [
    *(object(), object, lambda: 1, {("a", 1): 1}, {"deep": [object()]}, "\ud800", Loop(), NAN, [1, NAN, None]),
    *({"a": float("inf")}, Step("x", done=NAN), Turn("user", NAN), {"a": {(1.0, NAN)}}, iter([1]), 1j),
]
BAD_FIELDS: list[tuple[str, object]] = [
    *(("type", "planet"), ("type", 3), ("importance", 1.1), ("importance", NAN), ("importance", "high")),
    *(("importance", True), ("tags", "text"), ("tags", ["a\nb"]), ("tags", [""]), ("tags", 3)),
    *(("metadata", [1]), ("metadata", {1: 2}), ("metadata", {"a": Opaque()}), ("metadata", {"a": NAN})),
    *(("metadata", ""), ("expires_at", "tomorrow"), ("expires_at", datetime(2026, 1, 1))),  # noqa: DTZ001  # is refused
    *(("ttl", 5), ("ttl", timedelta(0)), ("ttl", timedelta(seconds=-1)), ("ttl", timedelta.max)),
]


@pytest.mark.req("W6")
def test_bad_keys_are_refused_everywhere(working: WorkingMemory) -> None:
    scope = working.create_scope("s")
    uses: list[Callable[[Any], object]] = [
        *(lambda key: working.set(key, 1), working.get, lambda key: working.get_or_set(key, lambda: 1)),
        *(working.contains, working.remove, working.entry, scope.get, scope.get_local, scope.contains_local),
        *(lambda key: key in working, lambda key: scope.set(key, 1)),
    ]
    with Cases() as cases:
        for (key, says), (place, use) in product(BAD_KEYS, enumerate(uses)):
            with cases.case(key, place):
                with pytest.raises(InvalidInput, match=says) as caught:
                    use(key)
                assert caught.value.details["field"] == "key"
                assert working.stats().entries == 0


@pytest.mark.req("W6")
def test_values_that_are_not_json_are_refused_by_key(working: WorkingMemory) -> None:
    with Cases() as cases:
        for value in BAD_VALUES:
            with cases.case(type(value)):
                working.set("key", "before")
                with pytest.raises(InvalidInput, match="the value for 'key' ") as caught:
                    working.set("key", value)
                assert caught.value.details == {"field": "value", "key": "key"}
                assert caught.value.__context__ is None or caught.value.__suppress_context__
                assert working.get("key") == "before"


@pytest.mark.req("W6")
def test_bad_fields_are_refused_by_name(working: WorkingMemory) -> None:
    with Cases() as cases:
        for name, value in BAD_FIELDS:
            with cases.case(name, value):
                given: Mapping[str, Any] = {name: value}
                with pytest.raises(InvalidInput) as caught:
                    working.set("key", 1, **given)
                assert caught.value.details["field"] == name
                assert len(working) == 0


@pytest.mark.req("W6")
def test_a_time_and_a_span_contradict_each_other(working: WorkingMemory) -> None:
    ran: list[int] = []
    both: dict[str, Any] = {"expires_at": START, "ttl": timedelta(1)}
    for use in (lambda: working.set("a", 1, **both), lambda: working.get_or_set("a", lambda: ran.append(1), **both)):
        with pytest.raises(InvalidInput, match="without expires_at"):
            use()
    assert (len(working), ran) == (0, [])


OTHERS: tuple[Callable[[HandClock, Any], object], ...] = (
    lambda clock, _: WorkingMemory("", clock=clock),
    lambda clock, _: WorkingMemory("a\nb", clock=clock),
    lambda clock, wrong: WorkingMemory(wrong, clock=clock),
    lambda clock, wrong: WorkingMemory("a", clock=clock, limits=wrong),
    lambda clock, _: Limits(entries=-1),
    lambda clock, wrong: Limits(scopes=wrong),
    lambda clock, wrong: WorkingMemory("a", clock=clock).get_or_set("k", wrong),
    lambda clock, wrong: WorkingMemory("a", clock=clock).clear(scopes=wrong),
)


@pytest.mark.req("W6")
def test_other_bad_input_is_refused(clock: HandClock) -> None:
    with Cases() as cases:
        for number, make in enumerate(OTHERS):
            with cases.case(number), pytest.raises(InvalidInput):
                make(clock, 1.5)


@pytest.mark.req("W6")
def test_a_key_or_a_scope_name_that_is_only_white_space_is_refused(working: WorkingMemory) -> None:
    uses: list[tuple[Callable[[str], object], str]] = [
        (lambda blank: working.set(blank, 1), "key"),
        (working.get, "key"),
        (lambda blank: working.get_or_set(blank, lambda: 1), "key"),
        (working.create_scope, "name"),
    ]
    with Cases() as cases:
        for blank, (place, (use, field)) in product((" ", "   ", "\u00a0", "\u3000 "), enumerate(uses)):
            with cases.case(blank, place):
                with pytest.raises(InvalidInput, match=f"{field} is blank") as caught:
                    use(blank)
                assert caught.value.details == {"field": field}
                assert (len(working), working.active_scopes()) == (0, ())


@pytest.mark.req("W6", "H10")
def test_every_error_names_its_operation(working: WorkingMemory) -> None:
    scope = working.create_scope("s")
    ended = working.create_scope("ended")
    ended.dispose()
    refused: dict[str, list[Callable[[], object]]] = {
        "set": [lambda: working.set("", 1), lambda: working.set("k", Opaque()), lambda: ended.set("k", 1)],
        "get": [lambda: working.get(""), lambda: ended.get("k")],
        "get_or_set": [lambda: working.get_or_set("k", 1), lambda: ended.get_or_set("k", lambda: 1)],  # type: ignore[call-overload]
        "aget_or_set": [lambda: asyncio.run(ended.aget_or_set("k", lambda: 1))],
        "remove": [lambda: working.remove(""), lambda: ended.remove("k")],
        "contains": [lambda: "" in working, lambda: ended.contains("k")],
        "entry": [lambda: working.entry(""), lambda: ended.entry("k")],
        "all": [ended.all],
        "keys": [ended.keys],
        "clear": [lambda: working.clear(scopes=1)],  # type: ignore[arg-type]
        "create_scope": [lambda: working.create_scope(""), lambda: ended.create_scope("x")],
        "restore": [lambda: working.restore(7)],  # type: ignore[arg-type]
        "children": [ended.children],
        "get_local": [lambda: scope.get_local(""), lambda: ended.get_local("k")],
        "contains_local": [lambda: scope.contains_local(""), lambda: ended.contains_local("k")],
        "local_count": [lambda: ended.local_count],
        "local_entries": [ended.local_entries],
        "merge_to_parent": [ended.merge_to_parent, lambda: scope.merge_to_parent(overwrite=7)],  # type: ignore[arg-type]
    }
    for operation, calls in refused.items():
        for call in calls:
            with pytest.raises(WellkeptError) as caught:
                call()
            assert caught.value.operation == operation
