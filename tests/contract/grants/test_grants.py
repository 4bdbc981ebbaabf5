"""A view under a grant can do no more than the grant says, whichever method is called."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

import wellkept
from tests.contract.grants.test_grant_matrix import state
from tests.support.stand_ins import HandClock, store_of
from wellkept import Memories, NewMemory
from wellkept.errors import InvalidInput, InvalidLayer, NotFound, Unauthorized, WellkeptError
from wellkept.types import Grant, Layer, Need, Owner, State

ADA = Owner(Layer.USER, ("ada",))
WHO: dict[str, Any] = {"user": "ada", "agent": "debugger"}


@contextmanager
def populated(clock: HandClock) -> Iterator[Memories]:
    """A database in RAM in which every method has something to work on."""
    with wellkept.open("ram:", embedder=None, clock=clock) as opened:
        view = opened.view(**WHO)
        first = view.add("Likes tea", layer="user", key="drink", tags=["food"])
        view.update(first.id, title="Drinks")
        view.forget(view.add("Gone", layer="user", metadata={"a": 1}).id)
        view.facts.add("Ada", "lives in", "Rome", layer="user")
        view.add("Lives near the sea", layer="user", author="bob", pointer=view.point_to(__file__))
        view.quarantine(author="bob")
        monday = view.sessions.create("monday", preferences={"theme": "dark"}).view
        monday.add("Use OAuth", tags=["security"])
        monday.forget(monday.add("Use SAML").id)
        view.sessions.delete(view.sessions.create("tuesday").id)
        yield opened


@pytest.fixture
def memories() -> Iterator[Memories]:
    with populated(HandClock()) as opened:
        yield opened


def first_id(memories: Memories) -> str:
    return next(iter(store_of(memories).journal.scan({ADA}))).id


# What each method needs, and how it is called, for every method there is: a new one must be entered here.
Calls = dict[str, tuple[Need, Callable[[Any, str], Any]]]
GONE = {"include_forgotten": True}
VIEW: Calls = {
    "add": (Need.WRITE, lambda view, _: view.add("x")),
    "add_many": (Need.WRITE, lambda view, _: view.add_many(["x", NewMemory(content="y", layer="user")])),
    "put": (Need.WRITE, lambda view, _: view.put("drink", "Likes cake", layer="user")),
    "update": (Need.WRITE, lambda view, id: view.update(id, title="x")),
    "forget": (Need.WRITE, lambda view, id: view.forget(id)),
    "forget for good": (Need.ERASE, lambda view, id: view.forget(id, permanent=True)),
    "forget_many": (Need.WRITE, lambda view, _: view.forget_many(filter={})),
    "forget_many for good": (Need.ERASE, lambda view, id: view.forget_many([id], permanent=True)),
    "forget_many as a dry run": (Need.READ, lambda view, _: view.forget_many(filter={}, dry_run=True)),
    "forget_many for good as a dry run": (
        Need.READ,
        lambda view, id: view.forget_many([id], permanent=True, dry_run=True),
    ),
    "restore": (
        Need.WRITE,
        lambda view, _: [view.restore(one.id) for one in view.list(filter=GONE) if one.state is State.FORGOTTEN],
    ),
    "get": (Need.READ, lambda view, id: view.get(id)),
    "get_many": (Need.READ, lambda view, id: view.get_many([id])),
    "list": (Need.READ, lambda view, _: view.list()),
    "count": (Need.READ, lambda view, _: view.count()),
    "stats": (Need.READ, lambda view, _: view.stats()),
    "changes": (Need.READ, lambda view, _: view.changes()),
    "position": (Need.READ, lambda view, _: view.position()),
    "search": (Need.READ, lambda view, _: view.search("tea", min_score=0)),
    "history": (Need.READ, lambda view, id: view.history(id)),
    "lineage": (Need.READ, lambda view, id: view.lineage(id)),
    "facts": (Need.READ, lambda view, _: view.facts.find()),
    "sessions": (Need.READ, lambda view, _: view.sessions.list()),
    "layers": (Need.READ, lambda view, _: view.count() and view.layers),
    "add_messages": (Need.WRITE, lambda view, _: view.add_messages([{"role": "user", "content": "I prefer tea."}])),
    "move": (Need.WRITE, lambda view, id: view.move(id, layer="agent")),
    "plan_quarantine": (Need.READ, lambda view, id: view.plan_quarantine(ids=[id])),
    "quarantine": (Need.WRITE, lambda view, id: view.quarantine(ids=[id])),
    "release": (Need.WRITE, lambda view, id: view.release(view.quarantine(ids=[id]).id)),
    "erase_quarantined": (Need.ERASE, lambda view, _: view.erase_quarantined()),
    "undoable": (Need.READ, lambda view, _: view.undoable()),
    "undo": (Need.WRITE, lambda view, _: view.undo()),
    "point_to": (Need.READ, lambda view, _: view.point_to(__file__)),
    "refresh": (Need.WRITE, lambda view, _: view.refresh([__file__])),  # the file is as it was
    "refresh as a dry run": (Need.READ, lambda view, _: view.refresh([__file__], dry_run=True)),
}
ENTRY = '{"id":"1","timestamp":"2026-01-10T10:00:00Z","content":"Use tabs"}'
SESSIONS: Calls = {
    "create": (Need.WRITE, lambda sessions, _: sessions.create("friday")),
    "load": (Need.READ, lambda sessions, _: sessions.load("monday")),
    "list": (Need.READ, lambda sessions, _: sessions.list(include_deleted=True)),
    "close": (Need.WRITE, lambda sessions, _: sessions.close("monday")),
    "compact": (Need.WRITE, lambda sessions, _: sessions.compact("monday")),
    "compact as a dry run": (Need.READ, lambda sessions, _: sessions.compact("monday", dry_run=True)),
    "compact for good as a dry run": (
        Need.READ,
        lambda sessions, _: sessions.compact("monday", purge=True, dry_run=True),
    ),
    "compact for good": (Need.ERASE, lambda sessions, _: sessions.compact("monday", purge=True)),
    "delete": (Need.WRITE, lambda sessions, _: sessions.delete("monday")),
    "delete for good": (Need.ERASE, lambda sessions, _: sessions.delete("monday", permanent=True)),
    "delete as a dry run": (Need.READ, lambda sessions, _: sessions.delete("monday", dry_run=True)),
    "delete for good as a dry run": (
        Need.READ,
        lambda sessions, _: sessions.delete("monday", permanent=True, dry_run=True),
    ),
    "restore": (Need.WRITE, lambda sessions, _: sessions.restore("tuesday")),
    "import_session": (Need.WRITE, lambda sessions, _: sessions.import_session(ENTRY, "friday")),
    "import_session as a dry run": (
        Need.READ,
        lambda sessions, _: sessions.import_session(ENTRY, "friday", dry_run=True),
    ),
    "search": (Need.READ, lambda sessions, _: sessions.search("OAuth", min_score=0)),
    "list_memories": (Need.READ, lambda sessions, _: sessions.list_memories()),
    "topics": (Need.READ, lambda sessions, _: sessions.topics()),
    "sessions_about": (Need.READ, lambda sessions, _: sessions.sessions_about("security")),
}
SESSION: Calls = {
    "view": (Need.READ, lambda session, _: session.view.count()),
    "view adds": (Need.WRITE, lambda session, _: session.view.add("x")),
    "preferences": (Need.READ, lambda session, _: session.preferences.all()),
    "config": (Need.READ, lambda session, _: session.config),
    "metadata": (Need.READ, lambda session, _: session.metadata),
    "closed_at": (Need.READ, lambda session, _: session.closed_at),
    "configure": (Need.WRITE, lambda session, _: session.configure({"decay": {"half_life_hours": 24}})),
    "stats": (Need.READ, lambda session, _: session.stats()),
    "close": (Need.WRITE, lambda session, _: session.close()),
    "reopen": (Need.WRITE, lambda session, _: session.reopen()),  # it is open: nothing is written
    "forget": (Need.WRITE, lambda session, _: session.forget(topic="security")),
    "forget for good": (Need.ERASE, lambda session, _: session.forget(topic="security", permanent=True)),
    "forget as a dry run": (Need.READ, lambda session, _: session.forget(topic="security", dry_run=True)),
    "forget for good as a dry run": (
        Need.READ,
        lambda session, _: session.forget(topic="security", permanent=True, dry_run=True),
    ),
    "compact": (Need.WRITE, lambda session, _: session.compact()),
    "compact as a dry run": (Need.READ, lambda session, _: session.compact(dry_run=True)),
    "compact for good": (Need.ERASE, lambda session, _: session.compact(purge=True)),
    "export": (Need.READ, lambda session, _: session.export(history=True)),
}
PREFERENCES: Calls = {
    "language": (Need.READ, lambda kept, _: kept.language),
    "verbosity": (Need.READ, lambda kept, _: kept.verbosity),
    "custom": (Need.READ, lambda kept, _: kept.custom),
    "all": (Need.READ, lambda kept, _: kept.all()),
    "get": (Need.READ, lambda kept, _: kept.get("theme")),
    "set": (Need.WRITE, lambda kept, _: kept.set("theme", "light")),
    "merge": (Need.WRITE, lambda kept, _: kept.merge({"theme": "light"})),
    "remove": (Need.WRITE, lambda kept, _: kept.remove("theme")),
}
FACTS: Calls = {
    "add": (Need.WRITE, lambda facts, _: facts.add("Ada", "lives in", "Oslo", layer="user")),
    "find": (Need.READ, lambda facts, _: facts.find()),
}
AGENT: Calls = {
    "working": (Need.WRITE, lambda agent, _: agent.working.set("step", 3)),
    "long_term": (Need.WRITE, lambda agent, _: agent.long_term.add("x")),
    "context": (Need.WRITE, lambda agent, _: agent.context.add("user", "x")),
    "stats": (Need.WRITE, lambda agent, _: agent.stats()),
    "clear": (Need.WRITE, lambda agent, _: agent.clear(long_term=True)),
    "snapshot": (Need.WRITE, lambda agent, _: agent.snapshot()),
    "restore": (Need.WRITE, lambda agent, _: agent.restore(agent.snapshot())),
    "close": (Need.WRITE, lambda agent, _: agent.working and agent.close()),
}
Maker = Callable[[Memories, Grant], Any]
KINDS: dict[str, tuple[Calls, Maker]] = {
    "View": (VIEW, lambda memories, grant: memories.view(**WHO, grant=grant)),
    "Sessions": (SESSIONS, lambda memories, grant: memories.view(**WHO, grant=grant).sessions),
    "Session": (SESSION, lambda memories, grant: memories.view(**WHO, grant=grant).sessions.load("monday")),
    "SessionPreferences": (
        PREFERENCES,
        lambda memories, grant: memories.view(**WHO, grant=grant).sessions.load("monday").preferences,
    ),
    "Facts": (FACTS, lambda memories, grant: memories.view(**WHO, grant=grant).facts),
    "AgentMemory": (AGENT, lambda memories, grant: memories.agent(**WHO, grant=grant)),
}
CASES = [(kind, name) for kind, (calls, _) in KINDS.items() for name in calls]


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_is_among_the_cases(memories: Memories, kind: str) -> None:
    calls, made = KINDS[kind]
    subject = type(made(memories, Grant()))
    assert subject.__name__ == kind
    public = {name for name, _ in inspect.getmembers(subject) if not name.startswith("_")}
    assert public == {name.split(" ")[0] for name in calls}, "say what it needs"


def unrefused(memories: Memories, call: Callable[[], object]) -> str:
    """What is wrong if a call is not refused, or changes something; otherwise an empty text."""
    before = state(memories)
    try:
        answer = call()
    except Unauthorized:
        after = state(memories)
        return "" if after == before else "changed the database"
    except WellkeptError as error:
        return f"was refused by {error!r}"
    return f"answered {answer!r}"


def _made_and_called(made: Maker, method: Callable[[Any, str], Any], memories: Memories, grant: Grant) -> Any:
    return method(made(memories, grant), first_id(memories))


@pytest.mark.req("L11", "J12")
def test_a_method_works_exactly_where_its_need_is_granted() -> None:
    wrong = {}
    for (kind, name), need in product(CASES, Need):
        calls, made = KINDS[kind]
        needed, method = calls[name]
        case, grant = f"{kind}.{name} with {need}", Grant(need=need, owners=(ADA,))
        with populated(HandClock()) as memories:
            call = partial(_made_and_called, made, method, memories, grant)
            if need.covers(needed):
                try:
                    call()
                except WellkeptError as error:
                    wrong[case] = repr(error)
            elif complaint := unrefused(memories, call):
                wrong[case] = complaint
    assert wrong == {}


@pytest.mark.req("L11", "J12")
@pytest.mark.parametrize("ended", ["expired", "revoked"])
def test_an_object_made_in_time_does_nothing_once_the_grant_has_ended(ended: str) -> None:
    wrong = {}
    for kind, name in CASES:
        (calls, made), clock = KINDS[kind], HandClock()
        with populated(clock) as memories:
            key = memories.keys.create("ci", owners=[ADA], need="erase", expires_at=clock() + timedelta(hours=1))
            subject = made(memories, memories.keys.grant_of(key.token))
            if ended == "expired":
                clock.forward(hours=1)
            else:
                memories.keys.revoke(key.key.id)
            id, (_, method) = first_id(memories), calls[name]
            if complaint := unrefused(memories, partial(method, subject, id)):
                wrong[f"{kind}.{name}"] = complaint
    assert wrong == {}


@pytest.mark.req("L11")
def test_a_refusal_is_told_to_watchers_like_any_failure(memories: Memories) -> None:
    heard: list[wellkept.types.OperationCompleted] = []
    memories.watch(heard.append)
    view = memories.view(**WHO, grant=Grant(need=Need.READ, owners=(ADA,)))
    with pytest.raises(Unauthorized) as refused:
        view.refresh([])
    assert refused.value.operation == "refresh"
    assert [(told.operation, told.code) for told in heard] == [("view", None), ("refresh", "UNAUTHORIZED")]


# -- owners -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("L11")
def test_a_service_names_the_user_per_call_within_its_grant(memories: Memories) -> None:
    service = Grant(need=Need.WRITE, owners=(Owner(Layer.USER, ("*",)),))
    for user in ("ada", "bob", "ad*"):
        memories.view(user=user, grant=service).add(f"said by {user}")
    assert [one.content for one in memories.view(user="bob", grant=service).list()] == ["said by bob"]
    with pytest.raises(Unauthorized):
        memories.view(user="ada", project="api", grant=service)


@pytest.mark.req("L11")
def test_a_grant_for_an_agent_does_not_see_its_user(memories: Memories) -> None:
    grant = Grant(need=Need.WRITE, owners=(Owner(Layer.AGENT, ("ada", "debugger")),))
    view = memories.view(**WHO, grant=grant)
    assert [layer.value for layer in view.layers] == ["agent"]
    view.add("own")
    assert [one.content for one in view.list()] == ["own"]
    with pytest.raises(InvalidLayer):
        view.add("x", layer="user")
    assert view.sessions.list() == ()
    with pytest.raises(Unauthorized):
        view.sessions.load("monday")
    with pytest.raises(Unauthorized):
        memories.view(user="ada", grant=grant)


@pytest.mark.req("L11")
def test_a_grant_for_one_session_reaches_that_one_alone(memories: Memories) -> None:
    memories.view(user="ada").sessions.create("friday").view.add("Secret")
    grant = Grant(need=Need.ERASE, owners=(Owner(Layer.SESSION, ("ada", "monday")),))
    sessions = memories.view(user="ada", session="monday", grant=grant).sessions
    assert [one.id for one in sessions.list()] == ["monday"]
    assert {one.content for one in sessions.list_memories()} == {"Use OAuth"}
    for call in (sessions.load, sessions.delete, sessions.close, sessions.restore):
        with pytest.raises((Unauthorized, NotFound)):
            call("friday")
    assert memories.view(user="ada").sessions.load("friday").stats().entries == 1


@pytest.mark.parametrize(
    "grant",
    [
        Grant(owners=()),
        Grant(owners=(Owner(Layer.USER, ("ada", "bob")),)),
        Grant(owners=(Owner(Layer.USER, ("",)),)),
        Grant(owners=("ada",)),  # type: ignore[arg-type]
        Grant(owners=(ADA,) * 1_001),
        Grant(need="all"),  # type: ignore[arg-type]
        Grant(max_trust=2),
        Grant(holder="default"),
        Grant(expires_at=datetime(2030, 1, 7)),  # noqa: DTZ001
        "everything",
    ],
    ids=str,
)
def test_a_grant_that_cannot_be_meant_is_refused(memories: Memories, grant: Any) -> None:
    with pytest.raises(InvalidInput):
        memories.view(user="ada", grant=grant)


def test_a_refusal_names_no_owner_and_no_content(memories: Memories) -> None:
    with pytest.raises(Unauthorized) as refused:
        memories.view(user="secret-name", grant=Grant(owners=(ADA,)))
    error = refused.value
    assert "secret-name" not in f"{error} {error.hint} {error.details}"
    assert error.details == {"granted": "admin", "layer": "user"}


def test_all_views_go_over_to_another_embedder_at_once(memories: Memories) -> None:
    view = memories.view(user="ada", grant=Grant(need=Need.WRITE, owners=(ADA,)))
    assert not view.search("tea", min_score=0).semantic
    memories.reembed("hashing-16")
    assert view.search("tea", min_score=0).semantic


# -- trust ------------------------------------------------------------------------------------------------------------


@pytest.mark.req("N9")
def test_what_is_written_under_a_grant_is_trusted_no_more_than_it_says(memories: Memories) -> None:
    view = memories.view(user="ada", grant=Grant(need=Need.WRITE, owners=(ADA,), max_trust=0.4))
    plain = view.add("x")
    said = view.add("x", role="user", trust=1.0)
    web = view.add("from the web", source=wellkept.types.Source(type=wellkept.types.SourceType.WEB))
    put = view.put("k", "x", trust=0.9)
    fact = view.facts.add("Ada", "likes", "tea")
    assert [one.trust for one in (plain, said, web, put, fact)] == [0.4, 0.4, 0.2, 0.4, 0.4]
    mine = memories.view(user="ada")
    assert [mine.get(one.id).trust for one in (plain, said, web, put, fact)] == [0.4, 0.4, 0.2, 0.4, 0.4]  # type: ignore[union-attr]


@pytest.mark.req("N9")
def test_a_trusted_memory_that_is_changed_under_a_grant_is_trusted_less(memories: Memories) -> None:
    mine = memories.view(user="ada")
    memory = mine.add("Likes tea", role="user")
    assert memory.trust == 1.0
    view = memories.view(user="ada", grant=Grant(need=Need.WRITE, owners=(ADA,), max_trust=0.4))
    assert view.update(memory.id, content="Likes poison", role="user").trust == 0.4
    assert view.update(memory.id).trust == 0.4
    assert mine.update(memory.id, title="x").trust == 0.4
