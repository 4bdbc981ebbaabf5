"""A SQLite file that somebody else made: what is not ours is named and refused, and no row of it stops the rest."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import apsw
import pytest

import wellkept
from tests.contract.faults.script import new, view_of
from tests.contract.faults.soundness import everything, fill, raw
from tests.support.sqlite_files import change_version
from wellkept.errors import NotAStore, SchemaTooNew, StoreCorrupt, WellkeptError
from wellkept.testing.cases import Cases

DEEP = 100_000
_WRITABLE = "PRAGMA writable_schema = ON;"
PLANTED = {
    "trigger spy": "CREATE TRIGGER spy AFTER INSERT ON journal BEGIN DELETE FROM journal; END",
    "view everyone": "CREATE VIEW everyone AS SELECT * FROM journal",
    "index slow": "CREATE INDEX slow ON journal (abs(length(text)))",
    "index part": "CREATE INDEX part ON journal (id) WHERE length(text) > 3",
    "table notes": "CREATE TABLE notes (x)",
    "table fast": "CREATE VIRTUAL TABLE fast USING fts5(x)",
    "table tags": "DROP TABLE tags; CREATE TABLE tags (owner, tag, number)",
    "view heads": "ALTER TABLE heads RENAME TO h; CREATE VIEW heads AS SELECT * FROM h",
    "table leases": "DROP TABLE leases",
    "table journal": "ALTER TABLE journal ADD COLUMN more TEXT DEFAULT 'x'",
    "index journal_seq": f"{_WRITABLE} UPDATE sqlite_schema SET sql = replace(sql, ', seq)', ', abs(seq))')"
    " WHERE name = 'journal_seq'",
    "table keys": f"{_WRITABLE} UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ', CHECK (abs(key))) STRICT')"
    " WHERE name = 'keys'",
}


def _damage(database: Path, statements: str) -> None:
    with closing(raw(database)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.pragma("secure_delete", True)
        connection.execute(statements)


@pytest.mark.req("H10")
def test_what_is_not_ours_is_named_and_refused(tmp_path: Path) -> None:
    with Cases() as cases:
        for name in PLANTED:
            with cases.case(name):
                _names_and_refuses(name, Path(mkdtemp(dir=tmp_path)))


def _names_and_refuses(name: str, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    fill(database, count=2)
    _damage(database, PLANTED[name])
    before = database.read_bytes()
    with pytest.raises(NotAStore) as caught:
        wellkept.open(database, embedder=None)
    assert name in caught.value.message
    assert name in caught.value.details["objects"]
    assert caught.value.hint
    assert database.read_bytes() == before


def test_what_sqlite_makes_itself_is_no_stranger(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database, count=2)
    _damage(database, "ANALYZE")
    with wellkept.open(database, embedder=None) as memories:
        assert {memory.id for memory in everything(view_of(memories))} == set(known.values())


@pytest.mark.req("H10")
def test_marks_of_others(tmp_path: Path) -> None:
    for number, (mark, version, kind) in enumerate(
        [
            (0, 1, NotAStore),
            (7, 1, NotAStore),
            (-1, 1, NotAStore),
            (None, 99, SchemaTooNew),
            (None, 0, NotAStore),
            (None, -5, NotAStore),
        ]
    ):
        database = tmp_path / f"{number}.db"
        fill(database, count=1)
        with closing(raw(database)) as connection:
            connection.pragma("user_version", version)
            if mark is not None:
                connection.pragma("application_id", mark)
        with pytest.raises(kind):
            wellkept.open(database, embedder=None)


# --- in the place of the file and its logs --------------------------------------------------------


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


MADE: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to(path.with_name("elsewhere")),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "socket": _socket,
}


@pytest.mark.req("H10")
@pytest.mark.timeout(60)
def test_no_file_in_its_place(tmp_path: Path) -> None:
    with Cases() as cases:
        for side, kind in product(("", "-wal", "-shm", "-journal"), MADE):
            with cases.case(f"{kind} as m.db{side}"):
                _refuses_in_place(kind, side, Path(mkdtemp(dir=tmp_path)))


def _refuses_in_place(kind: str, side: str, tmp_path: Path) -> None:
    database, elsewhere = tmp_path / "m.db", tmp_path / "elsewhere"
    fill(database, count=2)
    elsewhere.write_text("not ours")
    place = database.with_name(database.name + side)
    place.unlink(missing_ok=True)
    MADE[kind](place)
    with pytest.raises(NotAStore) as caught:
        wellkept.open(database, embedder=None)
    assert place.name in caught.value.message
    assert elsewhere.read_text() == "not ours"


# --- rows -----------------------------------------------------------------------------------------

_DEEP_FACET = '{"state":"active","type":"fact","importance":0.5,"created_at":1,"occurred_at":1,"bytes":1,"fields":%s}'
HOSTILE: dict[str, dict[str, object]] = {
    "deep payload": {"payload": b"[" * DEEP + b"]" * DEEP},
    "deep payload of objects": {"payload": b'{"a":' * DEEP + b"1" + b"}" * DEEP},
    "deep facets": {"facets": "[" * DEEP + "]" * DEEP},
    "deep metadata": {"facets": _DEEP_FACET % ("[" * DEEP + "]" * DEEP)},
    "facets no JSON": {"facets": "{"},
    "facets a number": {"facets": "17"},
    "facets of other types": {"facets": _DEEP_FACET.replace("0.5", '"x"').replace('"fact"', "[]") % "7"},
    "facets of the far future": {"facets": _DEEP_FACET.replace('"created_at":1', '"created_at":1e300') % "{}"},
    "payload no object": {"payload": b"[1]"},
    "payload of other types": {"payload": b'{"references": 7, "pointer": [[]], "language": {}}'},
    "huge time": {"recorded_at": 2**63 - 1},
    "early time": {"recorded_at": -(2**63)},
    "huge sequence": {"seq": 2**63 - 1},
    "huge place": {"place": 2**63 - 1},
    "huge version": {"version": 2**63 - 1},
    "huge number": {"number": 2**63 - 1},
    "operation": {"operation": "dropped"},
    "no text": {"text": None},
}


def _typed(call: Callable[[], object]) -> None:
    try:
        call()
    except WellkeptError:
        return


@pytest.mark.req("H10")
@pytest.mark.timeout(120)
def test_a_hostile_version_is_one_damaged_memory(tmp_path: Path) -> None:
    with Cases() as cases:
        for name in HOSTILE:
            with cases.case(name):
                _is_one_damaged_memory(name, Path(mkdtemp(dir=tmp_path)))


def _is_one_damaged_memory(name: str, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database, count=6)
    victim = known["base/3"]
    change_version(database, victim, HOSTILE[name])
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        others = set(known.values()) - {victim}
        for call in (
            lambda: view.get(victim),
            lambda: view.history(victim),
            view.changes,
            view.stats,
            lambda: view.list(filter=wellkept.Filter(content_contains="a")),
            lambda: view.list(filter=wellkept.Filter(metadata={"a": 1})),
            lambda: view.list(sort_by="relevance"),
            lambda: view.list(as_of=view.position()),
            lambda: view.list(as_of=datetime.now(UTC)),
            lambda: view.update(victim, content="changed"),
            lambda: view.add("one more"),
            memories.health,
            memories.doctor,
        ):
            _typed(call)
        found = {memory.id for memory in everything(view) if memory.content != "one more"}
        assert found - {victim} == others
        found = {hit.memory.id for key in known for hit in view.search(key.replace("/", "x"))}
        assert found - {victim} == others
        if name not in ("no text", "payload no object"):
            assert not memories.doctor().healthy
        memories.doctor(repair=True)
        added = view.add_many([new("later/0")])[0]
        assert view.get(added.id) is not None
        _typed(lambda: view.forget(victim, permanent=True))
        assert memories.doctor(repair=True).healthy
        found = {memory.id for memory in everything(view) if memory.content != "one more"}
        assert found - {victim} == others | {added.id}
    with wellkept.open(database, embedder=None) as memories:
        assert memories.doctor().findings == ()


COUNTERS = ("seq = 9223372036854775807", "last_at = 9223372036854775807", "memories = -5", "bytes = 1 << 62")


@pytest.mark.req("H10")
def test_counters_at_the_limits(tmp_path: Path) -> None:
    with Cases() as cases:
        for change in COUNTERS:
            with cases.case(change):
                _counted_anew(change, Path(mkdtemp(dir=tmp_path)))


def _counted_anew(change: str, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database, count=3)
    _damage(database, f"UPDATE owners SET {change}")
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        for call in (lambda: view.add("x"), view.position, lambda: view.list(as_of=view.position()), view.changes):
            _typed(call)
        assert "counters" in {finding.check for finding in memories.doctor().findings}
        assert memories.doctor(repair=True).healthy
        assert view.add("Likes tea").created_at.year < 2200
        assert {*known.values()} <= {memory.id for memory in everything(view)}


# --- erasing what is damaged ----------------------------------------------------------------------

_OF_VICTIM = "number = (SELECT number FROM keys WHERE key = 'base/3')"
CHANGES = (
    "text = 'made up'",
    "text = CAST(x'ff41fe' AS TEXT)",
    "facets = '{'",
    "facets = NULL",
    "payload = x'00'",
    "stamp = 'x'",
    "version = 7",
    "checksum = x'00'",
)


@pytest.mark.req("L7", "H10")
def test_a_damaged_memory_can_be_erased(tmp_path: Path) -> None:
    with Cases() as cases:
        for change, all_of_them in product(CHANGES, (False, True)):
            with cases.case(f"{change}, all erased: {all_of_them}"):
                _can_be_erased(change, Path(mkdtemp(dir=tmp_path)), all_of_them=all_of_them)


def _can_be_erased(change: str, tmp_path: Path, *, all_of_them: bool) -> None:
    database = tmp_path / "memory.db"
    known = fill(database, count=6)
    _damage(database, f"UPDATE journal SET {change} WHERE {_OF_VICTIM}")
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        with pytest.raises(StoreCorrupt):
            view.get(known["base/3"])
        if all_of_them:
            ids = view.forget_many(filter=wellkept.Filter(), permanent=True).ids
            assert set(ids) == set(known.values())
            assert view.count() == 0
        else:
            assert view.forget(known["base/3"], permanent=True)
            assert {memory.key for memory in everything(view)} == set(known) - {"base/3"}
        assert view.get(known["base/3"]) is None
        assert memories.doctor().findings == ()
    assert b"base/3" not in database.read_bytes()
    assert b"made up" not in database.read_bytes()


@pytest.mark.req("H10")
def test_a_page_is_full_although_some_are_damaged(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    known = fill(database, count=30)
    damaged = {known[f"base/{number}"] for number in (3, 4, 5, 6, 17, 29)}
    for id in damaged:
        _damage(database, f"UPDATE journal SET text = 'x' WHERE id = '{id}'")
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        seen: list[str] = []
        page = view.list(limit=4)
        while True:
            seen += [memory.id for memory in page.memories]
            if page.next_cursor is None:
                break
            assert len(page.memories) == 4
            page = view.list(limit=4, cursor=page.next_cursor)
        assert len(seen) == len(set(seen))
        assert set(seen) == set(known.values()) - damaged
        assert {view.list(limit=limit).total for limit in (4, 100)} == {view.count()} == {30}
        health = memories.health()
        assert (health.status, "6 damaged" in health.components["memories"].message) == ("degraded", True)
        assert memories.doctor(repair=True).healthy
        assert memories.health().status == "healthy"
