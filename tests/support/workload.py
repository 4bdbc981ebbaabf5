"""Every operation of the engine, done well and done badly, with something planted wherever a caller can say a thing."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import wellkept
from wellkept import AgentMemory, Memories, NewMemory, View, WellkeptError
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import StoreBusy, StoreCorrupt
from wellkept.events import Event
from wellkept.memories import Sessions
from wellkept.settings import RetryPolicy
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import ConsolidationPolicy, Layer, Owner, RetentionPolicy, SessionEndPolicy
from wellkept.window import Strategy

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
    with contextlib.suppress(WellkeptError, TypeError):
        operation(*args, **kwargs)
        raise AssertionError("should have failed")


def everything(prepare: Callable[[Memories], object]) -> None:
    """Open a database, prepare it, and do all there is to do."""
    store, embedder = FaultyStore(RamStore()), Talkative()
    with wellkept.open(store=store, embedder=embedder, retry=RetryPolicy(attempts=1)) as memories:
        prepare(memories)
        _fail_loudly(memories)
        view = memories.view(user=PLANTED, project="api")
        _view(view)
        _sessions(view.sessions)
        _view_badly(view, store, embedder)
        _database(memories)
        with tempfile.TemporaryDirectory() as folder:
            _provenance(memories.view(user=f"origin-{PLANTED}", project="web"), Path(folder) / "notes.md")
            _upkeep(memories)
            _privacy(memories, Path(folder))
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
    view.lineage(view.put(f"{PLANTED} again", PLANTED).id)
    view.get_many([memory.id, PLANTED])
    view.list(filter=wellkept.Filter(content_contains=PLANTED))
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
    memories.upkeep.set_retention(RetentionPolicy(forgotten_age="1s", automatic=False))
    memories.upkeep.run()
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
    memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8, automatic=False))
    other = memories.view(user=f"other-{PLANTED}")
    other.add_many([f"Uses {PLANTED}", f"Uses the {PLANTED}"])
    memories.upkeep.run(job="consolidation", summariser=lambda sources: f"No {sources[0].content}")
    with other.sessions.create("ended") as ended:
        ended.view.add(f"Is allergic to {PLANTED}", importance=0.9)
    memories.upkeep.hold({"tags": [PLANTED]}, reason=PLANTED)
    fails(memories.upkeep.undo, PLANTED)
    memories.health()
    memories.settings()
    memories.configure(durability="relaxed")
    fails(memories.configure, durability=PLANTED)
    fails(memories.view, user=f"{PLANTED}\n")
    memories.doctor()
    memories.reembed()
    memories.rebuild()
    memories.scrub()
    memories.sizes()
    memories.owners()


def _provenance(view: View, file: Path) -> None:
    memory = view.add(f"Likes {PLANTED}", author=PLANTED)
    view.move(memory.id, layer="project")
    view.add_messages([{"role": "user", "content": f"I like {PLANTED}"}])
    view.undoable()
    view.undo()
    view.plan_quarantine(author=PLANTED)
    view.release(view.quarantine(author=PLANTED).id)
    view.erase_quarantined(view.quarantine(author=PLANTED).id)
    file.write_text(f"About {PLANTED}", encoding="utf-8")
    view.add(f"Read {PLANTED}", pointer=view.point_to(file))
    view.refresh(file)
    fails(view.move, PLANTED, layer=PLANTED)
    fails(view.undo, PLANTED)
    fails(view.release, PLANTED)
    fails(view.erase_quarantined, PLANTED)
    fails(view.plan_quarantine, source=PLANTED)
    fails(view.add_messages, PLANTED)
    fails(view.point_to, file.with_name(PLANTED))
    fails(view.refresh, file.with_name(PLANTED), dry_run=PLANTED)
    session = view.sessions.create("tuesday", metadata={PLANTED: PLANTED})
    session.view.add(f"Said {PLANTED}")
    view.sessions.import_session(session.export("json"), "wednesday")
    fails(view.sessions.import_session, PLANTED)


def _upkeep(memories: Memories) -> None:
    upkeep, whose = memories.upkeep, Owner(Layer.USER, (PLANTED,))
    upkeep.set_retention(RetentionPolicy(forgotten_age="1d", automatic=False), owner=whose)
    for read in (upkeep.retention, upkeep.consolidation, upkeep.session_end):
        read(owner=whose)
    for every in (upkeep.policies, upkeep.consolidation_policies, upkeep.session_end_policies, upkeep.next_due):
        every()
    upkeep.run_due()
    upkeep.undo(upkeep.apply(upkeep.plan(), max_share=1).id)
    upkeep.runs()
    upkeep.release(upkeep.holds()[0].id)
    for clear in (upkeep.clear_retention, upkeep.clear_consolidation, upkeep.clear_session_end):
        clear(owner=whose)
    fails(upkeep.hold, {PLANTED: PLANTED}, reason=PLANTED)
    fails(upkeep.hold, {}, reason=f"{PLANTED}\n")
    fails(upkeep.release, PLANTED)
    fails(upkeep.run, job=PLANTED)
    fails(upkeep.apply, PLANTED)


def _privacy(memories: Memories, folder: Path) -> None:
    privacy, whose, ledger = memories.privacy, f"origin-{PLANTED}", folder / "ledger.jsonl"
    privacy.export(folder / "export.zip", user=whose)
    privacy.plan(user=whose)
    privacy.verify(privacy.erase(user=whose))
    privacy.receipts()
    privacy.ledger()
    privacy.export_ledger(ledger)
    privacy.replay(ledger)
    fails(privacy.plan, user=f"{PLANTED}\n")
    fails(privacy.erase, filter={PLANTED: PLANTED})
    fails(privacy.verify, PLANTED)
    fails(privacy.replay, folder / PLANTED)
    fails(privacy.export, folder / PLANTED / PLANTED, user=PLANTED)
    made = memories.keys.create(PLANTED, owners=[Owner(Layer.USER, (PLANTED,))], holder=PLANTED)
    grant = memories.keys.grant_of(made.token)
    fails(memories.view(user=PLANTED, grant=grant).add, PLANTED)
    fails(memories.view, user=f"other-{PLANTED}", grant=grant)
    memories.keys.list()
    memories.keys.revoke(made.key.id)
    fails(memories.keys.grant_of, made.token)
    fails(memories.keys.grant_of, PLANTED)
    fails(memories.keys.revoke, PLANTED)
    fails(memories.keys.create, PLANTED, owners=PLANTED)


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
