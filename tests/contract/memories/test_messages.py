"""From conversation to memory: turns are stored once, and so is what was extracted from them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import wellkept.aio
from tests.support.refusals import refusal
from tests.support.stand_ins import Opener, one_store, plain, somebody
from tests.support.terminal import Terminal
from wellkept import Memories, Memory, NewMemory, View
from wellkept.errors import InvalidInput
from wellkept.testing.builders import START
from wellkept.types import Fact, MemoryType, SourceType

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "I prefer green tea. What about you?", "id": "1", "author": "ada"},
    {"role": "assistant", "content": "I love coffee.", "id": "2"},
    {"role": "user", "content": "We decided to use PostgreSQL.", "id": "3", "at": START - timedelta(days=1)},
]


@pytest.mark.req("N9")
def test_turns_and_what_was_extracted_are_stored_once(view: View) -> None:
    calls: list[list[str]] = []

    def extract(turns: Sequence[Memory]) -> list[str | NewMemory]:
        calls.append([turn.content for turn in turns])
        return ["Ada likes green tea", NewMemory(content="PostgreSQL it is", derived_from=[turns[-1].id])]

    first = view.add_messages(CHAT, extract=extract)
    assert first.added == 3
    assert [turn.role for turn in first.turns] == ["user", "assistant", "user"]
    assert (first.turns[0].author, first.turns[2].occurred_at) == ("ada", START - timedelta(days=1))
    assert first.memories[0].derived_from == tuple(turn.id for turn in first.turns)
    assert first.memories[1].derived_from == (first.turns[2].id,)
    assert (first.memories[0].trust, first.memories[1].trust) == (0.8, 1.0), "the lowest of the turns"
    assert [one.source.type for one in first.memories if one.source] == [SourceType.EXTRACTED] * 2
    again = view.add_messages(CHAT, extract=extract)
    assert again.added == 0
    assert [plain(one) for one in again.turns] == [plain(one) for one in first.turns]
    assert [plain(one) for one in again.memories] == [plain(one) for one in first.memories]
    more = view.add_messages([*CHAT, {"role": "user", "content": "Bye", "id": "4"}], extract=extract)
    assert (more.added, calls[1:]) == (1, [["Bye"]])


@pytest.mark.req("N9")
def test_the_built_in_rule_keeps_what_is_plain(view: View) -> None:
    found = view.add_messages(CHAT)
    assert [(one.content, one.type) for one in found.memories] == [
        ("I prefer green tea.", MemoryType.PREFERENCE),
        ("We decided to use PostgreSQL.", MemoryType.DECISION),
    ]
    assert [one.derived_from for one in found.memories] == [(found.turns[0].id,), (found.turns[2].id,)]
    assert view.add_messages(CHAT).added == 0
    assert view.count() == 5


KEPT = [
    ("I don't eat meat.", "preference"),
    ("Please always answer in German.", "preference"),
    ("My favourite colour is green.", "preference"),
    ("I'm allergic to nuts.", "preference"),
    ("Let's go with Kafka for the queue.", "decision"),
    ("We'll use tabs from now on.", "decision"),
    ("Actually, the meeting is in room 7.", "correction"),
    ("That's wrong, she lives in Rome.", "correction"),
    ("I meant the other file.", "correction"),
    ("I moved to Berlin on May 7th, 2023.", "event"),
    ("We met the client two weeks ago.", "event"),
]
LEFT = [
    "Hello there!",
    "Do you like tea?",
    "What did we decide to use?",
    "If I like it, I will say so.",
    "Could you summarise the text?",
    "The weather is nice today in the city.",
    "> I prefer coffee, said Bob",
    "Maybe we will use Kafka.",
    "The treaty was signed on May 7th, 1823.",
    "ok",
]


@pytest.mark.req("N9")
def test_what_is_plainly_said_is_kept_and_chatter_is_left() -> None:
    kept = {said: [(said, kind)] for said, kind in KEPT}
    extracted = {}
    with wellkept.open("ram:", embedder=None) as memories:
        for said in (*kept, *LEFT):
            found = somebody(memories).add_messages([{"role": "user", "content": said}]).memories
            extracted[said] = [(one.content, one.type.value) for one in found]
    assert extracted == kept | {said: [] for said in LEFT}


@pytest.mark.req("N9")
def test_the_same_may_be_said_twice(memories: Memories) -> None:
    view = memories.view(user="ada", session="monday")
    turns = [{"role": "user", "content": "Yes"}] * 2
    assert view.add_messages(turns).added == 2
    assert view.add_messages(turns).added == 0
    assert memories.view(user="ada", session="tuesday").add_messages(turns).added == 2


@pytest.mark.req("N9", "N4")
def test_facts_that_are_extracted_supersede(view: View) -> None:
    def home(place: str) -> Any:
        return lambda turns: [
            NewMemory(content=f"Lives in {place}", fact=Fact(subject="Ada", predicate="lives in", object=place))
        ]

    view.add_messages([{"role": "user", "content": "I live in Rome"}], extract=home("Rome"))
    view.add_messages([{"role": "user", "content": "Berlin now"}], extract=home("Berlin"))
    assert [one.fact.object for one in view.facts.find(subject="Ada") if one.fact] == ["Berlin"]


@pytest.mark.req("N9")
def test_what_is_forgotten_is_not_extracted_again(view: View) -> None:
    found = view.add_messages(CHAT)
    for one in (*found.turns, *found.memories):
        view.forget(one.id)
    assert view.add_messages(CHAT).added == 0
    assert view.count() == 0


@pytest.mark.req("N9")
def test_a_function_that_fails_stores_nothing(view: View) -> None:
    def broken(turns: Sequence[Memory]) -> list[str]:
        raise RuntimeError(f"no model for {len(turns)} turns")

    with pytest.raises(RuntimeError):
        view.add_messages(CHAT, extract=broken)
    for wrong in (lambda turns: [7], lambda turns: 7, lambda turns: [NewMemory(content="x", derived_from=["other"])]):
        with pytest.raises(InvalidInput):
            view.add_messages(CHAT, extract=wrong)  # type: ignore[arg-type]
    assert view.count() == 0
    assert view.add_messages(CHAT).added == 3


@pytest.mark.req("N9")
def test_processes_at_once_extract_once(opener: Opener) -> None:
    views = [opener().view(user="ada") for _ in range(1 if opener.kind == "ram" else 3)]

    def add(number: int) -> int:
        return views[number % len(views)].add_messages(CHAT, extract=lambda turns: [f"Made by {number}"]).added

    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(add, range(8)))
    assert sorted(added) == [0] * 7 + [3]
    assert views[0].count() == 4


@one_store
def test_bad_input_changes_nothing(view: View) -> None:
    messages: list[tuple[Any, str]] = [
        ("text", "messages"),
        ([7], "messages"),
        ([{"role": "user"}], "messages"),
        ([{"role": "user", "content": ""}], "messages.content"),
        ([{"role": "", "content": "x"}], "messages.role"),
        ([{"role": "user", "content": "x", "at": "yesterday"}], "messages.at"),
        ([{"role": "user", "content": "x", "mood": "good"}], "messages"),
    ]
    refusals = {str(wrong): refusal(view.add_messages, wrong) for wrong, _ in messages}
    assert refusals == {str(wrong): f"add_messages: InvalidInput of {field}" for wrong, field in messages}
    assert view.count() == 0


def test_a_function_may_be_awaited() -> None:
    async def extract(turns: Sequence[Memory]) -> list[str | NewMemory]:
        await asyncio.sleep(0)
        return [f"{len(turns)} turns"]

    async def main() -> list[str]:
        async with wellkept.aio.open("ram:", embedder=None) as memories:
            found = await memories.view(user="ada").add_messages(CHAT, extract=extract)
            return [one.content for one in found.memories]

    assert asyncio.run(main()) == ["3 turns"]


def test_it_is_on_the_command_line(terminal: Terminal) -> None:
    first = b'{"role": "user", "content": "I prefer tea.", "at": "2030-01-07T09:00:00Z"}\n'
    lines = first + b'{"role": "tool", "content": "42"}\n'
    done = terminal.json("messages", "-", stdin=lines)
    assert (done["added"], [one["content"] for one in done["memories"]]) == (2, ["I prefer tea."])
    assert terminal.json("messages", "-", stdin=lines)["added"] == 0
    assert terminal("messages", "no JSON").code == 2
