"""Working memory of one level: values, typed reads, entries, expiry, limits and bad input."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest

from tests.support.stand_ins import HandClock
from wellkept.errors import ContentTooLong, InvalidInput
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import MemoryType
from wellkept.working import Limits, WorkingMemory, WorkingStats

SECRET = "the-secret-value"


class Colour(StrEnum):
    RED = "red"


@dataclass
class Step:
    name: str
    done: bool = False


@dataclass(frozen=True)
class Plan:
    goal: str
    steps: list[Step] = field(default_factory=list)
    due: datetime | None = None


class Turn(msgspec.Struct):
    role: Literal["user", "assistant"]
    words: int


class Strict(msgspec.Struct):
    text: str

    def __post_init__(self) -> None:
        raise ValueError(self.text)


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    return WorkingMemory("debugger", clock=clock)


PLAIN: tuple[tuple[object, object], ...] = (
    (None, None),
    (True, True),
    (3, 3),
    (2**80, 2**80),
    (-0.5, -0.5),
    ("", ""),
    ("grüße\n\x00 🌍", "grüße\n\x00 🌍"),
    ([1, "a", None], [1, "a", None]),
    ((1, 2), [1, 2]),
    ({"a": {"b": []}}, {"a": {"b": []}}),
    ({1: "one"}, {"1": "one"}),
    (Plan("ship", [Step("test")]), {"goal": "ship", "steps": [{"name": "test", "done": False}], "due": None}),
    (Turn("user", 3), {"role": "user", "words": 3}),
    (Colour.RED, "red"),
    (START, "2026-01-01T12:00:00Z"),
    (b"ab", "YWI="),
)


@pytest.mark.req("W2")
def test_a_value_comes_back_as_plain_json(working: WorkingMemory) -> None:
    with Cases() as cases:
        for value, plain in PLAIN:
            with cases.case(value):
                working.set("key", value)
                assert working.get("key") == plain
                assert "key" in working
                assert working.contains("key")


TYPED: tuple[tuple[object, Any], ...] = (
    (Plan("ship", [Step("test", done=True)], START), Plan),
    (Turn("assistant", 3), Turn),
    ([Step("a")], list[Step]),
    ({"a": 1}, dict[str, int]),
    ({1: 2.5}, dict[int, float]),
    (None, int | None),
    (("x", 1), tuple[str, int]),
    (START, datetime),
    (b"ab", bytes),
    (Colour.RED, Colour),
    ({1, 2}, set[int]),
)


@pytest.mark.req("W2")
def test_a_typed_read_gives_the_type(working: WorkingMemory) -> None:
    with Cases() as cases:
        for value, kind in TYPED:
            with cases.case(value, kind):
                working.set("key", value)
                assert working.get("key", type=kind) == value
                assert working.get_or_set("key", lambda: 1 / 0, type=kind) == value


UNFIT: tuple[tuple[object, Any, str], ...] = (
    (SECRET, int, "int"),
    ({"goal": "x", "steps": [{"name": 3, "done": SECRET}]}, Plan, "Plan, at $.steps[0].name"),
    ({"role": SECRET, "words": 1}, Turn, "Turn, at $.role"),
    (SECRET, Colour, "Colour"),
    ({SECRET: "x"}, dict[str, int], "dict[str, int]"),
    ({"text": SECRET}, Strict, "Strict"),
    (None, int, "int"),
    (SECRET, 3, "3"),
    (SECRET, object(), "object"),
    (SECRET, HandClock, "HandClock"),
)


@pytest.mark.req("W2")
def test_what_does_not_fit_its_type_is_refused_without_a_word_of_it(working: WorkingMemory) -> None:
    with Cases() as cases:
        for value, kind, says in UNFIT:
            with cases.case(kind, says):
                working.set("state", value)
                with pytest.raises(InvalidInput) as caught:
                    working.get("state", type=kind)
                assert "'state'" in str(caught.value)
                assert says in str(caught.value)
                assert caught.value.details["key"] == "state"
                assert caught.value.__cause__ is None
                assert caught.value.__suppress_context__
                assert SECRET not in repr((str(caught.value), caught.value.details))
                assert working.get("state") == value


@pytest.mark.req("W2")
def test_a_missing_key_gives_the_default(working: WorkingMemory) -> None:
    assert working.get("a") is None
    assert working.get("a", default=7) == 7
    assert working.get("a", type=int) is None
    assert working.get("a", type=int, default="none") == "none"
    assert not working.contains("a")
    assert working.entry("a") is None
    assert not working.remove("a")


@pytest.mark.req("W2")
def test_values_cannot_be_changed_from_outside(working: WorkingMemory) -> None:
    value, notes = {"list": [1]}, {"why": ["x"]}
    working.set("key", value, metadata=notes)
    value["list"].append(2)
    notes["why"].append("y")
    working.get("key")["list"].append(3)
    entry = working.entry("key")
    assert entry is not None
    entry.value["list"].append(4)
    entry.metadata["why"].append("z")
    assert working.get("key") == {"list": [1]}
    assert working.all()["key"].metadata == {"why": ["x"]}


@pytest.mark.req("W2")
def test_keys_are_listed_removed_and_cleared(working: WorkingMemory) -> None:
    for number, key in enumerate(["b", "a", "B"]):
        working.set(key, number)
    assert (len(working), list(working), working.keys()) == (3, ["b", "a", "B"], ("b", "a", "B"))
    assert {key: entry.value for key, entry in working.all().items()} == {"b": 0, "a": 1, "B": 2}
    assert working.remove("a")
    assert working.keys() == ("b", "B")
    assert working.clear() == 2
    assert (len(working), working.keys(), working.clear()) == (0, (), 0)


@pytest.mark.req("W2")
def test_iterating_allows_changes(working: WorkingMemory) -> None:
    for number in range(5):
        working.set(f"k{number}", number)
    for key in working:
        working.remove(key)
        working.set(key + "x", 1)
    assert len(working) == 5


@pytest.mark.req("W2")
def test_get_or_set_runs_its_factory_only_if_the_key_is_missing(working: WorkingMemory) -> None:
    made: list[int] = []

    def factory() -> Step:
        made.append(1)
        return Step("look")

    assert working.get_or_set("step", factory) == {"name": "look", "done": False}
    assert working.get_or_set("step", factory, type=Step) == Step("look")
    assert working.get_or_set("other", factory, type=Step) == Step("look")
    assert made == [1, 1]
    working.set("empty", None)
    assert working.get_or_set("empty", factory) is None


@pytest.mark.req("W2")
@pytest.mark.parametrize(
    ("factory", "kind", "error"),
    [
        (lambda: 1 / 0, None, ZeroDivisionError),
        (object, None, InvalidInput),
        (lambda: "text", int, InvalidInput),
        (lambda: "x" * 200, None, ContentTooLong),
    ],
)
def test_a_factory_that_fails_stores_nothing_and_can_be_tried_again(
    clock: HandClock, factory: Callable[[], object], kind: Any, error: type[Exception]
) -> None:
    working = WorkingMemory("a", clock=clock, limits=Limits(entry_bytes=100))
    for _ in range(2):
        with pytest.raises(error):
            working.get_or_set("key", factory, type=kind)
    assert (len(working), working.stats().entries) == (0, 0)
    assert working.get_or_set("key", lambda: 1) == 1


@pytest.mark.req("W2")
def test_what_is_set_while_a_factory_runs_stays(working: WorkingMemory) -> None:
    def factory() -> str:
        working.set("key", "set")
        return "made"

    assert working.get_or_set("key", factory) == "set"
    assert working.get("key") == "set"


@pytest.mark.req("W2", "W7")
def test_a_factory_may_use_the_memory_but_not_wait_for_itself(working: WorkingMemory) -> None:
    assert working.get_or_set("a", lambda: working.get_or_set("b", lambda: 1) + 1) == 2
    assert (working.get("a"), working.get("b")) == (2, 1)
    with pytest.raises(InvalidInput, match="'c' waits for its own result"):
        working.get_or_set("c", lambda: working.get_or_set("c", lambda: 1))
    with pytest.raises(InvalidInput, match="waits for its own result"):
        working.get_or_set("c", lambda: working.get_or_set("d", lambda: working.get_or_set("c", lambda: 1)))
    assert working.keys() == ("b", "a")


@pytest.mark.req("W4")
def test_an_entry_knows_all_about_itself(working: WorkingMemory, clock: HandClock) -> None:
    until = START + timedelta(hours=1)
    working.set(
        "plan",
        Plan("ship"),
        type="decision",
        importance=1,
        tags=["a", "b", "a"],
        metadata={"n": [1]},
        expires_at=until,
    )
    entry = working.entry("plan")
    assert entry is not None
    assert (entry.key, entry.content) == ("plan", '{"goal":"ship","steps":[],"due":null}')
    assert entry.type_name.endswith("test_working_memory.Plan")
    assert (entry.type, entry.importance, entry.tags) == (MemoryType.DECISION, 1.0, ("a", "b"))
    assert (dict(entry.metadata), entry.timestamp, entry.expires_at) == ({"n": [1]}, START, until)
    assert (entry.access_count, entry.last_accessed_at) == (0, None)
    assert len(entry.id) == 36
    with pytest.raises(AttributeError):
        entry.content = "1"  # type: ignore[misc]  # frozen is what is proven


@pytest.mark.req("W4")
def test_reads_are_counted_and_looking_is_not(working: WorkingMemory, clock: HandClock) -> None:
    working.set("key", 1)
    read_at = clock.forward(minutes=1)
    working.get("key")
    working.get("key", type=int)
    working.get_or_set("key", lambda: 2)
    clock.forward(minutes=1)
    working.contains("key")
    working.all()
    working.keys()
    working.snapshot()
    entry = working.entry("key")
    assert entry is not None
    assert (entry.access_count, entry.last_accessed_at, entry.timestamp) == (3, read_at, START)


@pytest.mark.req("W4")
def test_setting_a_key_again_renews_all_but_its_id_and_its_counters(working: WorkingMemory, clock: HandClock) -> None:
    working.set("key", 1, type="event", importance=0.9, tags=["x"], metadata={"a": 1}, ttl=timedelta(days=1))
    working.get("key")
    before, later = working.entry("key"), clock.forward(minutes=5)
    working.set("key", "text")
    after = working.entry("key")
    assert before is not None
    assert after is not None
    assert (after.id, after.access_count, after.last_accessed_at) == (before.id, 1, START)
    assert (after.content, after.type_name, after.timestamp) == ('"text"', "str", later)
    assert (after.type, after.importance, after.tags, after.metadata) == (MemoryType.FACT, 0.5, (), {})
    assert after.expires_at is None
    working.remove("key")
    working.set("key", 1)
    anew = working.entry("key")
    assert anew is not None
    assert (anew.id != before.id, anew.access_count) == (True, 0)


@pytest.mark.req("W4")
@pytest.mark.parametrize("how", ["ttl", "expires_at"])
def test_what_has_expired_reads_as_missing(working: WorkingMemory, clock: HandClock, how: str) -> None:
    span = timedelta(minutes=5)
    when: dict[str, Any] = {how: span if how == "ttl" else START + span}
    for key in ("get", "contains", "entry", "remove", "made"):
        working.set(key, 1, **when)
    working.set("kept", 1)
    clock.forward(minutes=5, microseconds=-1)
    assert len(working) == 6
    clock.forward(microseconds=1)
    assert working.get("get", default="-") == "-"
    assert not working.contains("contains")
    assert working.entry("entry") is None
    assert not working.remove("remove")
    assert working.get_or_set("made", lambda: 2) == 2
    assert (working.keys(), len(working), list(working.all())) == (("kept", "made"), 2, ["kept", "made"])
    assert working.stats().entries == 2
    assert working.clear() == 2


@pytest.mark.req("W4")
def test_a_key_that_expired_begins_anew(working: WorkingMemory, clock: HandClock) -> None:
    working.set("key", 1, ttl=timedelta(seconds=1))
    working.get("key")
    first = working.entry("key")
    clock.forward(seconds=1)
    working.set("key", 2)
    second = working.entry("key")
    assert first is not None
    assert second is not None
    assert (second.access_count, second.id != first.id, working.stats().entries) == (0, True, 1)


@pytest.mark.req("W4")
def test_what_get_or_set_made_can_expire(working: WorkingMemory, clock: HandClock) -> None:
    assert working.get_or_set("key", lambda: 1, ttl=timedelta(minutes=1)) == 1
    clock.forward(minutes=1)
    ends = clock.time + timedelta(minutes=1)

    def slow() -> int:
        clock.forward(minutes=1)
        return 2

    assert working.get_or_set("key", slow, expires_at=ends) == 2
    assert not working.contains("key")


@pytest.mark.req("W4")
def test_an_expiry_in_the_past_is_refused(working: WorkingMemory, clock: HandClock) -> None:
    for past in (clock.time, clock.time - timedelta(days=1)):
        with pytest.raises(InvalidInput) as caught:
            working.set("key", 1, expires_at=past)
        assert caught.value.details["field"] == "expires_at"
        with pytest.raises(InvalidInput):
            working.get_or_set("key", lambda: 1, expires_at=past)
    assert working.keys() == ()


@pytest.mark.req("W2")
def test_keys_are_plain_text_whatever_was_given(working: WorkingMemory) -> None:
    class Odd(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = str.__hash__

    working.set(Odd("key"), 1)
    working.set(Colour.RED, 2)
    assert (working.get("key"), working.get(Odd("key")), working.get("red")) == (1, 1, 2)
    assert [type(key) for key in working] == [str, str]


@pytest.mark.req("W7")
def test_agents_do_not_see_each_other_and_are_freed(clock: HandClock) -> None:
    one, other = WorkingMemory("one", clock=clock), WorkingMemory("one", clock=clock)
    one.set("key", 1)
    scope = one.create_scope("s")
    scope.set("key", 2)
    assert (other.get("key"), len(other), other.active_scopes()) == (None, 0, ())
    gone, gone_too = weakref.ref(one), weakref.ref(other)
    other.create_scope("s").dispose()
    gc.disable()
    try:
        del other
        assert gone_too() is None  # at once: nothing refers to it in a circle
    finally:
        gc.enable()
    del one, scope
    gc.collect()
    assert gone() is None


@pytest.mark.req("W9")
def test_stats_count_all_levels(working: WorkingMemory, clock: HandClock) -> None:
    assert working.stats() == WorkingStats(entries=0, scopes=0, bytes_used=0)
    working.set("a", "four")
    later = clock.forward(minutes=1)
    scope = working.create_scope("s")
    scope.set("a", 12, metadata={"k": 1})
    scope.create_scope("t").set("b", 1, ttl=timedelta(minutes=1))
    assert working.stats() == WorkingStats(entries=3, scopes=2, bytes_used=6 + 2 + 7 + 1, oldest=START, newest=later)
    clock.forward(minutes=1)
    assert working.stats().entries == 2
