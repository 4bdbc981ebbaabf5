"""The store that other tests run on refuses what no check of the engine can have let through."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import wellkept
from tests.support.guarded import PastTheChecks, guarded, guarded_index
from wellkept import Identity, Memories
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.stores.ram import RamStore
from wellkept.types import Grant, Layer, Need, Owner


@pytest.fixture
def memories() -> Iterator[Memories]:
    with wellkept.open(store=guarded(RamStore()), index=guarded_index(), embedder=HashingEmbedder(16)) as opened:
        yield opened


@pytest.mark.req("L11", "H6")
def test_a_call_for_another_owner_is_refused(memories: Memories) -> None:
    view = memories.view(user="ada", session="monday")
    id = view.add("Likes tea", layer="user").id
    assert [hit.memory.id for hit in view.search("tea")] == [id]
    view.identity = Identity(user="bob")  # whom the engine asks for is not who acts any more
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: view.add("Likes cake"),
        "get": lambda: view.get(id),
        "list": view.list,
        "count": view.count,
        "search": lambda: view.search("tea"),
        "update": lambda: view.update(id, title="Tea"),
        "forget": lambda: view.forget(id),
        "history": lambda: view.history(id),
        "changes": view.changes,
        "stats": view.stats,
    }
    passed = []
    for name, call in calls.items():
        try:
            call()
        except PastTheChecks:
            continue
        passed.append(name)
    assert passed == []


@pytest.mark.req("L11", "H6")
def test_a_session_is_not_reached_through_its_user(memories: Memories) -> None:
    view = memories.view(user="ada", session="monday")
    view.identity = Identity(user="ada", session="tuesday")
    with pytest.raises(PastTheChecks):
        view.list()


def test_within_a_grant_the_store_answers(memories: Memories) -> None:
    ada, bob = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("*",))
    for owners in ((ada,), (bob,), None):
        view = memories.view(user="ada", session="monday", grant=Grant(need=Need.ERASE, owners=owners))
        id = view.add("Likes tea", layer="session", duplicates="keep").id
        assert view.forget(id, permanent=True)
