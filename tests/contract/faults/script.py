"""What the child processes of the fault tests do: `python -m tests.contract.faults.script <what> <database> ...`.

A child tells on its standard output, one line of JSON each, what it did, after the call that did it returned. A line
that a kill tears is as good as none.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import wellkept
from tests.support.erased_person import open_database
from wellkept import Memories, View
from wellkept.memories import Session
from wellkept.settings import RetryPolicy
from wellkept.stores.sqlite import SqliteStore

ONCE = RetryPolicy(attempts=1)
"""What fails is told at once: these tests are about the failures themselves."""


BATCH = 8
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "kelp", "maple")


def word_of(key: str) -> str:
    """The one word that only the memory of this key has."""
    return key.replace("/", "x")


def content_of(key: str) -> str:
    """The content that belongs to a key: whoever finds the key can tell whether the content is right."""
    chosen = random.Random(key)
    return f"{word_of(key)} {' '.join(chosen.choices(_WORDS, k=chosen.randint(3, 200)))}"


def new(key: str) -> wellkept.NewMemory:
    """The memory that belongs to a key."""
    chosen = random.Random(key)
    vector = [chosen.uniform(-1, 1) for _ in range(8)]
    return wellkept.NewMemory(content=content_of(key), key=key, tags=[f"tag.{key}"], vector=vector)


def batch(prefix: str) -> list[wellkept.NewMemory]:
    """A batch of which all or nothing must be found."""
    return [new(f"{prefix}/batch/{number}") for number in range(BATCH)]


def view_of(memories: Memories) -> View:
    """The identity that all fault tests write as."""
    return memories.view(user="ada")


def tell(did: str, **fields: object) -> None:
    """Acknowledge something."""
    os.write(1, json.dumps({"did": did, **fields}).encode() + b"\n")


def tell_added(memories: Iterable[wellkept.Memory]) -> None:
    """Acknowledge memories, with their ids."""
    tell("added", ids={memory.key: memory.id for memory in memories})


def tell_failed(error: BaseException, key: str = "") -> None:
    """Report an error: what kind of error, and what it says."""
    tell(
        "failed",
        key=key,
        kind=[kind.__name__ for kind in type(error).__mro__],
        code=getattr(error, "code", ""),
        hint=getattr(error, "hint", ""),
        message=str(error),
        details={name: str(value) for name, value in getattr(error, "details", {}).items()},
    )


# --- what children do -----------------------------------------------------------------------------


def add_forever(database: str, prefix: str) -> None:
    """Write until killed."""
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        tell("ready")
        number = 0
        while True:
            added = view.add_many([new(f"{prefix}/{number}")] if number % 5 else batch(f"{prefix}/{number}"))
            tell_added(added)
            if number % 3 == 0:
                view.update(added[0].id, importance=0.9, add_tags=["seen"])
            number += 1


def add_without_keys(database: str, prefix: str) -> None:
    """Write until killed, one at a time and in batches; without keys, so that nothing but the store tells a retry."""
    with wellkept.open(database, embedder=None) as memories:
        view, number = view_of(memories), 0
        while True:
            tokens = [f"{prefix}x{number}x{place}" for place in range(100 if number % 10 == 9 else 1)]
            try:
                added = view.add_many([wellkept.NewMemory(content=f"{token} amber birch") for token in tokens])
            except wellkept.errors.WellkeptError as error:
                tell_failed(error)
            else:
                tell("added", ids={token: memory.id for token, memory in zip(tokens, added, strict=True)})
            number += 1


def session_of(memories: Memories) -> Session:
    """The session that is written to, emptied and compacted."""
    sessions = view_of(memories).sessions
    try:
        return sessions.load("churn")
    except wellkept.errors.NotFound:
        return sessions.create("churn", config={"limit_bytes": None})


def churn(database: str, prefix: str) -> None:
    """Write until killed, and erase most of it again: at once, or by a compaction behind it."""
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        session = session_of(memories)
        view, number, kept = session.view, 0, list[tuple[str, str]]()
        tell("ready")
        while True:
            added = view.add_many([new(f"{prefix}/{number}")] if number % 5 else batch(f"{prefix}/{number}"))
            tell_added(added)
            kept += [(one.key or "", one.id) for one in added]
            view.update(added[0].id, importance=0.9, add_tags=["seen"])
            key, id = kept.pop(random.randrange(len(kept)))
            if number % 2:
                tell("erasing", key=key)
                view.forget(id, permanent=True)
                tell("erased", key=key)
            else:
                tell("forgetting", key=key)
                view.forget(id)
                session.compact(purge=True, max_share=1)
                tell("erased", key=key)
            number += 1


def edit(database: str, what: str, memory_id: str = "", content: str = "") -> None:
    """Do one thing to a memory, as another process."""
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        if what == "add":
            memory_id = view.add(content).id
        elif what == "update":
            view.update(memory_id, content=content)
        elif what == "restore":
            view.restore(memory_id)
        elif what == "configure":
            memories.configure(durability="relaxed")
        else:
            view.forget(memory_id, permanent=what == "erase")
        tell("edited", id=memory_id)


def add_some(database: str, prefix: str, count: str = "4") -> None:
    """Write a few, one at a time."""
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        for number in range(int(count)):
            tell_added(view_of(memories).add_many([new(f"{prefix}/{number}")]))


def fill_up(database: str, prefix: str, limit_bytes: str) -> None:
    """When told to begin, write until the plan refuses."""
    plan = wellkept.entitlements.Plan(name="Small", features=["long_term_memory"], limit_bytes=int(limit_bytes))
    with wellkept.open(database, embedder=None, plan=plan, retry=ONCE) as memories:
        view, number = view_of(memories), 0
        tell("ready")
        sys.stdin.readline()
        try:
            while True:
                tell_added(view.add_many([new(f"{prefix}/{number}")]))
                number += 1
        except wellkept.errors.QuotaExceeded as error:
            tell("refused", details=dict(error.details))


def add_batch(database: str, prefix: str) -> None:
    """Write several in one transaction."""
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        tell_added(view_of(memories).add_many(batch(prefix)))


def add_stubbornly(database: str, prefix: str) -> None:
    """Write a few; tell of each failure and try it once more at the end, in this same process."""
    failed: list[str] = []
    try:
        with wellkept.open(database, embedder=None, retry=ONCE) as memories:
            view = view_of(memories)
            tell("ready")
            for number in range(6):
                key = f"{prefix}/{number}"
                try:
                    tell_added(view.add_many([new(key)]))
                except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
                    tell_failed(error, key)
                    failed.append(key)
            for key in failed:
                try:
                    tell_added(view.add_many([new(key)]))
                except wellkept.errors.StoreError as error:
                    tell_failed(error, key)
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error)


def erase(database: str, prefix: str) -> None:
    """Forget the oldest memory for good."""
    try:
        with wellkept.open(database, embedder=None, retry=ONCE) as memories:
            view = view_of(memories)
            oldest = view.list(sort_by="oldest", limit=1).memories[0]
            tell("erasing", key=oldest.key)
            view.forget(oldest.id, permanent=True)
            tell("erased", key=oldest.key)
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error)


def erase_and_add(database: str, prefix: str) -> None:
    """Forget a memory for good, then write; after each failure tell whether the write is there nevertheless."""
    try:
        _erase_and_add(database, prefix)
    except wellkept.errors.StoreError as error:  # closing tries to empty the log as well
        tell_failed(error, "close")


def _erase_and_add(database: str, prefix: str) -> None:
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        oldest = view.list(sort_by="oldest", limit=1).memories[0]
        try:
            view.forget(oldest.id, permanent=True)
        except wellkept.errors.StoreError as error:
            tell_failed(error, oldest.key or "")
        tell("erasing", key=oldest.key)
        for number in range(4):
            key = f"{prefix}/{number}"
            before = view.count()
            try:
                tell_added(view.add_many([new(key)]))
            except wellkept.errors.StoreError as error:
                tell_failed(error, key)
                tell("visible", key=key, visible=view.count() > before)


def checkpoint(database: str, prefix: str) -> None:
    """Move the write-ahead log into the file, as closing does."""
    wellkept.open(database, embedder=None, retry=ONCE).close()


def leave_log(database: str, prefix: str) -> None:
    """Write, and end without closing: the write-ahead log stays behind."""
    memories = wellkept.open(database, embedder=None, retry=ONCE)
    for number in range(20):
        tell_added(view_of(memories).add_many([new(f"{prefix}/{number}")]))
    os._exit(0)


def migrate(database: str, target: str) -> None:
    """Bring the file to a schema."""
    from tests.support.sqlite_files import bring_to_schema  # lazy: under strace an import takes long

    bring_to_schema(Path(database), int(target))
    tell("migrated", schema=int(target))


def write_with_threads(database: str, prefix: str, threads: str, seconds: str) -> None:
    """Add, change and forget from several threads for a while."""
    deadline = time.monotonic() + float(seconds)
    with wellkept.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)

        def work(name: str) -> None:
            number = 0
            while time.monotonic() < deadline:
                added = view.add_many([new(f"{name}/{number}")] if number % 7 else batch(f"{name}/{number}"))
                tell_added(added)
                if number % 3 == 0:
                    changed = view.update(added[0].id, importance=0.9)
                    tell("updated", id=changed.id, version=changed.version)
                if number % 4 == 0 and view.forget(added[-1].id):
                    tell("forgotten", id=added[-1].id)
                number += 1

        def guarded(name: str) -> None:
            try:
                work(name)
            except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
                tell_failed(error)

        workers = [threading.Thread(target=guarded, args=(f"{prefix}{number}",)) for number in range(int(threads))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def follow(database: str, ending: str) -> None:
    """Follow the feed and read pages until a file is there; then read the rest of the feed."""
    try:
        with wellkept.open(database, embedder=None, retry=ONCE) as memories:
            view = view_of(memories)
            tell("ready")
            after, last = None, False
            while True:
                versions = view.changes(after=after, limit=50)
                for version in versions:
                    tell("saw", at=[version.stamp, version.memory_id, version.version, version.operation])
                after = versions.next
                if last and not versions:
                    break
                last = Path(ending).exists()
                if not last:
                    _read_pages(view)
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error)


def _read_pages(view: View) -> None:
    """Some pages of the newest: each memory at most once, in order, with the content of its key."""
    seen: list[str] = []
    cursor = None
    for _ in range(4):
        page = view.list(limit=20, cursor=cursor)
        assert all(memory.content == content_of(memory.key or "") for memory in page.memories)
        seen.extend(memory.id for memory in page.memories)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(set(seen)) == len(seen)
    if seen:
        assert view.get(seen[0]) is not None or view.history(seen[0])
    tell("paged", count=len(seen))


def as_nobody(database: str, prefix: str) -> None:
    """Open, read and write without the rights of root."""
    # What is imported on first use must be there before: without those rights, the package cannot be read.
    with wellkept.open("ram:", embedder=None) as other:
        view_of(other).add("Likes tea")
        view_of(other).search("tea")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        memories = wellkept.open(database, embedder=None, retry=ONCE)
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error, "open")
        return
    view = view_of(memories)
    try:
        tell("read", count=view.count())
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error, "read")
    try:
        tell_added(view.add_many([new(prefix)]))
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error, "write")
    memories.close()


def convert(source: str, target: str) -> None:
    """Convert in small batches, and tell of each step of the way."""
    from tests.support import small_batches  # lazy: under strace an import takes long

    small_batches.convert_in_batches_of(16)
    report = wellkept.convert(source, target, progress=lambda done, total: tell("step", done=done, total=total))
    tell("converted", versions=report.versions, copied=report.copied)


def erase_person(database: str, step: str) -> None:
    """Erase bob in small batches, and be killed by the n-th change of the store, before it or after it."""
    from tests.support import small_batches  # lazy: under strace an import takes long

    small_batches.erase_in_batches_of(2)
    memories = open_database(database)
    _killed_by_change(memories, int(step))
    receipt = memories.privacy.erase(user="bob")
    tell("erased", memories=receipt.counts.memories)
    memories.close()


def consolidate(database: str, step: str) -> None:
    """Merge what says the same, and be killed by the n-th change of the store, before it or after it."""
    memories = open_database(database)
    plan = memories.upkeep.plan(job=wellkept.types.UpkeepJob.CONSOLIDATION)
    _killed_by_change(memories, int(step))
    run = memories.upkeep.apply(plan, max_share=1.0)
    tell("merged", merged=run.merged)
    memories.close()


def end_session(database: str, step: str) -> None:
    """Close a session under the policy that is set, and be killed by the n-th change of the store."""
    memories = open_database(database)
    session = memories.view(user="ada").sessions.load("monday")
    _killed_by_change(memories, int(step))
    run = session.close()
    tell("ended", promoted=run.promoted if run else 0, forgotten=run.forgotten if run else 0)
    memories.close()


def _killed_by_change(memories: Memories, left: int) -> None:
    """Let the n-th change of the store kill the process: odd ones before it is made, even ones after."""
    from tests.support.stand_ins import store_of  # lazy: under strace an import takes long

    store = store_of(memories)

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def mortal(target: object, name: str) -> None:
        change = getattr(target, name)

        def changed(*args: object, **kwargs: object) -> object:
            count()
            done = change(*args, **kwargs)
            if name == "lease" and done is not None:
                tell("leased", name=done.name, holder=done.holder, token=done.token)
            count()
            return done

        setattr(target, name, changed)

    for target, name in (
        *((store.journal, name) for name in ("append", "set_settings")),
        *((store.records, name) for name in ("put", "drop", "lease", "release")),
        *((store, name) for name in ("compact", "scrub")),
    ):
        mortal(target, name)


def add_audited(database: str, log: str) -> None:
    """Add memories under audit, and be killed without closing anything."""
    memories = wellkept.open(database, embedder=None, settings={"audit": {"file": log}})
    for number in range(10):
        memories.view(user="ada").add(f"memory {number} of {os.getpid()}")
    os.kill(os.getpid(), signal.SIGKILL)


def later(child: str, *arguments: str) -> None:
    """What another child does, in a release that knows a schema more."""
    from tests.support import later_schema  # lazy: under strace an import takes long

    later_schema.install()
    CHILDREN[child](*arguments)


CHILDREN: dict[str, Callable[..., None]] = {
    child.__name__: child
    for child in (
        add_forever,
        churn,
        add_some,
        add_without_keys,
        edit,
        fill_up,
        add_batch,
        add_stubbornly,
        erase,
        erase_and_add,
        checkpoint,
        leave_log,
        migrate,
        write_with_threads,
        follow,
        as_nobody,
        convert,
        add_audited,
        erase_person,
        consolidate,
        end_session,
        later,
    )
}

if __name__ == "__main__":
    assert SqliteStore.name == "sqlite"
    CHILDREN[sys.argv[1]](*sys.argv[2:])
