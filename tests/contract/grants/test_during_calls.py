"""What a grant and an access policy mean in the middle of a call: between attempts, steps, pages and other callers."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import HandClock, set_sleep
from tests.support.watched import watch, watch_index
from wellkept import Memories, View, aio
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import RateLimited, Unauthorized
from wellkept.indexes.ram import RamIndex
from wellkept.keyrings.ram import RamKeyring
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import AccessPolicy, Grant, Layer, Need, Owner

ADA, CORE = Owner(Layer.USER, ("ada",)), Owner(Layer.TEAM, ("core",))
TEAM: dict[str, Any] = {"user": "ada", "team": "core"}


def keyed_view(memories: Memories, clock: Callable[[], Any], **who: Any) -> tuple[View, Callable[[], object]]:
    """A view under an API key that ends in an hour, and what revokes the key."""
    owners = [ADA, CORE]
    key = memories.keys.create("ci", owners=owners, need="erase", expires_at=clock() + timedelta(hours=1))
    view = memories.view(**who, grant=memories.keys.grant_of(key.token))
    return view, lambda: memories.keys.revoke(key.key.id)


# -- between attempts ---------------------------------------------------------------------------------------------

ATTEMPTED: dict[str, tuple[str, Callable[[View, str], object]]] = {
    "get": ("get", lambda view, id: view.get(id)),
    "list": ("select", lambda view, _: view.list()),
    "count": ("count", lambda view, _: view.count()),
    "search": ("get", lambda view, _: view.search("tea", min_score=0)),
    "history": ("history", lambda view, id: view.history(id)),
    "changes": ("versions", lambda view, _: view.changes()),
    "stats": ("stats", lambda view, _: view.stats()),
    "add": ("append", lambda view, _: view.add("Likes cake")),
    "forget": ("append", lambda view, id: view.forget(id)),
    "forget for good": ("append", lambda view, id: view.forget(id, permanent=True)),
    "sessions": ("records.list", lambda view, _: view.sessions.list()),
}


def _instead_of_waiting(end: Callable[[], object], _: float) -> None:
    end()


@pytest.mark.req("L11", "H10")
@pytest.mark.parametrize("ended", ["expired", "revoked", "not at all"])
def test_a_call_that_is_repeated_asks_the_grant_again(ended: str) -> None:
    for name, (method, call) in ATTEMPTED.items():
        clock, store = HandClock(), FaultyStore(RamStore())
        with wellkept.open(store=store, embedder=None, clock=clock) as memories:
            id = memories.view(user="ada").add("Likes tea").id
            view, revoke = keyed_view(memories, clock, user="ada")
            end: dict[str, Callable[[], object]] = {
                "expired": partial(clock.forward, hours=1),
                "revoked": revoke,
                "not at all": lambda: None,
            }
            set_sleep(memories, partial(_instead_of_waiting, end[ended]))
            store.fail(method, RateLimited("slow down"))
            if ended == "not at all":
                assert call(view, id) is not None, name
                continue
            before = memories.view(user="ada").position()
            with pytest.raises(Unauthorized):
                call(view, id)
            assert memories.view(user="ada").position() == before, name


# -- between steps ------------------------------------------------------------------------------------------------


@pytest.mark.req("L11", "H2")
@pytest.mark.parametrize("as_of", [False, True], ids=["now", "as of a position"])
def test_a_grant_that_ends_between_the_ranking_and_the_reading_shows_nothing(*, as_of: bool) -> None:
    last: dict[str, Callable[[], object]] = {}

    def notice(call: str, _: dict[str, Any]) -> None:
        if call == "Journal.get" and as_of:  # the past is read before it is ranked
            last.pop("get", lambda: None)()
        elif call == "Index.candidates" and not as_of:
            last.pop("candidates", lambda: None)()

    clock, index = HandClock(), watch_index(RamIndex(), notice)
    with wellkept.open(store=watch(RamStore(), notice), embedder=None, clock=clock, index=index) as memories:
        mine = memories.view(user="ada")
        memory = mine.add("Likes tea")
        position = mine.position()
        mine.update(memory.id, content="Likes tea with milk")
        view, revoke = keyed_view(memories, clock, user="ada")
        moment = position if as_of else None
        assert len(view.search("tea", min_score=0, as_of=moment)) == 1
        last["get" if as_of else "candidates"] = revoke
        with pytest.raises(Unauthorized, match="revoked"):
            view.search("tea", min_score=0, as_of=moment)
        assert not last, "nothing ended the grant"


@pytest.mark.req("H2", "L11")
@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "encrypted"])
def test_what_becomes_private_while_it_is_read_is_left_out(*, encrypts: bool) -> None:
    """A memory is stored after the engine looked for what is withheld, and before the store answers."""
    asked: dict[str, tuple[int, str, Callable[[View], object]]] = {
        "list": (1, "Journal.select", lambda view: [memory.content for memory in view.list()]),
        "list by a word": (
            1,
            "Journal.select",
            lambda view: [memory.content for memory in view.list(filter={"content_contains": "note"})],
        ),
        "total": (1, "Journal.count", lambda view: view.list().total),
        "count": (1, "Journal.count", lambda view: view.count()),
        "count by author": (1, "Journal.count", lambda view: view.count(filter={"authors": ["ada"]})),
        "stats": (1, "Journal.stats", lambda view: view.stats().active),
        "list of a past": (1, "Journal.select", lambda view: len(view.list(as_of=view.position()).memories)),
        "changes": (1, "Journal.versions", lambda view: len(view.changes(limit=3).versions)),
        "second page of changes": (2, "Journal.versions", lambda view: len(view.changes(limit=3).versions)),
        "search": (1, "Journal.get", lambda view: [hit.memory.content for hit in view.search("note", min_score=0)]),
    }
    wrong = {}
    for name, (nth, method, call) in asked.items():
        calls, stored = Counter[str](), list[Callable[[], object]]()

        def notice(
            made: str,
            _: dict[str, Any],
            *,
            method: str = method,
            nth: int = nth,
            calls: Counter[str] = calls,
            stored: list[Callable[[], object]] = stored,
        ) -> None:
            calls[made] += 1
            if stored and made == method and calls[made] >= nth:
                stored.pop()()

        how: dict[str, Any] = {"keyring": RamKeyring(), "encrypt": "all"} if encrypts else {}
        with wellkept.open(store=watch(RamStore(), notice), embedder=None, **how) as memories:
            ada, bob = memories.view(**TEAM), memories.view(user="bob", team="core")
            for number in range(4):
                ada.add(f"private note {number}", layer="team", author="ada", access_policy="private")
            ada.add("note for all", layer="team", author="ada")
            before = call(bob)
            calls.clear()
            stored.append(partial(ada.add, "another note", layer="team", author="ada", access_policy="private"))
            if (answer := call(bob)) != before:
                wrong[name] = (before, answer)
            if stored and not (encrypts and name == "stats"):
                wrong[name] = ("nothing was stored", calls)
    assert wrong == {}


# -- between pages ------------------------------------------------------------------------------------------------


@pytest.fixture
def shared() -> Iterator[Memories]:
    """A team's layer with forty memories of ada, of which only every seventh is for others."""
    with wellkept.open("ram:", embedder=None) as memories:
        ada = memories.view(**TEAM)
        for number in range(40):
            policy = None if number % 7 == 0 else AccessPolicy.PRIVATE
            ada.add(f"note {number}", layer="team", author="ada", access_policy=policy)
        yield memories


@pytest.mark.req("H2", "L11")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 7, 39, 40])
def test_a_page_under_a_policy_is_full_or_the_last(shared: Memories, limit: int) -> None:
    bob = shared.view(user="bob", team="core")
    expected = [f"note {number}" for number in range(0, 40, 7)]
    after, contents = None, []
    while True:
        page = bob.changes(after=after, limit=limit)
        contents += [version.memory.content for version in page if version.memory is not None]
        assert len(page.versions) == limit or not page.more
        if not page.more:
            break
        after = page.next
    assert contents == expected
    cursor, contents = None, []
    while True:
        listed = bob.list(sort_by="oldest", limit=limit, cursor=cursor)
        contents += [memory.content for memory in listed.memories]
        assert len(listed.memories) == limit or listed.next_cursor is None
        assert listed.total == len(expected)
        if listed.next_cursor is None:
            break
        cursor = listed.next_cursor
    assert contents == expected


@pytest.mark.req("H2", "L11")
def test_a_reader_goes_on_from_a_page_that_was_cut(shared: Memories) -> None:
    """Behind the last version of a page stands what was written since, and nothing that was on it."""
    bob = shared.view(user="bob", team="core")
    first = bob.changes(limit=6)
    shared.view(**TEAM).add("written since", layer="team")
    second = bob.changes(after=first.next)
    assert [one.memory.content for one in second if one.memory is not None] == ["written since"]


# -- between callers ----------------------------------------------------------------------------------------------

CALLS = 10_000
WRITER = Grant(need=Need.WRITE, owners=(ADA, CORE))
READER = Grant(need=Need.READ, owners=(Owner(Layer.USER, ("bob",)), CORE))


def prepared(memories: Memories) -> dict[str, str]:
    """The ids of memories of two people who share a team: one each that only its author may read, and an open one."""
    ids = {}
    for name in ("ada", "bob"):
        view = memories.view(user=name, team="core")
        ids[name] = view.add(f"secret of {name}", layer="team", author=name, access_policy="private").id
        view.add(f"own of {name}", layer="user")
    ids["open"] = memories.view(**TEAM).add("secret of nobody", layer="team").id
    return ids


def expected_of(name: str, other: str, ids: dict[str, str]) -> dict[str, tuple[Callable[[Any], Any], object]]:
    """Calls of a view, and what each answers to one of the two."""
    mine = {f"secret of {name}", "secret of nobody", f"own of {name}"}

    def contents(answer: Any) -> set[str]:
        return {one.content for one in answer if not one.content.startswith("written")}

    return {
        "get": (lambda view: view.get(ids[name]), lambda answer: answer.content == f"secret of {name}"),
        "get other": (lambda view: view.get(ids[other]), lambda answer: answer is None),
        "history": (lambda view: view.history(ids[other]), lambda answer: answer == []),
        "list": (lambda view: view.list(limit=100), lambda answer: contents(answer.memories) == mine),
        "search": (
            lambda view: view.search("secret", min_score=0, limit=5),
            lambda answer: f"secret of {other}" not in {hit.memory.content for hit in answer},
        ),
        "count": (lambda view: view.count(filter={"authors": [other]}), lambda answer: answer == 0),
    }


def written(view: Any, number: int) -> Any:
    return view.add(f"written {number % 20}", layer="team", duplicates="merge")


def choices(name: str, other: str, ids: dict[str, str]) -> Iterator[tuple[int, str, Any, Any]]:
    """The calls of one of the two, at random but always the same; a tenth writes, and some search."""
    dice = random.Random(name)
    kinds = expected_of(name, other, ids)
    quick = [kind for kind in kinds if kind != "search"]
    for number in range(CALLS // 2):
        if dice.random() < 0.1:
            yield number, "add", None, None
        else:
            kind = "search" if dice.random() < 0.05 else dice.choice(quick)
            yield number, kind, *kinds[kind]


@pytest.mark.req("L11", "H2")
def test_two_threads_with_different_callers_never_mix() -> None:
    with wellkept.open("ram:", embedder=HashingEmbedder(16)) as memories:
        ids = prepared(memories)
        wrong: list[str] = []
        refused = Counter[str]()
        start = threading.Barrier(2)

        def work(name: str, other: str, grant: Grant) -> None:
            view = memories.view(user=name, team="core", grant=grant)
            start.wait()
            for number, kind, call, test in choices(name, other, ids):
                try:
                    answer = written(view, number) if call is None else call(view)
                except Unauthorized:
                    refused[f"{name} {kind}"] += 1
                    continue
                if call is not None and not test(answer):
                    wrong.append(f"{name}: {kind} answered {answer!r}")

        threads = [
            threading.Thread(target=work, args=args) for args in (("ada", "bob", WRITER), ("bob", "ada", READER))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert refused.keys() == {"bob add"}
        assert refused["bob add"] > CALLS // 40


@pytest.mark.req("L11", "H2")
def test_two_tasks_with_different_callers_never_mix() -> None:
    wrong: list[str] = []
    refused = Counter[str]()

    async def work(memories: aio.Memories, ids: dict[str, str], name: str, other: str, grant: Grant) -> None:
        view = memories.view(user=name, team="core", grant=grant)
        for number, kind, call, test in choices(name, other, ids):
            try:
                answer = await (written(view, number) if call is None else call(view))
            except Unauthorized:
                refused[f"{name} {kind}"] += 1
                continue
            if call is not None and not test(answer):
                wrong.append(f"{name}: {kind} answered {answer!r}")

    async def main() -> None:
        store = RamStore()
        with wellkept.open(store=store, embedder=None) as filled:
            ids = prepared(filled)
            async with aio.open(store=store, embedder=None) as memories:
                await asyncio.gather(
                    work(memories, ids, "ada", "bob", WRITER), work(memories, ids, "bob", "ada", READER)
                )

    asyncio.run(main())
    assert wrong == []
    assert refused.keys() == {"bob add"}
