"""Idempotency keys: the same request is stored once, whoever repeats it and when."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from tests.contract.memories.test_view_adding import EVERYTHING
from tests.support.refusals import error_of, refusal
from tests.support.stand_ins import HandClock, sequence
from wellkept import Memories, Memory, NewMemory, View
from wellkept.errors import Conflict
from wellkept.types import LayerName, Source, SourceType


@pytest.mark.req("L1", "N2")
def test_the_same_again_is_stored_once(memories: Memories, view: View, clock: HandClock) -> None:
    first = view.add(**EVERYTHING, dangling=True)
    clock.forward(days=1)
    again = view.add(**EVERYTHING, dangling=True)
    assert again == first
    assert sequence(memories) == view.count() == 1


@pytest.mark.req("L1")
def test_the_same_again_after_an_update_gives_the_memory_as_it_is(view: View) -> None:
    first = view.add("Likes tea", key="k")
    updated = view.update(first.id, content="Likes coffee", add_tags=["drink"])
    assert view.add("Likes tea", key="k") == updated
    with pytest.raises(Conflict):
        view.add("Likes coffee", key="k", tags=["drink"])


DIFFERENT: list[dict[str, Any]] = [
    {"content": "other"},
    {"type": "fact"},
    {"importance": 0.1},
    {"tags": ["database"]},
    {"tags": ["architecture.storage", "database"]},
    {"metadata": {}},
    {"metadata": EVERYTHING["metadata"] | {"flag": 1}},
    {"title": None},
    {"description": "x"},
    {"language": "de"},
    {"author": "bob"},
    {"role": "user"},
    {"type_name": None},
    {"confidence": None},
    {"relevance": 0.0},
    {"decay_factor": 1.0},
    {"source": Source(type=SourceType.CONVERSATION, reference="msg-8")},
    {"pointer": None},
    {"references": []},
    {"session": "tuesday"},
    {"session": None},
]


@pytest.mark.req("L1", "N2")
def test_something_else_under_the_same_key_is_a_conflict(memories: Memories, view: View) -> None:
    first = view.add(**EVERYTHING, dangling=True)
    wrong: dict[str, object] = {}
    for different in DIFFERENT:
        another = EVERYTHING | different
        error = error_of(view.add, **another, dangling=True)
        answer = error and (type(error), error.operation, error.details)
        if answer != (Conflict, "add", {"field": "key", "memory_id": first.id}):
            wrong[f"add {different}"] = answer
        many = refusal(view.add_many, ["good", NewMemory(**another)], dangling=True)
        if many != "add_many: Conflict of key":
            wrong[f"add_many {different}"] = many
    assert wrong == {}
    assert sequence(memories) == 1


@pytest.mark.req("L1", "L7")
def test_the_key_of_a_forgotten_memory_is_taken_until_it_is_erased(memories: Memories, view: View) -> None:
    first = view.add("Likes tea", key="k")
    view.forget(first.id)
    before = sequence(memories)
    for content in ("Likes tea", "Likes coffee"):
        with pytest.raises(Conflict) as caught:
            view.add(content, key="k")
        assert caught.value.details["memory_id"] == first.id
    assert sequence(memories) == before
    view.restore(first.id)
    assert view.add("Likes tea", key="k").id == first.id
    view.forget(first.id, permanent=True)
    second = view.add("Likes coffee", key="k")
    assert second.id != first.id
    assert view.add("Likes coffee", key="k").id == second.id


@pytest.mark.req("L1", "N2")
def test_an_expired_memory_frees_its_key(memories: Memories, view: View, clock: HandClock) -> None:
    first = view.add("Likes tea", key="k", expires_at=clock.time + timedelta(hours=1))
    assert view.add("Likes tea", key="k").id == first.id
    clock.forward(hours=1)
    second = view.add("Likes coffee", key="k")
    assert second.id != first.id
    assert view.get(second.id) is not None
    assert view.add("Likes coffee", key="k").id == second.id
    assert [(one.version, one.reason) for one in view.history(first.id)] == [(1, None), (2, "expired")]
    assert memories.doctor().healthy
    same = NewMemory(content="Likes milk", key="n", expires_at=clock.time + timedelta(hours=1))
    [old] = view.add_many([same])
    clock.forward(hours=1)
    later = replace(same, expires_at=None)
    one, two = view.add_many([later, later])
    assert one.id == two.id != old.id


@pytest.mark.req("L1", "L7")
def test_a_forgotten_memory_that_expires_keeps_its_key(view: View, clock: HandClock) -> None:
    first = view.add("Likes tea", key="k", expires_at=clock.time + timedelta(hours=1))
    view.forget(first.id)
    clock.forward(hours=1)
    with pytest.raises(Conflict):
        view.add("Likes tea", key="k")


@pytest.mark.req("L2")
def test_one_key_twice_in_a_batch(memories: Memories, view: View) -> None:
    same = NewMemory(content="Likes tea", key="k")
    first, other, again = view.add_many([same, "between", same])
    assert first == again
    assert first.id != other.id
    assert sequence(memories) == 2
    with pytest.raises(Conflict):
        view.add_many([NewMemory(content="a", key="n"), NewMemory(content="b", key="n")])
    assert sequence(memories) == 2


@pytest.mark.req("L2")
def test_a_batch_of_known_and_new_keys_stores_the_new_ones(memories: Memories, view: View) -> None:
    known = view.add("one", key="1")
    found = view.add_many(
        [NewMemory(content=text, key=key) for text, key in (("two", "2"), ("one", "1"), ("three", "3"))]
    )
    assert [memory.content for memory in found] == ["two", "one", "three"]
    assert found[1] == known
    assert sequence(memories) == view.count() == 3


@pytest.mark.req("L1", "H6")
def test_the_same_key_of_other_owners_is_another_key(memories: Memories) -> None:
    views = [
        memories.view(user="ada"),
        memories.view(user="bob"),
        memories.view(user="ada", session="s"),
        memories.view(agent="ada", user="ada"),
        memories.view(project="ada"),
    ]
    layers: list[LayerName] = ["user", "user", "session", "agent", "project"]
    added = [
        view.add(f"of {n}", key="k", layer=layer) for n, (view, layer) in enumerate(zip(views, layers, strict=True))
    ]
    assert len({memory.id for memory in added}) == 5
    for number, (view, layer) in enumerate(zip(views, layers, strict=True)):
        assert view.add(f"of {number}", key="k", layer=layer) == added[number]


def test_keys_are_compared_to_the_letter(view: View) -> None:
    pairs = [("k", "K"), ("é", "e\u0301"), ("a_b", "axb"), ("k", "k "), ("%", "*"), ("1", "01")]
    ids = {key: view.add(f"under {key}", key=key).id for key in dict.fromkeys(key for pair in pairs for key in pair)}
    assert len(set(ids.values())) == len(ids)


@pytest.mark.req("L1", "N2")
def test_threads_that_race_store_one(memories: Memories) -> None:
    start = Barrier(8)

    def add(number: int) -> list[Memory]:
        view = memories.view(user="ada")
        start.wait()
        return [view.add("the same", key=f"key {turn}") for turn in range(10)]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(add, range(8)))
    view = memories.view(user="ada")
    assert view.count() == sequence(memories) == 10
    for turn in range(10):
        assert len({answers[turn].id for answers in found}) == 1


@pytest.mark.req("L1", "N2")
def test_threads_that_race_with_different_contents_store_one(memories: Memories) -> None:
    start = Barrier(8)

    def add(number: int) -> str | None:
        view = memories.view(user="ada")
        start.wait()
        try:
            return view.add(f"content {number}", key="k").content
        except Conflict:
            return None

    with ThreadPoolExecutor(8) as threads:
        found = [content for content in threads.map(add, range(8)) if content]
    assert found == [memory.content for memory in memories.view(user="ada").list()]
