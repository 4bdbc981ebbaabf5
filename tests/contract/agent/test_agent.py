"""The agent's handle: three kinds of memory, one place to count, clear, save and go back."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import wellkept.aio
from tests.support.stand_ins import HandClock
from wellkept import Layer, Memories
from wellkept.entitlements import Plan
from wellkept.errors import Conflict, InvalidInput, ScopeDisposed
from wellkept.memories import AgentMemory, AgentSnapshot
from wellkept.testing.cases import Cases
from wellkept.working import Limits


@pytest.fixture
def me(memories: Memories) -> AgentMemory:
    return memories.agent("debugger", user="ada", project="api")


@pytest.mark.req("W1")
def test_a_handle_has_three_kinds_of_memory(me: AgentMemory, memories: Memories) -> None:
    assert (me.agent_id, me.user_id) == ("debugger", "ada")
    assert me.long_term.layers == (Layer.AGENT, Layer.USER, Layer.PROJECT)
    me.working.set("step", 3)
    memory = me.long_term.add("Tabs, not spaces", layer="project")
    me.context.add("user", "How do we indent?")
    assert memories.view(project="api").get(memory.id) == memory
    assert memories.agent("debugger").user_id == "default"


@pytest.mark.req("W1", "W9")
def test_statistics_cover_all_three(me: AgentMemory, clock: HandClock) -> None:
    me.working.set("step", 3)
    with me.working.create_scope("subtask") as scope:
        scope.set("part", "one")
        first = me.long_term.add("one")
        clock.forward(days=1)
        me.long_term.forget(me.long_term.add("two").id)
        item = me.context.add("user", "How do we indent?")
        stats = me.stats()
    assert (stats.working_entries, stats.working_scopes) == (2, 1)
    assert stats.working_bytes > 0
    assert (stats.long_term, stats.forgotten, stats.bytes_limit) == (1, 1, None)
    assert (stats.oldest, stats.newest) == (first.created_at, item.created_at)
    assert stats.long_term_bytes == me.long_term.stats().bytes_used > 0
    assert stats.context_bytes == len("How do we indent?")
    assert stats.bytes_used == stats.working_bytes + stats.long_term_bytes + stats.context_bytes
    assert (stats.context_items, stats.context_tokens) == (1, item.tokens)
    assert stats.percent_used == 0
    assert stats.context_percent_used == 100 * item.tokens / 8_000
    assert stats.context_tokens_limit == 8_000


@pytest.mark.req("W9")
def test_oldest_newest_and_bytes_are_those_of_each_place(memories: Memories, clock: HandClock) -> None:
    fill: dict[str, Callable[[AgentMemory, str], object]] = {
        "working": lambda me, text: me.working.set(text, text),
        "long_term": lambda me, text: me.long_term.add(text),
        "context": lambda me, text: me.context.add("user", text),
    }
    with Cases() as cases:
        for place, put in fill.items():
            with cases.case(place):
                me = memories.agent(place)
                stats = me.stats()
                assert (stats.bytes_used, stats.oldest, stats.newest) == (0, None, None)
                times = []
                for text in ("first", "second"):
                    times.append(clock.forward(minutes=1))
                    put(me, text)
                stats = me.stats()
                assert [stats.oldest, stats.newest] == times
                assert stats.bytes_used > 0


@pytest.mark.req("W9")
def test_the_percentage_is_that_of_the_plan() -> None:
    with wellkept.open("ram:", embedder=None, plan=replace(Plan.TEAMS, limit_bytes=10_000)) as memories:
        me = memories.agent("debugger")
        me.long_term.add("Tabs, not spaces")
        me.working.set("notes", "x" * 998)
        stats = me.stats()
    assert stats.percent_used == 100 * stats.bytes_used / 10_000 > 10


@pytest.mark.req("W1")
def test_clearing_spares_what_lasts_unless_asked(me: AgentMemory) -> None:
    own = me.long_term.add("own")
    shared = me.long_term.add("shared", layer="project")
    me.working.set("step", 3)
    scope = me.working.create_scope("subtask")
    me.context.add("system", "Be brief", pinned=True)
    me.clear()
    assert (len(me.working), len(me.context), scope.is_disposed) == (0, 0, True)
    assert me.long_term.count() == 2
    me.clear(working=False, context=False, long_term=True)
    assert [memory.id for memory in me.long_term.list()] == [shared.id]
    assert me.long_term.restore(own.id)


@pytest.mark.req("W1", "P1")
def test_a_snapshot_goes_through_json_and_back(me: AgentMemory, clock: HandClock) -> None:
    me.working.set("step", 3)
    me.working.create_scope("subtask").set("part", {"of": ["it"]})
    me.context.add("system", "Be brief", pinned=True)
    saved = me.snapshot()
    text = saved.to_json()
    me.clear()
    me.working.set("other", 1)
    me.restore(AgentSnapshot.from_json(text))
    assert AgentSnapshot.from_json(text) == saved
    assert me.working.get("step") == 3
    assert not me.working.contains("other")
    [scope] = me.working.active_scopes()
    assert (scope.name, scope.get("part"), scope.get("step")) == ("subtask", {"of": ["it"]}, 3)
    assert [(item.content, item.pinned) for item in me.context.items] == [("Be brief", True)]


REFUSED: dict[str, Callable[[AgentSnapshot], object]] = {
    "another agent's": lambda saved: replace(saved, agent_id="writer"),
    "another user's": lambda saved: replace(saved, user_id="bob"),
    "a newer release's": lambda saved: replace(saved, format=99),
    "working memory of another agent": lambda saved: replace(saved, working=replace(saved.working, agent_id="writer")),
    "too much context": lambda saved: replace(
        saved, context=replace(saved.context, items=(replace(saved.context.items[0], content="x" * 99_999),))
    ),
    "not one": lambda saved: saved.to_json(),
    "nothing": lambda saved: None,
}


@pytest.mark.req("W1", "P9")
def test_what_does_not_fit_is_refused_and_changes_nothing(me: AgentMemory) -> None:
    me.working.set("step", 3)
    me.context.add("user", "How do we indent?")
    saved = me.snapshot()
    me.working.set("step", 4)
    me.context.add("user", "And in Python?")
    with Cases() as cases:
        for name, spoil in REFUSED.items():
            with cases.case(name):
                with pytest.raises(InvalidInput) as caught:
                    me.restore(spoil(saved))  # type: ignore[arg-type]  # that is the point
                assert caught.value.hint
                assert me.working.get("step") == 4
                assert len(me.context) == 2


@pytest.mark.req("W1")
def test_a_counter_that_fails_at_any_moment_leaves_the_state_as_it_was(memories: Memories) -> None:
    left = [100]

    def counter(text: str) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise TimeoutError("tokeniser")
        return len(text)

    me = memories.agent("debugger", counter=counter)
    me.working.set("step", 3)
    me.context.add("user", "one")
    me.context.add("user", "two")
    saved = me.snapshot()
    wrong = replace(saved, working=replace(saved.working, agent_id="writer"))
    me.working.set("step", 4)
    me.context.add("user", "three")
    before = me.snapshot()
    with Cases() as cases:
        for counts in (0, 1, 2, 3):
            with cases.case(counts):
                left[0] = counts
                with pytest.raises((TimeoutError, InvalidInput)):
                    me.restore(wrong if counts >= 2 else saved)
                assert me.snapshot() == before


NO_SNAPSHOTS: tuple[str | bytes, ...] = (
    "",
    "{}",
    "[]",
    "nonsense",
    b"\xff",
    '{"format": 1}',
    "[" * 100_000,
)


def test_a_text_that_is_no_snapshot() -> None:
    with Cases() as cases:
        for text in NO_SNAPSHOTS:
            with cases.case(text):
                with pytest.raises(InvalidInput) as caught:
                    AgentSnapshot.from_json(text)
                assert caught.value.details == {"field": "snapshot"}


@pytest.mark.req("C2")
def test_context_brings_what_is_remembered(me: AgentMemory) -> None:
    memory = me.long_term.add("Indentation is done with tabs", author="Ada")
    me.long_term.add("The release is on Friday")
    me.context.add("system", "Be brief", pinned=True)
    me.context.add("user", "How is indentation done?")
    prompt = me.context.compose("indentation", budget_tokens=300)
    assert memory.content in prompt.text
    assert memory.id in prompt.text
    assert "Friday" not in prompt.text
    assert prompt.receipt.total_tokens <= 300
    assert "Indentation" not in me.context.compose(budget_tokens=300).text


@pytest.mark.req("W7", "L11")
def test_agents_share_nothing_but_what_is_shared(memories: Memories) -> None:
    one, two = memories.agent("one", user="ada"), memories.agent("two", user="ada")
    one.working.set("step", 1)
    one.long_term.add("mine")
    one.context.add("user", "hello")
    assert (len(two.working), two.long_term.count(), len(two.context)) == (0, 0, 0)
    assert len(memories.agent("one", user="bob").working) == 0


BAD_ARGUMENTS: tuple[tuple[dict[str, object], str], ...] = (
    ({"agent": ""}, "agent"),
    ({"agent": None}, "agent"),
    ({"context_tokens": 0}, "context_tokens"),
    ({"counter": 5}, "counter"),
)


def test_bad_arguments(memories: Memories) -> None:
    with Cases() as cases:
        for arguments, field in BAD_ARGUMENTS:
            with cases.case(arguments):
                with pytest.raises(InvalidInput) as caught:
                    memories.agent(**({"agent": "debugger"} | arguments))  # type: ignore[arg-type]  # that is the point
                assert field in str(caught.value.details) or field in caught.value.message


@pytest.mark.req("W7")
def test_two_handles_of_one_agent_and_user_share_working_memory_and_snapshots(memories: Memories) -> None:
    one = memories.agent("debugger", user="ada", limits=Limits(entries=2))
    other = memories.agent("debugger", user="ada", project="api")
    one.working.set("step", 3)
    assert (other.working.get("step"), other.working.limits) == (3, Limits(entries=2))
    saved = one.snapshot()
    other.working.set("step", 4)
    other.restore(saved)
    assert one.working.get("step") == 3
    for stranger in (memories.agent("debugger", user="bob"), memories.agent("writer", user="ada")):
        assert (stranger.working.get("step"), stranger.working.limits) == (None, Limits())
    assert memories.agent("debugger", user="ada", limits=Limits(entries=2)).working is one.working
    with pytest.raises(Conflict) as caught:
        memories.agent("debugger", user="ada", limits=Limits(entries=3))
    assert (caught.value.operation, caught.value.details["field"]) == ("agent", "limits")


@pytest.mark.req("W7")
def test_threads_that_ask_for_one_agent_get_one_working_memory(memories: Memories) -> None:
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(lambda number: memories.agent("debugger"), range(64)))
    assert len({id(one.working) for one in handles}) == 1
    assert len(memories.agents()) == 64


@pytest.mark.req("W7")
@pytest.mark.parametrize("watched", [False, True])
def test_a_closed_handle_is_freed_without_the_garbage_collector(memories: Memories, watched: bool) -> None:
    if watched:
        memories.watch(lambda done: None)
    gc.disable()
    try:
        with memories.agent("debugger", user="ada") as me:
            me.working.set("step", 3)
            scope = me.working.create_scope("subtask")
            me.context.add("user", "How do we indent?")
            gone = [weakref.ref(one) for one in (me, me.working, scope, me.context)]
        del me, scope
        assert [one() for one in gone] == [None] * 4
    finally:
        gc.enable()
    assert memories.agents() == ()
    assert memories.agent("debugger", user="ada").working.get("step") is None


@pytest.mark.req("W7")
def test_a_handle_that_is_dropped_is_freed_as_well(memories: Memories) -> None:
    gc.disable()
    try:
        me = memories.agent("debugger", user="ada")
        gone = [weakref.ref(one) for one in (me, me.working, me.context)]
        del me
        assert [one() for one in gone] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.req("W7")
def test_a_closed_handle_refuses_and_leaves_the_others_alone(memories: Memories) -> None:
    one, other = memories.agent("debugger"), memories.agent("debugger")
    kept = one.long_term.add("Tabs, not spaces")
    working, step = one.working, one.working.create_scope("step")
    working.set("step", 3)
    one.close()
    one.close()
    used: list[Callable[[], object]] = [
        lambda: one.working,
        lambda: one.context,
        lambda: one.long_term,
        one.stats,
        one.snapshot,
        one.clear,
        one.__enter__,
    ]
    for use in used:
        with pytest.raises(ScopeDisposed, match="was closed"):
            use()
    assert (other.working.get("step"), step.is_disposed) == (3, False)
    saved = working.snapshot()
    other.close()
    ended: list[Callable[[], object]] = [
        lambda: working.get("step"),
        lambda: working.set("step", 4),
        lambda: working.create_scope("x"),
        lambda: working.restore(saved),
        working.clear,
        working.stats,
        working.snapshot,
    ]
    for use in ended:
        with pytest.raises(ScopeDisposed, match="ended with its last handle"):
            use()
    assert step.is_disposed
    assert memories.agent("debugger").long_term.get(kept.id) is not None


@pytest.mark.req("W7")
def test_agents_lists_whose_working_memory_or_context_alone_is_in_use(memories: Memories) -> None:
    first, second = memories.agent("first", user="ada"), memories.agent("second")
    assert memories.agents() == (first, second)
    working, context = memories.agent("third", user="bob").working, memories.agent("fourth").context
    working.set("step", 3)
    found = {(one.agent_id, one.user_id): one for one in memories.agents()}
    assert list(found) == [("first", "ada"), ("second", "default"), ("third", "bob"), ("fourth", "default")]
    assert found["third", "bob"].working is working
    assert context.max_tokens == 8_000
    del working, context, found
    assert memories.agents() == (first, second)
    first.close()
    assert memories.agents() == (second,)


def test_an_agent_that_cannot_be_made_is_not_listed(memories: Memories) -> None:
    with pytest.raises(InvalidInput) as caught:
        memories.agent("debugger", counter=7)  # type: ignore[arg-type]
    assert memories.agents() == ()
    assert caught.value.operation == "agent"


@pytest.mark.req("W7")
def test_async_handles_close() -> None:
    async def main() -> None:
        async with wellkept.aio.open("ram:", embedder=None) as memories:
            async with memories.agent("debugger") as me:
                me.working.set("step", 3)
                assert memories.agent("debugger").working.get("step") == 3
            with pytest.raises(ScopeDisposed):
                me.working.get("step")
            assert memories.agents() == ()

    asyncio.run(main())


def test_limits_of_another_type_are_refused_with_the_place_of_the_right_one(memories: Memories) -> None:
    with pytest.raises(InvalidInput, match=r"wellkept\.working\.Limits\(entries="):
        memories.agent("debugger", limits={"entries": 2})  # type: ignore[arg-type]
