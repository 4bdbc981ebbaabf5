"""Every file of a database flipped, emptied, cut, exchanged, deleted or older: no wrong value is served, what is intact
stays, what is lost is told, and files of others are left alone."""

from __future__ import annotations

import random
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import wellkept
from tests.contract.faults.script import content_of, new, view_of, word_of
from tests.contract.faults.soundness import everything, fill
from tests.support.terminal import started
from wellkept.errors import WellkeptError
from wellkept.settings import RetryPolicy
from wellkept.testing.cases import Cases

ONCE = RetryPolicy(attempts=1)


def _told(memory: wellkept.Memory) -> tuple[Any, ...]:
    """What a memory says, without how often it was read."""
    return (memory.id, memory.owner, memory.version, memory.content, memory.key, memory.tags, memory.created_at)


def _answers(memories: wellkept.Memories, ids: list[str], position: str, at: datetime) -> Iterator[tuple[str, Any]]:
    """All that can be asked, call by call; a refused call answers with its error."""
    view = view_of(memories)
    calls: dict[str, Callable[[], Any]] = {
        "list": lambda: [_told(one) for one in everything(view)],
        "important": lambda: [_told(one) for one in view.list(sort_by="important", limit=100)],
        "relevant": lambda: {_told(one) for one in view.list(sort_by="relevance", limit=100)},
        "past": lambda: [_told(one) for one in view.list(limit=100, as_of=position)],
        "then": lambda: [_told(one) for one in view.list(limit=100, as_of=at)],
        "feed": lambda: [_told(one.memory) for one in view.changes(limit=1_000) if one.memory],
        "count": view.count,
        "tagged": lambda: [_told(one) for one in view.list(filter=wellkept.Filter(tags=["tag"]), limit=100)],
        "worded": lambda: [_told(one) for one in view.list(filter=wellkept.Filter(content_contains="base"))],
        "search": lambda: [_told(hit.memory) for hit in view.search(word_of("base/3"))],
        "others": lambda: [_told(one) for one in memories.view(user="bob").list(limit=100)],
    }
    for id in ids:
        calls[f"get {id}"] = partial(_got, view, id)
        calls[f"get past {id}"] = partial(_got, view, id, as_of=position)
        calls[f"history {id}"] = partial(_history, view, id)
    for name, call in calls.items():
        try:
            yield name, call()
        except WellkeptError as error:
            yield name, error


def _got(view: wellkept.View, id: str, **options: Any) -> Any:
    found = view.get(id, **options)
    return None if found is None else _told(found)


def _history(view: wellkept.View, id: str) -> list[Any]:
    return [_told(one.memory) for one in view.history(id) if one.memory]


def _values(answer: Any) -> Iterator[tuple[Any, ...]]:
    """The memories in an answer."""
    if isinstance(answer, list | set):
        for one in answer:
            yield from _values(one)
    elif isinstance(answer, tuple):
        yield answer


@pytest.mark.req("H10", "L1")
def test_no_flipped_byte_serves_a_wrong_value(tmp_path: Path, long_run: bool) -> None:
    base = tmp_path / "base.db"
    known = fill(base, count=6)
    with wellkept.open(base, embedder=None, retry=ONCE) as memories:
        view = view_of(memories)
        for key in ("base/2", "base/3"):
            view.update(known[key], importance=0.9)
        memories.view(user="bob").add("Likes coffee")
        position = view.position()
        at = datetime.now(UTC)
        view.update(known["base/4"], importance=0.2)
        right = dict(_answers(memories, [*known.values()], position, at))
    written = {value for answer in right.values() for value in _values(answer)}
    good = base.read_bytes()
    used = [place for place, byte in enumerate(good) if byte]
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    flips = 4_000 if long_run else 250
    step = max(1, len(used) // flips)
    silent: list[tuple[int, str]] = []
    for place in range(chosen.randrange(step), len(used), step):
        bad = bytearray(good)
        bad[used[place]] ^= 1 << chosen.randrange(8)
        database = tmp_path / "flipped.db"
        database.write_bytes(bad)
        try:
            memories = wellkept.open(database, embedder=None, retry=ONCE)
        except WellkeptError:
            continue
        with memories:
            answers = dict(_answers(memories, [*known.values()], position, at))
            for name, answer in answers.items():
                assert written.issuperset(_values(answer)), (seed, used[place], name)
            differing = [name for name in right if answers[name] != right[name]]
            if any(not isinstance(answers[name], WellkeptError) for name in differing):
                try:
                    healthy = memories.doctor().healthy
                except WellkeptError:
                    healthy = False
                if healthy:
                    silent.append((used[place], differing[0]))
        for side in ("-wal", "-shm"):
            database.with_name(database.name + side).unlink(missing_ok=True)
    assert silent == [], seed


# --- whole files ----------------------------------------------------------------------------------


def _flipped(file: Path, older: bytes) -> bytes:
    content = bytearray(file.read_bytes())
    for place in range(5_000, len(content), 9_001):
        content[place] ^= 0x10
    return bytes(content)


FAULTS: dict[str, Callable[[Path, bytes], bytes | None]] = {
    "flipped": _flipped,
    "emptied": lambda file, older: b"",
    "cut": lambda file, older: file.read_bytes()[: file.stat().st_size // 2],
    "cut by a byte": lambda file, older: file.read_bytes()[:-1],
    "twice": lambda file, older: file.read_bytes() * 2,
    "another one": lambda file, older: b"Dear diary,\n" * 1_000,
    "deleted": lambda file, older: None,
    "older": lambda file, older: older,
}


def _exchange(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        file.write_bytes(content)


@pytest.mark.req("H10", "L1")
def test_a_fault_of_a_whole_file(tmp_path: Path) -> None:
    with Cases() as cases:
        for side, fault in product(("", "-wal", "-shm", ".schema-1.bak"), FAULTS):
            with cases.case(f"memory.db{side} {fault}"):
                _whole_file(fault, side, Path(mkdtemp(dir=tmp_path)))


def _whole_file(fault: str, side: str, tmp_path: Path) -> None:
    live, base = tmp_path / "live" / "memory.db", tmp_path / "base" / "memory.db"
    for folder in (live.parent, base.parent):
        folder.mkdir(mode=0o700)
    known = fill(live, count=4)
    older = {one.name: one.read_bytes() for one in live.parent.iterdir()}
    with wellkept.open(live, embedder=None, retry=ONCE) as memories:
        for number in range(6):
            known[f"log/{number}"] = view_of(memories).add_many([new(f"log/{number}")])[0].id
        for file in live.parent.iterdir():
            shutil.copy(file, base.parent)
    foreign = {base.parent / "notes.txt": 0o644, base.parent / "memory.db.hook": 0o755}
    for file, mode in foreign.items():
        file.write_text("not ours")
        file.chmod(mode)
    damaged = base.with_name(base.name + side)
    if not damaged.exists():
        damaged.write_bytes(b"a copy of an older schema")
        damaged.chmod(0o600)
    _exchange(damaged, FAULTS[fault](damaged, older.get(damaged.name, b"")))
    kept = _use(base, known)
    for file, mode in foreign.items():
        assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("not ours", mode)
    if side in ("-shm", ".schema-1.bak"):
        assert kept == set(known), "what is derived or a copy costs nothing"
    if side == "-wal" and kept is not None:  # as after a power loss: a beginning of what was written
        assert kept == set(list(known)[: len(kept)])
        assert len(kept) >= 4


def _use(database: Path, known: dict[str, str]) -> set[str] | None:
    """Open, health, doctor, repair, write, reopen; the keys that are left, or none if it cannot be opened."""
    before = {file: file.read_bytes() for file in database.parent.iterdir()}
    try:
        memories = wellkept.open(database, embedder=None, retry=ONCE)
    except WellkeptError as error:
        hint = error.hint
    else:
        return _repaired(memories, database, known, found_whole=len(before.get(database, b"")) > 8192)
    assert hint
    assert "run doctor" not in hint
    assert database.read_bytes() == before[database], "what cannot be opened is left as it is"
    return None


def _repaired(memories: wellkept.Memories, database: Path, known: dict[str, str], *, found_whole: bool) -> set[str]:
    with memories:
        view = view_of(memories)
        found = _read(view)
        memories.health()
        diagnosed = _doctor(memories, repair=False)
        lost = [key for key, id in known.items() if found.get(key) != id]
        if lost and found_whole and not diagnosed:
            assert lost == list(known)[-len(lost) :], "only the end of a log can be lost without a trace"
        _doctor(memories, repair=True)
        repaired = _read(view)
        assert found.items() <= repaired.items(), "a repair loses nothing"
        try:
            added = view.add_many([new("later/0")])[0]
        except WellkeptError:
            return set(repaired)
    with wellkept.open(database, embedder=None, retry=ONCE) as later:
        again = _read(view_of(later))
        assert again == repaired | {"later/0": added.id}
    return set(repaired)


def _read(view: wellkept.View) -> dict[str, str]:
    try:
        found = everything(view)
    except WellkeptError:
        return {}
    assert all(memory.content == content_of(memory.key or "") for memory in found)
    return {memory.key or "": memory.id for memory in found}


def _doctor(memories: wellkept.Memories, *, repair: bool) -> bool:
    """Whether the doctor found something."""
    try:
        return bool(memories.doctor(repair=repair).findings)
    except WellkeptError as error:
        hint = error.hint
    assert "run doctor" not in hint
    return True


@pytest.mark.req("H10")
def test_the_hint_for_a_file_that_is_cut_names_no_command_that_fails(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database)
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size // 2)
    for command in ("list", "doctor", "health"):
        done = started(tmp_path, command)
        assert done.code != 0
        assert "doctor" not in done.err
        assert "backup" in done.err
