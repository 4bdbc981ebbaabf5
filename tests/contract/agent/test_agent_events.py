"""What an agent's context and snapshots announce."""

import asyncio

import pytest

from tests.support.stand_ins import HandClock
from wellkept import AgentMemory, Memories
from wellkept.errors import InvalidInput
from wellkept.events import ContextCompacted, ContextComposed, Event, SnapshotCreated, SnapshotRestored


@pytest.fixture
def me(memories: Memories) -> AgentMemory:
    return memories.agent("debugger", user="ada")


@pytest.fixture
def heard(memories: Memories) -> list[Event]:
    heard: list[Event] = []
    for kind in (ContextComposed, ContextCompacted, SnapshotCreated, SnapshotRestored):
        memories.on(kind, heard.append)
    return heard


def test_composing_is_told_in_numbers(me: AgentMemory, heard: list[Event], clock: HandClock) -> None:
    me.long_term.add("The user prefers dark mode")
    for number in range(3):
        me.context.add("user", f"{number}" * 80)
    prompt = me.context.compose("dark mode", budget_tokens=70)
    assert len(prompt.receipt.left_out) > 0
    assert heard == [
        ContextComposed(
            at=clock.time,
            agent_id="debugger",
            user_id="ada",
            budget_tokens=70,
            total_tokens=prompt.receipt.total_tokens,
            included=len(prompt.receipt.included),
            left_out=len(prompt.receipt.left_out),
        )
    ]


def test_compacting_is_told_in_numbers(me: AgentMemory, heard: list[Event], clock: HandClock) -> None:
    for number in range(4):
        me.context.add("user", f"{number}" * 160)
    me.context.compact(130)
    dropped = ContextCompacted(
        at=clock.time,
        agent_id="debugger",
        user_id="ada",
        strategy="oldest",
        tokens_before=160,
        tokens_after=120,
        dropped=1,
        summarised=0,
    )
    assert heard == [dropped]

    async def summarise(items: object, tokens: int) -> str:
        return "short"

    asyncio.run(me.context.acompact(100, summariser=summarise))
    last = heard[-1]
    assert isinstance(last, ContextCompacted)
    assert (last.strategy, last.tokens_before, last.tokens_after) == ("summariser", 120, me.context.tokens_used)
    assert last.summarised > 0


def test_what_failed_is_not_told(me: AgentMemory, heard: list[Event]) -> None:
    with pytest.raises(InvalidInput):
        me.context.compose(budget_tokens=0)
    with pytest.raises(InvalidInput):
        me.context.compact(-1)
    with pytest.raises(InvalidInput):
        me.restore("nothing")  # type: ignore[arg-type]  # refused
    assert heard == []


def test_snapshots_are_told_when_made_and_restored(me: AgentMemory, heard: list[Event], clock: HandClock) -> None:
    me.working.set("step", 3)
    me.working.create_scope("task").set("file", "a.py")
    me.context.add("user", "Go on")
    saved = me.snapshot()
    clock.forward(seconds=5)
    me.clear()
    me.restore(saved)
    created, restored = heard
    assert isinstance(created, SnapshotCreated)
    assert isinstance(restored, SnapshotRestored)
    for told in (created, restored):
        assert (told.agent_id, told.working_entries, told.context_items) == ("debugger", 2, 1)
        assert told.duration_ms > 0
    assert (restored.at - created.at).total_seconds() == 5


def test_a_handler_may_use_the_context_it_is_told_of(memories: Memories, me: AgentMemory) -> None:
    def note(event: ContextCompacted) -> None:
        me.context.add("system", "compacted")

    memories.on(ContextCompacted, note)
    me.context.add("user", "x" * 40)
    me.context.compact(5)
    assert [item.content for item in me.context.items] == ["compacted"]
