"""Every operation of the engine, done well and done badly, with something planted wherever a caller can say a thing."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import recollect
from recollect import AgentMemory, Memories, NewMemory, RecollectError, View
from recollect.embedders.hashing import HashingEmbedder
from recollect.errors import StoreBusy, StoreCorrupt
from recollect.events import Event
from recollect.memories import Sessions
from recollect.settings import RetryPolicy
from recollect.stores.ram import RamStore
from recollect.testing import FaultyStore
from recollect.window import Strategy

PLANTED = "xyzzy"
"""Stands in contents, titles, tags, metadata, keys, queries, reasons, values, names and messages of errors."""


class Talkative(HashingEmbedder):
    """Says what it was asked when it is out of order."""

    def __init__(self) -> None:
        super().__init__(16)
        self.broken = False

    def embed(self, texts: Sequence[str]) -> list[Any]:
        if self.broken:
            raise ConnectionError(f"cannot send {texts}")
        return super().embed(texts)


def fails(operation: Callable[..., object], *args: Any, **kwargs: Any) -> None:
    with contextlib.suppress(RecollectError, TypeError):
        operation(*args, **kwargs)
        raise AssertionError("should have failed")


def everything(prepare: Callable[[Memories], object]) -> None:
    """Open a database, prepare it, and do all there is to do."""
    store, embedder = FaultyStore(RamStore()), Talkative()
    with recollect.open(store=store, embedder=embedder, retry=RetryPolicy(attempts=1)) as memories:
        prepare(memories)
        _fail_loudly(memories)
        view = memories.view(user=PLANTED, project="api")
        _view(view)
        _sessions(view.sessions)
        _view_badly(view, store, embedder)
        _database(memories)
        me = memories.agent("debugger", user=PLANTED, session="monday")
        _working(me)
        _context(me)
        _agent(me)


def _fail_loudly(memories: Memories) -> None:
    def quote(event: Event) -> None:
        try:
            raise KeyError(repr(event))
        except KeyError as error:
            raise ValueError(f"no room for {event}") from error

    memories.on(Event, quote)


def _view(view: View) -> None:
    memory = view.add(
        f"Likes {PLANTED}", title=PLANTED, tags=[PLANTED], metadata={PLANTED: PLANTED}, key=PLANTED, layer="project"
    )
    view.add_many([f"More {PLANTED}", NewMemory(content=PLANTED, author=PLANTED)])
    view.get(memory.id)
    view.get_many([memory.id, PLANTED])
    view.list(filter=recollect.Filter(content_contains=PLANTED))
    view.count()
    view.stats()
    view.search(f"Who likes {PLANTED}?", min_score=0)
    view.update(memory.id, content=f"Loves {PLANTED}")
    view.forget(memory.id, reason=PLANTED)
    view.restore(memory.id)
    view.history(memory.id)
    view.position()
    view.changes()
    view.forget_many(filter={"tags": [PLANTED]}, reason=PLANTED)


def _sessions(sessions: Sessions) -> None:
    session = sessions.create("tuesday", preferences={PLANTED: PLANTED}, metadata={PLANTED: PLANTED})
    fails(sessions.create, "tuesday")
    session.view.add(PLANTED, tags=[PLANTED])
    session.preferences.set(PLANTED, PLANTED)
    session.preferences.merge({PLANTED: 1})
    session.preferences.get(PLANTED)
    session.preferences.remove(PLANTED)
    fails(session.preferences.set, f"{PLANTED}\n", 1)
    session.configure({"limit_bytes": 10_000})
    fails(session.configure, {PLANTED: 1})
    session.stats()
    session.export()
    fails(session.export, PLANTED)
    session.close()
    session.reopen()
    sessions.load("tuesday")
    fails(sessions.load, "wednesday")
    sessions.list()
    sessions.search(PLANTED)
    sessions.list_memories(filter={"tags": [PLANTED]})
    sessions.topics()
    sessions.sessions_about(PLANTED)
    session.forget(topic=PLANTED, reason=PLANTED)
    session.compact()
    session.compact(purge=True)
    sessions.compact("tuesday", dry_run=True)
    sessions.close("tuesday")
    sessions.delete("tuesday", reason=PLANTED)
    sessions.restore("tuesday")


def _view_badly(view: View, store: FaultyStore, embedder: Talkative) -> None:
    fails(view.add, PLANTED, layer=PLANTED)
    fails(view.add, PLANTED, type=PLANTED)
    fails(view.add, f"other {PLANTED}", key=PLANTED, layer="project")
    fails(view.add, PLANTED, **{PLANTED: PLANTED})
    fails(view.add_many, [PLANTED, 5])
    fails(view.get, [PLANTED])
    fails(view.get_many, [None])
    fails(view.list, cursor=PLANTED)
    fails(view.count, layers=[PLANTED])
    fails(view.search, PLANTED * 10_000)
    fails(view.search, PLANTED, ranking=PLANTED)
    fails(view.update, PLANTED, content=PLANTED)
    fails(view.forget, PLANTED, reason=f"{PLANTED}\n")
    for method, error in (("append", StoreBusy(f"at {PLANTED}")), ("get", StoreCorrupt(f"in {PLANTED}"))):
        store.fail(method, error)
        fails(view.add if method == "append" else view.get, PLANTED)
    embedder.broken = True
    view.add(f"Without a vector, {PLANTED}")
    view.search(PLANTED)
    embedder.broken = False
    view.search(PLANTED)


def _database(memories: Memories) -> None:
    memories.health()
    memories.settings()
    memories.configure(durability="relaxed")
    fails(memories.configure, durability=PLANTED)
    fails(memories.view, user=f"{PLANTED}\n")
    memories.doctor()
    memories.reembed()
    memories.rebuild()
    memories.sizes()


def _working(me: AgentMemory) -> None:
    working = me.working
    working.set(PLANTED, PLANTED, tags=[PLANTED], metadata={PLANTED: PLANTED})
    working.get_or_set(f"{PLANTED} 2", lambda: {PLANTED: PLANTED})
    with working.create_scope(PLANTED) as scope:
        scope.search(PLANTED)
        for level in (working, scope):
            level.get(PLANTED)
            level.contains(PLANTED)
            level.entry(PLANTED)
            level.all()
            level.keys()
            fails(level.get, PLANTED, type=int)
            fails(level.set, PLANTED, object())
            fails(level.get_or_set, f"new {PLANTED}", PLANTED)
            asyncio.run(level.aget_or_set(f"{PLANTED} 3", _made))
        scope.set(PLANTED, [PLANTED])
        scope.get_or_set(PLANTED, dict)
        scope.get_local(PLANTED)
        scope.contains_local(PLANTED)
        scope.local_entries()
        scope.remove(PLANTED)
        scope.create_scope(PLANTED)
        scope.children()
        scope.set(PLANTED, 1)
        scope.merge_to_parent()
    fails(scope.get, PLANTED)
    working.search(PLANTED)
    working.active_scopes()
    working.stats()
    working.restore(working.snapshot())
    working.remove(PLANTED)
    working.clear()


def _context(me: AgentMemory) -> None:
    context = me.context
    item = context.add("user", f"Buy {PLANTED}")
    fails(context.add, PLANTED, PLANTED)
    context.pin(item.id)
    context.unpin(item.id)
    for number in range(4):
        context.add("assistant", f"{PLANTED} number {number}. " * 20, source=PLANTED)
    context.compose(f"Who likes {PLANTED}?")
    fails(context.compose, PLANTED, budget_tokens=0)
    context.compact(300, strategy=Strategy.EXTRACTIVE)
    asyncio.run(context.acompact(50, summariser=_summarise))
    fails(context.compact, 10, strategy=PLANTED)
    fails(context.remove, PLANTED)
    context.restore(context.snapshot())
    context.remove(context.items[0].id)
    context.clear()


async def _made() -> dict[str, str]:
    return {PLANTED: PLANTED}


async def _summarise(items: object, tokens: int) -> str:
    return PLANTED


def _agent(me: AgentMemory) -> None:
    me.working.set(PLANTED, PLANTED)
    me.context.add("user", PLANTED)
    me.long_term.add(PLANTED)
    saved = me.snapshot()
    me.clear(long_term=True)
    me.restore(saved)
    fails(me.restore, PLANTED)
    me.stats()
