"""What the child processes of the fault tests do: `python -m tests.faults.script <what> <database> ...`.

A child tells on its standard output, one line of JSON each, what it did, after the call that did it returned. The line
is one system call, so a kill can come before or behind it, not within.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import recollect
from recollect import logs
from recollect.memories.database import Memories
from recollect.memories.view import View
from recollect.settings import RetryPolicy
from recollect.stores.sqlite import SqliteStore, connections, schema
from recollect.text import words
from recollect.transfer import comparison

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


def new(key: str) -> recollect.NewMemory:
    """The memory that belongs to a key."""
    chosen = random.Random(key)
    vector = [chosen.uniform(-1, 1) for _ in range(8)]
    return recollect.NewMemory(content=content_of(key), key=key, tags=[f"tag.{key}"], vector=vector)


def batch(prefix: str) -> list[recollect.NewMemory]:
    """A batch of which all or nothing must be found."""
    return [new(f"{prefix}/batch/{number}") for number in range(BATCH)]


def view_of(memories: Memories) -> View:
    """The identity that all fault tests write as."""
    return memories.view(user="ada")


def tell(did: str, **fields: object) -> None:
    """Acknowledge something."""
    os.write(1, json.dumps({"did": did, **fields}).encode() + b"\n")


def tell_added(memories: Iterable[recollect.Memory]) -> None:
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
    with recollect.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        tell("ready")
        number = 0
        while True:
            added = view.add_many([new(f"{prefix}/{number}")] if number % 5 else batch(f"{prefix}/{number}"))
            tell_added(added)
            if number % 3 == 0:
                view.update(added[0].id, importance=0.9, add_tags=["seen"])
            number += 1


def add_some(database: str, prefix: str, count: str = "4") -> None:
    """Write a few, one at a time."""
    with recollect.open(database, embedder=None, retry=ONCE) as memories:
        for number in range(int(count)):
            tell_added(view_of(memories).add_many([new(f"{prefix}/{number}")]))


def fill_up(database: str, prefix: str, limit_bytes: str) -> None:
    """When told to begin, write until the plan refuses."""
    plan = recollect.entitlements.Plan(name="Small", features=["long_term_memory"], limit_bytes=int(limit_bytes))
    with recollect.open(database, embedder=None, plan=plan, retry=ONCE) as memories:
        view, number = view_of(memories), 0
        tell("ready")
        sys.stdin.readline()
        try:
            while True:
                tell_added(view.add_many([new(f"{prefix}/{number}")]))
                number += 1
        except recollect.errors.QuotaExceeded as error:
            tell("refused", details=dict(error.details))


def add_batch(database: str, prefix: str) -> None:
    """Write several in one transaction."""
    with recollect.open(database, embedder=None, retry=ONCE) as memories:
        tell_added(view_of(memories).add_many(batch(prefix)))


def add_stubbornly(database: str, prefix: str) -> None:
    """Write a few; tell of each failure and try it once more at the end, in this same process."""
    failed: list[str] = []
    try:
        with recollect.open(database, embedder=None, retry=ONCE) as memories:
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
                except recollect.errors.StoreError as error:
                    tell_failed(error, key)
    except Exception as error:  # noqa: BLE001  # reason: the test wants to see what it is
        tell_failed(error)


def erase(database: str, prefix: str) -> None:
    """Forget the oldest memory for good."""
    try:
        with recollect.open(database, embedder=None, retry=ONCE) as memories:
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
    except recollect.errors.StoreError as error:  # closing tries to empty the log as well
        tell_failed(error, "close")


def _erase_and_add(database: str, prefix: str) -> None:
    with recollect.open(database, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        oldest = view.list(sort_by="oldest", limit=1).memories[0]
        try:
            view.forget(oldest.id, permanent=True)
        except recollect.errors.StoreError as error:
            tell_failed(error, oldest.key or "")
        tell("erasing", key=oldest.key)
        for number in range(4):
            key = f"{prefix}/{number}"
            before = view.count()
            try:
                tell_added(view.add_many([new(key)]))
            except recollect.errors.StoreError as error:
                tell_failed(error, key)
                tell("visible", key=key, visible=view.count() > before)


def checkpoint(database: str, prefix: str) -> None:
    """Move the write-ahead log into the file, as closing does."""
    recollect.open(database, embedder=None, retry=ONCE).close()


def leave_log(database: str, prefix: str) -> None:
    """Write, and end without closing: the write-ahead log stays behind."""
    memories = recollect.open(database, embedder=None, retry=ONCE)
    for number in range(20):
        tell_added(view_of(memories).add_many([new(f"{prefix}/{number}")]))
    os._exit(0)


def migrate(database: str, target: str) -> None:
    """Bring the file to a schema."""
    connection = connections.connect(Path(database), "full")
    schema.migrate(connection, int(target))
    tell("migrated", schema=int(target))
    connection.close()


def write_with_threads(database: str, prefix: str, threads: str, seconds: str) -> None:
    """Add, change and forget from several threads for a while."""
    deadline = time.monotonic() + float(seconds)
    with recollect.open(database, embedder=None, retry=ONCE) as memories:
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


def follow(database: str, prefix: str) -> None:
    """Follow the feed and read pages until standard input is closed; then read the rest of the feed."""
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    try:
        with recollect.open(database, embedder=None, retry=ONCE) as memories:
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
                last = ended.is_set()
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
    words.terms("")
    logs.wanted()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        memories = recollect.open(database, embedder=None, retry=ONCE)
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
    comparison.BATCH = 16
    report = recollect.convert(source, target, progress=lambda done, total: tell("step", done=done, total=total))
    tell("converted", versions=report.versions, copied=report.copied)


CHILDREN: dict[str, Callable[..., None]] = {
    child.__name__: child
    for child in (
        add_forever,
        add_some,
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
    )
}

if __name__ == "__main__":
    assert SqliteStore.name == "sqlite"
    CHILDREN[sys.argv[1]](*sys.argv[2:])
