"""Compacting loses nothing: what leaves an agent's context is in its memories, and the receipt says where."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import HandClock
from tests.support.window_items import DAY, block, memory
from wellkept import Layer, Memories, Memory, MemoryType
from wellkept.errors import Conflict, LimitReached, StoreClosed
from wellkept.events import MemoryStored
from wellkept.memories import AgentMemory, AgentSnapshot
from wellkept.testing.cases import Cases
from wellkept.types import SourceType
from wellkept.window import ContextItem, ContextWindow, RoleName, Strategy, WindowSnapshot

TURNS: list[tuple[RoleName, str]] = [
    ("user", "My build fails on the second runner. It says timeout."),
    ("assistant", "Let us read the log of the second runner."),
    ("tool", "runner 2: timeout of the database"),
    ("user", "So the database is to blame, not the runner."),
]


def summarise(items: Sequence[ContextItem], tokens: int) -> str:
    return "The build fails."


@pytest.fixture
def me(memories: Memories) -> AgentMemory:
    return memories.agent("debugger", user="ada", session="monday", counter=len, context_tokens=1_000)


def say(me: AgentMemory, turns: Iterable[tuple[RoleName, str]] = TURNS) -> list[ContextItem]:
    return [me.context.add(role, content) for role, content in turns]


def stored(me: AgentMemory) -> list[Memory]:
    return list(me.long_term.list(sort_by="oldest"))


@pytest.mark.req("C3", "W1")
def test_whatever_goes_is_in_the_session_and_named_in_the_receipt(memories: Memories) -> None:
    with Cases() as cases:
        for strategy in Strategy:
            with cases.case(strategy):
                me = memories.agent("debugger", user=strategy, session="monday", counter=len, context_tokens=1_000)
                items = {item.id: item for item in say(me)}
                summariser = summarise if strategy is Strategy.SUMMARISER else None
                done = me.context.compact(120, strategy=strategy, summariser=summariser)
                gone = done.receipt.dropped or done.receipt.summarised
                assert 0 < len(gone) < len(items)
                assert list(done.receipt.memory_ids) == list(gone)
                assert done.receipt.not_kept is None
                for id in gone:
                    [memory_id] = done.receipt.memory_ids[id]
                    kept = me.long_term.get(memory_id)
                    assert kept is not None
                    assert (kept.content, kept.role) == (items[id].content, items[id].role)
                    assert (kept.layer, kept.type, kept.session) == (Layer.SESSION, MemoryType.CONVERSATION, "monday")
                    assert (kept.occurred_at, kept.importance) == (items[id].created_at, items[id].priority)
                    assert kept.source is not None
                    assert kept.source.reference == id
                assert me.long_term.count() == len(gone)


@pytest.mark.req("C3")
def test_who_said_it_and_how_it_came_is_kept(me: AgentMemory) -> None:
    say(me, [*TURNS, ("system", "Be brief.")])
    me.context.compact(0)
    assert [(one.role, one.author) for one in stored(me)] == [
        ("user", "ada"),
        ("assistant", "debugger"),
        ("tool", None),
        ("user", "ada"),
        ("system", None),
    ]
    kinds = [one.source.type for one in stored(me) if one.source]
    assert kinds[2] is SourceType.TOOL_RESULT
    assert set(kinds[:2]) == {SourceType.CONVERSATION}


@pytest.mark.req("C3")
def test_without_a_session_the_agent_keeps_it_and_nobody_else_sees_it(memories: Memories) -> None:
    me = memories.agent("debugger", counter=len, context_tokens=500)
    say(me)
    done = me.context.compact(0)
    assert {(one.layer, one.author) for one in stored(me)} == {(Layer.AGENT, "debugger"), (Layer.AGENT, None)}
    assert len(done.receipt.memory_ids) == len(TURNS)
    assert memories.agent("writer").long_term.count() == 0
    assert memories.view(agent="other").count() == 0


@pytest.mark.req("C3")
def test_what_went_is_recalled_when_it_is_asked_for(me: AgentMemory) -> None:
    say(me)
    me.context.compact(0)
    assert "timeout of the database" in me.context.compose("What does runner 2 say?", budget_tokens=900).text


@pytest.mark.req("C3")
def test_it_is_stored_before_it_leaves_the_window(me: AgentMemory, memories: Memories) -> None:
    say(me)
    seen: list[int] = []
    memories.on(MemoryStored, lambda _: seen.append(len(me.context)))
    me.context.compact(0)
    assert seen == [len(TURNS)] * len(TURNS)


@pytest.mark.req("C3")
def test_if_it_cannot_be_stored_nothing_leaves_the_window(me: AgentMemory, memories: Memories) -> None:
    say(me)
    before = me.context.snapshot()
    memories.close()
    ways: list[Callable[[], object]] = [
        lambda: me.context.compact(0),
        lambda: me.context.compact(120, strategy="extractive"),
        lambda: asyncio.run(me.context.acompact(120, summariser=asummarise)),
    ]
    for compact in ways:
        with pytest.raises(StoreClosed):
            compact()
        assert me.context.snapshot() == before


async def asummarise(items: Sequence[ContextItem], tokens: int) -> str:
    return "The build fails."


@pytest.mark.req("C3")
def test_a_summariser_that_is_awaited_loses_nothing_either(me: AgentMemory) -> None:
    say(me)
    receipt = asyncio.run(me.context.acompact(120, summariser=asummarise)).receipt
    assert list(receipt.memory_ids) == list(receipt.summarised)
    assert me.long_term.count() == len(receipt.summarised) > 0


@pytest.mark.req("C3")
def test_a_window_that_changes_meanwhile_stores_nothing(me: AgentMemory) -> None:
    first = say(me)[0]

    def removing(items: Sequence[ContextItem], tokens: int) -> str:
        me.context.remove(first.id)
        return "The build fails."

    with pytest.raises(Conflict):
        me.context.compact(120, strategy="summariser", summariser=removing)
    assert me.long_term.count() == 0


@pytest.mark.req("C3")
def test_an_item_is_stored_once_however_often_it_goes(me: AgentMemory, memories: Memories) -> None:
    say(me)
    saved = me.snapshot().to_json()
    first = me.context.compact(0).receipt.memory_ids
    forgotten, changed, *_ = (memory_id for [memory_id] in first.values())
    me.long_term.forget(forgotten)
    me.long_term.update(changed, content="changed since")
    another = memories.agent("debugger", user="ada", session="monday", counter=len)
    for handle in (me, another):
        handle.restore(AgentSnapshot.from_json(saved))
        assert handle.context.compact(0).receipt.memory_ids == first
    assert me.long_term.count() == len(TURNS) - 1
    assert me.long_term.get(forgotten) is None


@pytest.mark.req("C3")
def test_the_same_words_said_twice_are_two_turns(me: AgentMemory, memories: Memories, clock: HandClock) -> None:
    say(me, [("user", "Yes."), ("user", "Yes.")])
    me.context.compact(0)
    clock.forward(seconds=1)
    later = memories.agent("debugger", user="ada", session="monday", counter=len)  # counts its items from 1 again
    say(later, [("user", "Yes.")])
    later.context.compact(0)
    assert me.long_term.count() == 3


@pytest.mark.req("C3")
def test_what_came_from_a_memory_is_not_stored_again(me: AgentMemory) -> None:
    known = me.long_term.add("Indentation is done with tabs")
    item = me.context.add("user", "We use tabs", source=known.id)
    assert me.context.compact(0).receipt.memory_ids == {item.id: (known.id,)}
    assert me.long_term.count() == 1


@pytest.mark.req("C3")
def test_what_was_recalled_is_not_stored_even_from_an_old_snapshot(me: AgentMemory) -> None:
    recalled = block(memory("Likes tea"))
    turn = ContextItem(id="1", role=wellkept.window.Role.USER, content=recalled, tokens=1, created_at=DAY)
    mixed = replace(turn, id="2", content=f"{recalled}\nTea it is.")
    me.context.restore(WindowSnapshot(max_tokens=1_000, items=(turn, mixed)))
    receipt = me.context.compact(0).receipt
    assert [one.content for one in stored(me)] == ["Tea it is."]
    assert receipt.memory_ids == {"2": (stored(me)[0].id,)}


@pytest.mark.req("C3", "C4")
def test_a_summary_that_goes_names_all_that_it_stood_for(me: AgentMemory) -> None:
    say(me)
    first = me.context.compact(140, strategy="extractive").receipt
    assert first.summary_id is not None
    [summary] = [item for item in me.context.items if item.id == first.summary_id]
    originals = tuple(id for [id] in first.memory_ids.values())
    assert summary.summary_of == originals
    saved = AgentSnapshot.from_json(me.snapshot().to_json())
    assert WindowSnapshot.of_plain(saved.context.plain()) == saved.context
    me.restore(saved)
    count = me.long_term.count()
    second = me.context.compact(0).receipt
    assert second.memory_ids[summary.id] == originals
    assert me.long_term.count() == count + len(second.dropped) - 1, "the summary itself is no memory"


@pytest.mark.req("C3")
def test_a_window_without_memories_says_that_it_keeps_nothing() -> None:
    window = ContextWindow(100, counter=len)
    window.add("user", "from a memory", created_at=DAY, source="m1")
    window.add("user", "from nowhere", created_at=DAY)
    receipt = window.compact(0).receipt
    assert receipt.memory_ids == {"1": ("m1",)}
    assert receipt.not_kept == "this window has no long-term memory"
    window.add("user", "from a memory", created_at=DAY, source="m1")
    assert window.compact(0).receipt.not_kept is None
    assert window.compact(0).receipt.memory_ids == {}


@pytest.mark.req("C3", "L12")
def test_a_plan_without_long_term_memory_can_make_room_and_says_what_that_costs() -> None:
    with wellkept.open("ram:", embedder=None, plan="core") as memories:
        me = memories.agent("debugger", user="ada")
        me.context.add("user", "We use tabs", source="known")
        say(me)
        receipt = me.context.compact(0).receipt
        assert len(receipt.dropped) == 1 + len(TURNS)
        assert receipt.memory_ids == {receipt.dropped[0]: ("known",)}
        assert receipt.not_kept == "the plan Core has no long-term memory"
        assert len(me.context) == 0


@pytest.mark.req("C3", "C1")
@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.text("ab. ", min_size=1, max_size=30)).filter(
            lambda turn: not turn[1].isspace()
        )
        | st.tuples(st.sampled_from(["oldest", "least_important", "extractive"]), st.integers(0, 60)),
        max_size=25,
    )
)
def test_everything_ever_said_is_in_the_window_or_in_a_memory(steps: list[tuple[Any, str | int]]) -> None:
    with wellkept.open("ram:", embedder=None) as database:
        me = database.agent("debugger", user="ada", session="s", counter=len, context_tokens=100)
        said: dict[str, str] = {}
        where: dict[str, str] = {}
        for what, how in steps:
            if isinstance(how, int):
                where |= {id: ids[0] for id, ids in me.context.compact(how, strategy=what).receipt.memory_ids.items()}
                continue
            try:
                said[me.context.add(what, how).id] = how
            except LimitReached:
                continue
        inside = {item.id for item in me.context.items}
        kept = me.long_term.get_many(where.values())
        for id, content in said.items():
            assert id in inside or kept[where[id]].content == content
        assert me.long_term.count() == len([id for id in said if id not in inside])
