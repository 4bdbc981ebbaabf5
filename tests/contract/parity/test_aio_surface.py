"""``wellkept.aio`` and the synchronous engine are one surface: the same names, parameters, results and errors."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import aio
from wellkept.memories import (
    AgentMemory,
    ApiKeys,
    AuditTrail,
    Privacy,
    Session,
    SessionPreferences,
    Sessions,
    Upkeep,
)
from wellkept.window import ContextWindow
from wellkept.working import WorkingMemory

Pairs = list[tuple[type, type]]
PAIRS: Pairs = [
    (wellkept.Memories, aio.Memories),
    (wellkept.View, aio.View),
    (AgentMemory, aio.AgentMemory),
    (ContextWindow, aio.ContextWindow),
    (Sessions, aio.Sessions),
    (Session, aio.Session),
    (SessionPreferences, aio.SessionPreferences),
    (Upkeep, aio.Upkeep),
    (ApiKeys, aio.ApiKeys),
    (Privacy, aio.Privacy),
    (AuditTrail, aio.AuditTrail),
]
# Whoever adds a method to the synchronous surface adds one line to `wellkept.aio`: awaited, unless it is named here,
# because it touches nothing but the memory of this process.
AT_ONCE = {
    "Memories": {"view", "agent", "agents", "on", "watch"},
    "View": set[str](),
    "AgentMemory": set[str](),
    "Facts": set[str](),
    "Sessions": set[str](),
    "Session": set[str](),
    "SessionPreferences": set[str](),
    "Upkeep": {"start"},
    "ApiKeys": set[str](),
    "Privacy": set[str](),
    "AuditTrail": set[str](),
    "ContextWindow": {"add", "pin", "unpin", "remove", "clear", "snapshot", "restore", "acompact"},
}
# A single object that is awaited or iterated.
FEEDS = {"View": {"changes"}}
# Parameters that only async code has.
MORE = {"View.changes": {"follow", "poll_s"}, "open": {"workers"}}
# Parameters that take coroutine functions as well, so that their annotations differ.
WIDER = {
    "View.add_messages": {"extract"},
    "open": {"embedder", "reranker"},
    "Memories.reembed": {"embedder"},
    "Memories.on": {"handler"},
    "ContextWindow.compact": {"summariser"},
}
# What these return is an async class instead of a synchronous one.
FACED = {
    "open",
    "Memories.view",
    "Memories.agent",
    "Memories.agents",
    "View.changes",
    "Sessions.create",
    "Sessions.load",
    "Sessions.restore",
}
ENTERING = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    """The methods of a class that are its own and public, with those that Python calls."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("wellkept.memories")] or [kind]
    own = {name: member for base in bases for name, member in vars(base).items() if inspect.isfunction(member)}
    return {name: member for name, member in own.items() if name not in ("__init__", "__repr__") and not _private(name)}


def properties(kind: type) -> set[str]:
    return {name for name, member in vars(kind).items() if isinstance(member, property)}


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Each class of the synchronous surface with its counterpart. Those of facts have no public name."""

    async def facts() -> type:
        async with aio.open("ram:", embedder=None) as memories:
            return type(memories.view(user="ada").facts)

    with wellkept.open("ram:", embedder=None) as memories:
        return [*PAIRS, (type(memories.view(user="ada").facts), asyncio.run(facts()))]


def verbs(pairs: Pairs) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Each function of the synchronous surface with its counterpart. Which of them lack one, another test tells."""
    yield "open", wellkept.open, aio.open
    for sync, facade in pairs:
        for name, method in methods(sync).items():
            if not name.startswith("__") and hasattr(facade, name):
                yield f"{sync.__name__}.{name}", method, getattr(facade, name)


def test_no_method_is_missing_and_none_is_invented(pairs: Pairs) -> None:
    differing = {
        sync.__name__: names
        for sync, facade in pairs
        if (names := {ENTERING.get(name, name) for name in methods(sync)} ^ set(methods(facade)))
    }
    assert differing == {}


def test_a_repr_says_that_it_is_awaited() -> None:
    async def main() -> str:
        async with aio.open("ram:", embedder=None) as memories:
            return repr((memories, memories.view(user="ada"), memories.agent("helper", user="ada")))

    assert asyncio.run(main()) == "(<aio Memories ram:>, <aio View user=ada>, <aio AgentMemory agent=helper user=ada>)"


def test_parameters_are_the_same(pairs: Pairs) -> None:
    wrong: dict[str, object] = {}
    for name, sync, facade in verbs(pairs):
        expected, signature = inspect.signature(sync), inspect.signature(facade)
        more, wider = MORE.get(name, set()), WIDER.get(name, set())
        parameters = {key: one for key, one in signature.parameters.items() if key not in more}
        if list(parameters) != list(expected.parameters):
            wrong[name] = f"{signature} instead of {expected}"
            continue
        for key, one in expected.parameters.items():
            other = parameters[key]
            if (other.kind, other.default) != (one.kind, one.default):
                wrong[f"{name}, {key}"] = f"{other.kind} {other.default!r} instead of {one.kind} {one.default!r}"
            if key not in wider and str(other.annotation) != str(one.annotation):
                wrong[f"{name}, type of {key}"] = f"{other.annotation} instead of {one.annotation}"
        if name not in FACED and signature.return_annotation != expected.return_annotation:
            wrong[f"{name}, what it returns"] = (signature.return_annotation, expected.return_annotation)
    assert wrong == {}


def test_every_method_is_documented(pairs: Pairs) -> None:
    assert [name for name, _, facade in verbs(pairs) if not inspect.getdoc(facade)] == []


def test_a_method_is_awaited_unless_it_stays_in_the_memory_of_this_process(pairs: Pairs) -> None:
    plain = {
        sync.__name__: {
            name
            for name, method in methods(facade).items()
            if not name.startswith("__") and not inspect.iscoroutinefunction(method)
        }
        for sync, facade in pairs
    }
    expected = {sync.__name__: AT_ONCE[sync.__name__] | FEEDS.get(sync.__name__, set()) for sync, _ in pairs}
    assert {name: names for name, names in plain.items() if names != expected[name]} == {}


@pytest.mark.req("W1")
def test_handles_show_the_same_attributes() -> None:
    async def main() -> None:
        with wellkept.open("ram:", embedder=None) as sync:
            async with aio.open("ram:", embedder=None) as memories:
                mine, other = memories.agent("a", user="ada"), sync.agent("a", user="ada")
                ours, theirs = memories.view(user="ada").sessions, sync.view(user="ada").sessions
                session, same = await ours.create("monday"), theirs.create("monday")
                pairs: list[tuple[object, object]] = [
                    (memories, sync),
                    (memories.view(user="ada"), sync.view(user="ada")),
                    (mine, other),
                    (mine.context, other.context),
                    (ours, theirs),
                    (session, same),
                    (session.preferences, same.preferences),
                ]
                for facade, original in pairs:
                    shown = {name for name in vars(original) if not name.startswith("_")} | properties(type(original))
                    found = {name for name in vars(facade) if not name.startswith("_")} | properties(type(facade))
                    assert found - {"sync"} == shown, type(facade)
                assert type(mine.working) is WorkingMemory

    asyncio.run(main())


# --- the same answers -----------------------------------------------------------------------------


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def scenario(memories: Any) -> list[Any]:
    """A little of everything, written once. What differs from run to run, ids and times, is left out."""
    view = memories.view(user="ada", project="api")
    tea = await settled(view.add("Likes green tea", tags=["drinks"], importance=0.9))
    cake, bus = await settled(view.add_many(["Likes cake", wellkept.NewMemory(content="The bus was late")]))
    told: list[Any] = [tea.content, cake.version, view.identity, view.layers]
    told += [(await settled(view.update(tea.id, content="Likes black tea", if_version=1))).version]
    told += [await settled(view.forget(cake.id, reason="diet")), await settled(view.get(cake.id))]
    told += [await settled(view.restore(cake.id)), await settled(view.forget(bus.id, permanent=True))]
    found = await settled(view.get_many([tea.id, cake.id, bus.id]))
    told += [sorted(memory.content for memory in found.values())]
    told += [[hit.memory.content for hit in await settled(view.search("what tea?", explain=True))]]
    page = await settled(view.list(limit=1, sort_by="oldest"))
    told += [page.total, [memory.content for memory in page], await settled(view.count(filter={"tags": ["drinks"]}))]
    told += [[(one.version, one.operation.value) for one in await settled(view.changes())]]
    told += [[one.reason for one in await settled(view.history(cake.id))], (await settled(view.stats())).active]
    me = memories.agent("debugger", user="ada", project="api", context_tokens=100)
    me.working.set("step", 3)
    me.context.add("user", "Make the theme dark", created_at=tea.created_at)
    saved = await settled(me.snapshot())
    await settled(me.clear())
    told += [me.working.get("step"), len(me.context), me.context.tokens_free]
    await settled(me.restore(saved))
    told += [me.working.get("step"), me.context.items[0].content, (await settled(me.stats())).context_items]
    told += [(await settled(me.context.compose("tea", now=tea.created_at))).receipt.total_tokens]
    told += [(await settled(me.context.compact(0))).receipt.dropped, await settled(memories.settings())]
    told += [(await settled(memories.doctor())).healthy, (await settled(memories.health())).status]
    await settled(memories.rebuild())
    told += [(await settled(memories.scrub())).remains]
    return [*told, await settled(memories.reembed())]


def test_one_scenario_gives_the_same_answers(tmp_path: Path) -> None:
    async def main() -> None:
        with wellkept.open(tmp_path / "sync.db") as sync:
            expected = await scenario(sync)
        async with aio.open(tmp_path / "async.db") as memories:
            found = await scenario(memories)
        assert found == expected

    asyncio.run(main())


WRONG: list[Callable[[Any], Any]] = [
    lambda memories: memories.view(),
    lambda memories: memories.view(user=""),
    lambda memories: memories.agent("", user="ada"),
    lambda memories: memories.agent("a", user="ada", context_tokens=0),
    lambda memories: memories.configure(durability="none"),
    lambda memories: memories.reembed("no such embedder"),
    lambda memories: memories.reembed(object()),
    lambda memories: memories.on(object, print),
    lambda memories: memories.view(user="ada").add(""),
    lambda memories: memories.view(user="ada").add("x", layer="team"),
    lambda memories: memories.view(user="ada").add("x", bogus=True),
    lambda memories: memories.view(user="ada").add_many("x", "y"),
    lambda memories: memories.view(user="ada").update("nothing", content="x"),
    lambda memories: memories.view(user="ada").search(" "),
    lambda memories: memories.view(user="ada").list(limit=0),
    lambda memories: memories.view(user="ada").changes(after="-1"),
    lambda memories: memories.view(user="ada").changes(limit="all"),
    lambda memories: memories.view(user="ada").changes(layers=["nowhere"]),
    lambda memories: memories.agent("a", user="ada").restore(None),
    lambda memories: memories.agent("a", user="ada").context.add("nobody", "x"),
    lambda memories: memories.agent("a", user="ada").context.compact(1, strategy="summariser"),
    lambda memories: memories.agent("a", user="ada").context.compact(1, summariser=lambda items, tokens: "x"),
]


NOTHING = ("nothing was raised",)


async def differing(calls: list[Callable[[Any], Any]], memories: Any, sync: Any) -> dict[int, object]:
    """The errors of calls, by their place, that are not the same for both."""
    errors = {place: (await raised(call, memories), await raised(call, sync)) for place, call in enumerate(calls)}
    return {place: pair for place, pair in errors.items() if pair[0] != pair[1] or pair[0] == NOTHING}


async def raised(call: Callable[[Any], Any], memories: Any) -> tuple[Any, ...]:
    try:
        await settled(call(memories))
    except wellkept.WellkeptError as error:
        return type(error), error.message, error.code, error.operation, error.details, error.hint
    except TypeError as error:
        return (TypeError, str(error))
    return NOTHING


def test_errors_are_the_same() -> None:
    async def main() -> dict[int, object]:
        with wellkept.open("ram:", embedder=None) as sync:
            async with aio.open("ram:", embedder=None) as memories:
                return await differing(WRONG, memories, sync)

    assert asyncio.run(main()) == {}, "by their place in WRONG"


CLOSED: list[Callable[[Any], Any]] = [
    lambda memories: memories.settings(),
    lambda memories: memories.rebuild(),
    lambda memories: memories.view(user="ada").add("Too late"),
    lambda memories: memories.view(user="ada").get("x"),
    lambda memories: memories.view(user="ada").changes(),
    lambda memories: memories.view(user="ada").search("tea"),
    lambda memories: memories.agent("a", user="ada").stats(),
]


def test_a_closed_database_refuses_in_the_same_words(tmp_path: Path) -> None:
    async def main() -> dict[int, object]:
        sync = wellkept.open(tmp_path / "sync.db", embedder=None)
        sync.close()
        memories = await aio.open(tmp_path / "async.db", embedder=None)
        await memories.close()
        await memories.close()
        kinds = [(await raised(call, memories))[0] for call in CLOSED]
        assert kinds == [wellkept.errors.StoreClosed] * len(CLOSED)
        assert (await memories.health()).status is sync.health().status
        return await differing(CLOSED, memories, sync)

    assert asyncio.run(main()) == {}, "by their place in CLOSED"


WRONG_TO_OPEN: list[dict[str, Any]] = [
    {},
    {"url": "nosuch:store"},
    {"url": "ram:", "embedder": "nosuch"},
    {"url": "ram:", "embedder": object()},
    {"url": "ram:", "reranker": object()},
    {"url": "ram:", "store": object()},
    {"url": ""},
]


def opening(open: Callable[..., Any], arguments: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda _: open(**arguments)


def test_errors_of_opening_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WELLKEPT_DB", raising=False)

    async def main() -> dict[str, object]:
        wrong: dict[str, object] = {}
        for arguments in WRONG_TO_OPEN:
            expected = await raised(opening(wellkept.open, arguments), None)
            error = await raised(opening(aio.open, arguments), None)
            if error != expected or error == NOTHING:
                wrong[str(arguments)] = (error, expected)
        return wrong

    assert asyncio.run(main()) == {}
