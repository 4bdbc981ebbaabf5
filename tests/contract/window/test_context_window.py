"""The window as an agent uses it: adding, pinning, compacting, saving, from many threads."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.window_items import BAD_ITEMS, COUNTERS, DAY, TEXTS, item_lists, memory
from wellkept.errors import Conflict, InvalidInput, LimitReached, NotFound, WellkeptError
from wellkept.testing.cases import Cases
from wellkept.text.tokens import TokenCounter
from wellkept.window import ContextItem, ContextWindow, Part, Role, WindowSnapshot


def filled(*contents: str, max_tokens: int = 100, counter: TokenCounter = len) -> ContextWindow:
    window = ContextWindow(max_tokens, counter=counter)
    for content in contents:
        window.add("user", content, created_at=DAY)
    return window


def said(window: ContextWindow) -> list[str]:
    return [item.content for item in window.items]


@pytest.mark.req("C1")
def test_items_stand_in_order_with_their_tokens() -> None:
    window = ContextWindow(100)
    first = window.add("system", "Be brief.", created_at=DAY, pinned=True, priority=0.9)
    second = window.add(Role.USER, "Tea?", created_at=DAY, id="msg-7", source="m1")
    assert window.items == (first, second)
    assert first == ContextItem(
        id="1", role=Role.SYSTEM, content="Be brief.", tokens=3, created_at=DAY, priority=0.9, pinned=True
    )
    assert (second.id, second.source, second.tokens) == ("msg-7", "m1", 1)
    assert (window.tokens_used, window.tokens_free, window.max_tokens, len(window)) == (4, 96, 100, 2)


@pytest.mark.req("C1")
def test_what_does_not_fit_is_refused_with_numbers() -> None:
    window = filled("12345", max_tokens=8)
    with pytest.raises(LimitReached, match="content has 4 tokens, 3 of 8 are free") as caught:
        window.add("user", "abcd", created_at=DAY)
    assert caught.value.details == {"field": "content", "tokens": 4, "used_tokens": 5, "max_tokens": 8}
    assert said(window) == ["12345"]
    window.add("user", "abc", created_at=DAY)
    assert window.tokens_free == 0


@pytest.mark.req("C1")
def test_bad_items_change_nothing() -> None:
    with Cases() as cases:
        for fields, field in [bad for bad in BAD_ITEMS if "tokens" not in bad[0]]:
            with cases.case(fields):
                window = filled("a")
                with pytest.raises(InvalidInput) as caught:
                    window.add(**{"role": "user", "content": "secret", "created_at": DAY, **fields})
                assert caught.value.details["field"] == f"item.{field}"
                assert "secret" not in str(caught.value)
                assert said(window) == ["a"]


NO_NUMBERS: tuple[Any, ...] = (
    0,
    -1,
    None,
    "8000",
    True,
    1.5,
)


def test_the_maximum_is_a_number_of_tokens() -> None:
    with Cases() as cases:
        for bad in NO_NUMBERS:
            with cases.case(bad), pytest.raises(InvalidInput, match="max_tokens"):
                ContextWindow(bad)


def test_the_counter_must_be_callable() -> None:
    with pytest.raises(InvalidInput, match="counter"):
        ContextWindow(10, counter="o200k_base")  # type: ignore[arg-type]  # the point of the test


def test_ids_are_never_given_twice() -> None:
    window = ContextWindow(100)
    window.add("user", "a", created_at=DAY, id="2")
    assert [window.add("user", "b", created_at=DAY).id for _ in range(3)] == ["1", "3", "4"]
    window.remove("4")
    assert window.add("user", "c", created_at=DAY).id == "5"
    with pytest.raises(Conflict, match="'2'"):
        window.add("user", "d", created_at=DAY, id="2")


@pytest.mark.req("C1")
def test_pinning_removing_and_clearing() -> None:
    window = filled("a", "bb", "ccc")
    assert window.pin("2").pinned
    assert [item.pinned for item in window.items] == [False, True, False]
    assert not window.unpin("2").pinned
    assert window.remove("1").content == "a"
    assert (said(window), window.tokens_used) == (["bb", "ccc"], 5)
    window.pin("3")
    assert window.clear(keep_pinned=True) == 1
    assert (said(window), window.tokens_used) == (["ccc"], 3)
    assert window.clear() == 1
    assert (window.items, window.tokens_used) == ((), 0)


@pytest.mark.parametrize("method", ["pin", "unpin", "remove"])
def test_an_unknown_item_is_not_found(method: str) -> None:
    window = filled("a")
    with pytest.raises(NotFound):
        getattr(window, method)("7")
    with pytest.raises(InvalidInput):
        getattr(window, method)(7)
    assert said(window) == ["a"]


@pytest.mark.req("C2")
def test_a_window_composes_what_it_holds() -> None:
    window = ContextWindow(200)
    window.add("user", "Hello", created_at=DAY)
    window.add("system", "Be brief.", created_at=DAY, pinned=True)
    prompt = window.compose(now=DAY, recalled=[memory()])
    assert [(one.id, one.part) for one in prompt.receipt.included] == [
        ("2", Part.PINNED),
        ("m1", Part.RECALLED),
        ("1", Part.RECENT),
    ]
    assert prompt.receipt.budget_tokens == 200
    assert window.compose(now=DAY, budget_tokens=9).messages() == [{"role": "system", "content": "Be brief."}]


@pytest.mark.req("C1")
def test_an_item_is_counted_once() -> None:
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return len(text)

    window = filled("one turn", "another turn", counter=counter)
    for _ in range(3):
        window.compose(now=DAY)
    assert counted.count("one turn") == counted.count("another turn") == 1


# --- compaction -----------------------------------------------------------------------------------


@pytest.mark.req("C3")
def test_compacting_makes_room() -> None:
    window = filled("a" * 40, "b" * 40, "c" * 10)
    done = window.compact()
    assert done.receipt.dropped == ("1",)
    assert (said(window), window.tokens_used) == (["b" * 40, "c" * 10], 50)
    window.pin("2")
    with pytest.raises(InvalidInput, match="pinned"):
        window.compact(5)
    assert window.tokens_used == 50


@pytest.mark.req("C3")
def test_what_is_added_while_a_summariser_works_is_kept() -> None:
    window = filled("a" * 60, "b" * 10)

    def summariser(going: Sequence[ContextItem], tokens: int) -> str:
        window.add("user", "meanwhile", created_at=DAY)  # no deadlock either
        return "Letters."

    window.compact(60, strategy="summariser", summariser=summariser)
    assert said(window) == ["Summary of earlier turns:\nLetters.", "b" * 10, "meanwhile"]
    assert window.tokens_used == sum(item.tokens for item in window.items)


@pytest.mark.req("C3")
def test_what_else_happens_while_a_summariser_works_is_a_conflict() -> None:
    window = filled("a" * 60, "b" * 10)

    def pinning(going: Sequence[ContextItem], tokens: int) -> str:
        window.pin("1")
        return "Letters."

    with pytest.raises(Conflict, match="changed"):
        window.compact(60, strategy="summariser", summariser=pinning)
    assert said(window) == ["a" * 60, "b" * 10]

    window.unpin("1")

    def naming(going: Sequence[ContextItem], tokens: int) -> str:
        window.add("user", "c", created_at=DAY, id="summary-1")
        return "Letters."

    with pytest.raises(Conflict, match="summary"):
        window.compact(60, strategy="summariser", summariser=naming)
    assert said(window) == ["a" * 60, "b" * 10, "c"]


@pytest.mark.req("C3")
def test_a_summariser_that_fails_changes_nothing() -> None:
    window = filled("a" * 60, "b" * 10)

    async def failing(going: Sequence[ContextItem], tokens: int) -> str:
        raise TimeoutError("model")

    with pytest.raises(TimeoutError):
        asyncio.run(window.acompact(60, summariser=failing))
    assert said(window) == ["a" * 60, "b" * 10]


@pytest.mark.req("C3")
def test_compacting_by_a_summariser_that_is_awaited() -> None:
    window = filled("a" * 60, "b" * 10)

    async def summariser(going: Sequence[ContextItem], tokens: int) -> str:
        return "Letters."

    assert asyncio.run(window.acompact(60, summariser=summariser)).receipt.summarised == ("1",)
    assert said(window)[0] == "Summary of earlier turns:\nLetters."


# --- snapshots ------------------------------------------------------------------------------------


@pytest.mark.req("C4")
@given(items=item_lists(), numbered=st.integers(0, 100), counter=st.sampled_from(list(COUNTERS.values())))
def test_a_snapshot_survives_json_and_is_restored(
    items: list[ContextItem], numbered: int, counter: TokenCounter
) -> None:
    taken = WindowSnapshot(max_tokens=10**6, items=tuple(items), numbered=numbered)
    plain = json.loads(json.dumps(taken.plain()))
    assert WindowSnapshot.of_plain(plain) == taken
    window = ContextWindow(10**6, counter=counter)
    window.restore(plain)
    assert [item.content for item in window.items] == [item.content for item in items]
    assert [item.tokens for item in window.items] == [counter(item.content) for item in items], "counted anew"
    assert window.tokens_used == sum(item.tokens for item in window.items)
    other = ContextWindow(10**6, counter=counter)
    other.add("user", "goes", created_at=DAY)
    other.restore(window.snapshot())
    assert other.snapshot() == window.snapshot()


@pytest.mark.req("C4")
@given(TEXTS)
def test_restoring_undoes_what_came_after(content: str) -> None:
    window = filled("a", "b", max_tokens=10_000)
    window.pin("1")
    before = window.snapshot()
    window.add("user", content, created_at=DAY)
    window.remove("1")
    window.restore(before)
    assert window.snapshot() == before
    assert window.add("user", "c", created_at=DAY).id == "3"


GOOD = filled("a", "b").snapshot().plain()


def changed(path: str, value: object) -> Any:
    """The good snapshot with one field that is not, or without it."""
    state = json.loads(json.dumps(GOOD))
    *parents, last = path.split(".")
    target = state
    for name in parents:
        target = target[int(name) if name.isdigit() else name]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return state


BAD_SNAPSHOTS: tuple[tuple[Any, str], ...] = (
    (None, "snapshot"),
    ([], "snapshot"),
    ({}, "snapshot.format"),
    (changed("format", 3), "snapshot.format"),
    (changed("format", 0), "snapshot.format"),
    (changed("format", True), "snapshot.format"),
    (changed("format", "1"), "snapshot.format"),
    (changed("max_tokens", ...), "snapshot.max_tokens"),
    (changed("max_tokens", 0), "snapshot.max_tokens"),
    (changed("numbered", -1), "snapshot.numbered"),
    (changed("numbered", ...), "snapshot.numbered"),
    (changed("items", ...), "snapshot.items"),
    (changed("items", "text"), "snapshot.items"),
    (changed("items", [1]), "snapshot.items"),
    (changed("items.1.id", "1"), "snapshot.items.id"),
    (changed("items.1.id", ...), "snapshot.items.id"),
    (changed("items.1.role", "robot"), "snapshot.items.role"),
    (changed("items.1.content", ""), "snapshot.items.content"),
    (changed("items.1.tokens", -1), "snapshot.items.tokens"),
    (changed("items.1.created_at", "yesterday"), "snapshot.items.created_at"),
    (changed("items.1.created_at", "2026-01-07T12:00:00"), "snapshot.items.created_at"),
    (changed("items.1.created_at", 7), "snapshot.items.created_at"),
    (changed("items.1.priority", 7), "snapshot.items.priority"),
    (changed("items.1.pinned", "no"), "snapshot.items.pinned"),
    (changed("items.1.source", 7), "snapshot.items.source"),
    (changed("items.1.summary_of", "m1"), "snapshot.items.summary_of"),
    (changed("items.1.summary_of", [7]), "snapshot.items.summary_of"),
    (changed("items.1.content", "x" * 101), "snapshot"),
    (WindowSnapshot(max_tokens=10, format=9), "snapshot.format"),
    (WindowSnapshot(max_tokens=10, items=(None,)), "snapshot.items"),  # type: ignore[arg-type]  # the point
)


@pytest.mark.req("C4")
def test_a_bad_snapshot_changes_nothing() -> None:
    with Cases() as cases:
        for state, field in BAD_SNAPSHOTS:
            with cases.case(field, state):
                window = filled("kept", "as it was")
                before = window.snapshot()
                with pytest.raises(InvalidInput) as caught:
                    window.restore(state)
                assert caught.value.details["field"] == field
                assert caught.value.hint
                assert window.snapshot() == before


def test_a_snapshot_that_is_too_large_names_the_numbers() -> None:
    with pytest.raises(LimitReached, match="snapshot has 8 tokens, 5 of 5 are free") as caught:
        ContextWindow(5, counter=len).restore(filled("12345678").snapshot())
    assert caught.value.details == {"field": "snapshot", "tokens": 8, "used_tokens": 0, "max_tokens": 5}


def test_later_fields_of_a_format_are_passed_over() -> None:
    window = ContextWindow(10, counter=len)
    window.restore({**GOOD, "colour": "green"})
    assert said(window) == ["a", "b"]


def test_the_format_is_pinned() -> None:
    """Snapshots are stored: what is written today must be readable for good."""
    expected = {
        "format": 1,
        "max_tokens": 100,
        "numbered": 2,
        "items": [
            {
                "id": id,
                "role": "user",
                "content": content,
                "tokens": 1,
                "created_at": "2026-01-07T12:00:00+00:00",
                "priority": 0.5,
                "pinned": False,
                "source": None,
            }
            for id, content in (("1", "a"), ("2", "b"))
        ],
    }
    assert expected == GOOD


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.req("C1")
def test_threads_never_fill_a_window_above_its_maximum() -> None:
    window = ContextWindow(50, counter=len)
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for turn in range(40):
            try:
                if turn % 8 == number:
                    window.compact(10)
                window.add("user", "ab", created_at=DAY)
            except (InvalidInput, Conflict):  # full, or another thread compacted first
                assert sum(item.tokens for item in window.items) <= 50

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    items = window.items
    assert window.tokens_used == sum(item.tokens for item in items) <= 50
    assert len({item.id for item in items}) == len(items)


def test_ids_from_many_threads_are_all_different() -> None:
    window = ContextWindow(10_000, counter=len)
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: window.add("user", "a", created_at=DAY).id, range(400)))
    assert sorted(map(int, ids)) == list(range(1, 401))


def test_a_time_from_elsewhere_is_kept_in_utc() -> None:
    window = ContextWindow(10)
    item = window.add("user", "a", created_at=datetime.fromisoformat("2026-01-07T14:00:00+02:00"))
    assert item.created_at == DAY
    assert item.created_at.isoformat() == "2026-01-07T12:00:00+00:00"


@pytest.mark.req("H10")
def test_every_error_names_its_operation() -> None:
    window = ContextWindow(10)
    window.add("user", "x", created_at=DAY, id="1", pinned=True)
    refused: dict[str, Callable[[], object]] = {
        "add": lambda: window.add("user", "x" * 100, created_at=DAY),
        "pin": lambda: window.pin("none"),
        "unpin": lambda: window.unpin("none"),
        "remove": lambda: window.remove("none"),
        "clear": lambda: window.clear(keep_pinned=1),  # type: ignore[arg-type]
        "compact": lambda: window.compact(-1),
        "acompact": lambda: asyncio.run(window.acompact(-1, summariser=summarised)),
        "compose": window.compose,
        "restore": lambda: window.restore({}),
    }

    async def summarised(items: object, tokens: int) -> str:
        return "short"

    for operation, call in refused.items():
        with pytest.raises(WellkeptError) as caught:
            call()
        assert caught.value.operation == operation
