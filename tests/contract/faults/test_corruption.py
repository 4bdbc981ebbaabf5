"""Damage inside the file: doctor finds it, names it and mends it, and what was not damaged stays as it was."""

from __future__ import annotations

import random
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import apsw
import pytest

import wellkept
from tests.contract.faults.script import content_of, new, view_of, word_of
from tests.contract.faults.soundness import copy_database, everything, fill, raw
from wellkept.testing.cases import Cases

CHANGED, VICTIM = "base/2", "base/5"
"""The first has two versions, the other one only one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to the file, which check must find it, and which memories are lost or go back by it."""

    check: str
    statement: str
    lost: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


_OF_VICTIM = "number = (SELECT number FROM keys WHERE key = 'base/5')"
_SECOND = "version = 2"
_NEW_HEAD = (
    "INSERT INTO heads SELECT owner, 999, place, state, type, tier, importance, created_at, occurred_at,"
    f" expires_at, author, source_type, has_pointer, bytes, born_at FROM heads WHERE {_OF_VICTIM}"
)
_NEW_VECTOR = "INSERT INTO vectors (number, embedder, data) VALUES (999, 'given', zeroblob(32))"
PROJECTIONS = {
    "head deleted": Damage("heads", f"DELETE FROM heads WHERE {_OF_VICTIM}"),
    "head changed": Damage("heads", f"UPDATE heads SET state = 'forgotten' WHERE {_OF_VICTIM}"),
    "head points elsewhere": Damage("heads", f"UPDATE heads SET place = 1 WHERE {_OF_VICTIM}"),
    "head too many": Damage("heads", _NEW_HEAD),
    "all heads deleted": Damage("heads", "DELETE FROM heads"),
    "tag deleted": Damage("tags", f"DELETE FROM tags WHERE {_OF_VICTIM}"),
    "tag too many": Damage("tags", "INSERT INTO tags SELECT owner, 'made up', number FROM heads"),
    "key deleted": Damage("keys", "DELETE FROM keys WHERE key = 'base/5'"),
    "key changed": Damage("keys", "UPDATE keys SET key = 'made up' WHERE key = 'base/5'"),
    "keys swapped": Damage("keys", "UPDATE keys SET number = 1 WHERE key = 'base/5'"),
    "bytes of an owner": Damage("counters", "UPDATE owners SET bytes = bytes + 7"),
    "memories of an owner": Damage("counters", "UPDATE owners SET memories = 0"),
    "sequence of an owner": Damage("counters", "UPDATE owners SET seq = 1"),
    "vector without memory": Damage("vectors", _NEW_VECTOR),
}
JOURNAL = {
    "text": Damage("checksums", f"UPDATE journal SET text = 'made up' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "text gone": Damage("checksums", f"UPDATE journal SET text = NULL WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "text no text": Damage(
        "checksums", f"UPDATE journal SET text = CAST(x'ff41fe' AS TEXT) WHERE {_OF_VICTIM}", lost=(VICTIM,)
    ),
    "facets": Damage("checksums", f"UPDATE journal SET facets = '{{' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "facets gone": Damage("checksums", f"UPDATE journal SET facets = NULL WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "facets no memory": Damage(
        "checksums", f"""UPDATE journal SET facets = '{{"type":"nonsense"}}' WHERE {_OF_VICTIM}""", lost=(VICTIM,)
    ),
    "facets no text": Damage(
        "checksums", f"UPDATE journal SET facets = CAST(x'7b22ff' AS TEXT) WHERE {_OF_VICTIM}", lost=(VICTIM,)
    ),
    "operation": Damage("checksums", f"UPDATE journal SET operation = 'addee' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "time": Damage("checksums", f"UPDATE journal SET recorded_at = 9e17 WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "owner": Damage("checksums", f"UPDATE journal SET owner = 999 WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "id": Damage("checksums", f"UPDATE journal SET id = 'made up' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "checksum": Damage("checksums", f"UPDATE journal SET checksum = x'00' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "newest version": Damage("checksums", f"UPDATE journal SET text = 'x' WHERE {_SECOND}", back=(CHANGED,)),
    "payload": Damage("checksums", f"UPDATE journal SET payload = x'00' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "sequence": Damage("checksums", f"UPDATE journal SET seq = 999 WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "stamp": Damage("checksums", f"UPDATE journal SET stamp = 'made up' WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "first time": Damage("checksums", f"UPDATE journal SET born_at = 1 WHERE {_OF_VICTIM}", lost=(VICTIM,)),
    "number": Damage("checksums", f"UPDATE journal SET number = 1 WHERE {_OF_VICTIM}", lost=(VICTIM,)),
}
DAMAGES = PROJECTIONS | JOURNAL


def _filled(database: Path) -> dict[str, wellkept.Memory]:
    """A file with a dozen memories, one of them changed once; by key."""
    known = fill(database)
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        view.update(known[CHANGED], importance=0.9)
        return {memory.key or "": memory for memory in everything(view)}


def _sql(database: Path, statement: str) -> None:
    connection = raw(database)
    connection.execute(statement)
    assert connection.changes() > 0, "the damage was done"
    connection.close()


def _found(database: Path) -> dict[str, wellkept.Memory]:
    with wellkept.open(database, embedder=None) as memories:
        return {memory.key or "": memory for memory in everything(view_of(memories))}


@pytest.mark.req("H5", "H10")
def test_doctor_finds_and_mends(tmp_path: Path) -> None:
    with Cases() as cases:
        for name, damage in DAMAGES.items():
            with cases.case(name):
                _finds_and_mends(damage, Path(mkdtemp(dir=tmp_path)))


def _finds_and_mends(damage: Damage, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    before = _filled(database)
    _sql(database, damage.statement)
    with wellkept.open(database, embedder=None) as memories:
        findings = {finding.check: finding for finding in memories.doctor().findings}
        assert damage.check in findings
        assert findings[damage.check].message
        assert findings[damage.check].repair
        assert not memories.doctor().healthy
        repaired = memories.doctor(repair=True)
        assert damage.check in {finding.check for finding in repaired.findings}
        assert all(finding.repaired for finding in repaired.findings)
        assert repaired.healthy
        assert memories.doctor().findings == ()
        _assert_rest_intact(view_of(memories), before, damage)
    # In a new process as well, and it can be written to.
    with wellkept.open(database, embedder=None) as memories:
        assert memories.doctor().findings == ()
        _assert_rest_intact(view_of(memories), before, damage)
        known = view_of(memories).add_many([new("later/0")])[0]
        assert view_of(memories).get(known.id) is not None


def _assert_rest_intact(view: wellkept.View, before: dict[str, wellkept.Memory], damage: Damage) -> None:
    after = {memory.key or "": memory for memory in everything(view) if memory.key != "later/0"}
    assert set(after) == set(before) - set(damage.lost)
    for key, memory in after.items():
        if key in damage.back:
            assert (memory.version, memory.content) == (before[key].version - 1, content_of(key))
        else:
            assert memory == before[key]
        assert [hit.memory.key for hit in view.search(word_of(key))] == [key]
        assert view.list(filter=wellkept.Filter(tags=[f"tag.{key}"])).total == 1
        assert view.add_many([new(key)])[0].id == memory.id


@pytest.mark.req("H5")
def test_what_was_set_aside_stays_in_the_file(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    _filled(database)
    _sql(database, JOURNAL["text"].statement)
    with wellkept.open(database, embedder=None) as memories:
        memories.doctor(repair=True)
    connection = raw(database)
    assert connection.execute("SELECT text FROM damaged").get == "made up"
    connection.close()


@pytest.mark.req("L1", "L3")
def test_a_repair_does_not_turn_the_feed_back(tmp_path: Path) -> None:
    """A follower has seen the newest version. If it is set aside, its sequence is not given again."""
    database = tmp_path / "memory.db"
    known = fill(database)
    last = f"base/{len(known) - 1}"
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        assert view.get(known[last]) is not None
        seen = view.changes().next
    _sql(database, "UPDATE journal SET text = 'made up' WHERE place = (SELECT max(place) FROM journal)")
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        assert memories.doctor(repair=True).healthy
        added = view.add_many([new("later/0")])[0]
        assert [version.memory_id for version in view.changes(after=seen)] == [added.id]
        found = view.get(added.id)
        assert found is not None
        assert found.access_count == 0, "it has no accesses of the memory that was lost"
        assert memories.doctor().findings == ()


@pytest.mark.parametrize("side", ["", "-wal", "-shm"])
def test_doctor_closes_open_files(side: str, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with wellkept.open(database, embedder=None) as memories:
        view_of(memories).add("thought")
        file = database.with_name(database.name + side)
        file.chmod(0o664)
        assert [finding.check for finding in memories.doctor().findings] == ["mode"]
        assert memories.doctor(repair=True).healthy
        assert memories.doctor().findings == ()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.req("H5", "H10")
@pytest.mark.parametrize("byte", [b"X", b"\xff", b"\x00"], ids=["text", "no text", "zero"])
def test_changed_bytes_in_a_content_are_found(byte: bytes, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    before = _filled(database)
    contents = database.read_bytes()
    place = contents.index(content_of(VICTIM).encode()) + 10
    database.write_bytes(contents[:place] + byte + contents[place + 1 :])
    with wellkept.open(database, embedder=None) as memories:
        view = view_of(memories)
        assert "checksums" in {finding.check for finding in memories.doctor().findings}
        for call in _calls(view, before[VICTIM].id):
            _typed(call)
        assert memories.doctor(repair=True).healthy
        assert memories.doctor().findings == ()
    after = _found(database)
    after.pop("", None)  # what the calls added
    assert after == {key: memory for key, memory in before.items() if key != VICTIM}


def _calls(view: wellkept.View, id: str) -> list[Callable[[], object]]:
    """Everything that one can ask."""
    return [
        lambda: view.get(id),
        lambda: view.get(id, include_vector=True),
        lambda: view.list(limit=100),
        lambda: view.list(limit=100, as_of=view.position()),
        lambda: view.list(filter=wellkept.Filter(tags=["tag"], content_contains="birch")),
        view.changes,
        lambda: view.history(id),
        lambda: view.search("amber birch"),
        view.stats,
        view.count,
        lambda: view.add_many([new(VICTIM)]),
        lambda: view.update(id, content="changed"),
        lambda: view.forget(id),
        lambda: view.restore(id),
        lambda: view.forget(id, permanent=True),
        lambda: view.add("one more"),
    ]


def _typed(call: Callable[[], object]) -> bool:
    """Call it. Only our own errors may come out; whether one came."""
    try:
        call()
    except wellkept.WellkeptError as error:
        return bool(error.code)
    return False


def _use_everything(database: Path) -> int:
    """Open a damaged file, and do everything with it; how many calls were refused."""
    try:
        memories = wellkept.open(database, embedder=None)
    except wellkept.WellkeptError:
        return 1
    try:
        view = view_of(memories)
        refused = _typed(memories.doctor) + _typed(lambda: memories.doctor(repair=True))
        page = _typed(view.list)
        id = "unknown" if page else next((memory.id for memory in view.list()), "unknown")
        return refused + sum(map(_typed, _calls(view, id))) + _typed(memories.rebuild)
    finally:
        _typed(memories.close)


def _rounds(long_run: bool, count: int) -> range:
    return range(count * 10 if long_run else count)


@pytest.mark.req("H10")
@pytest.mark.parametrize("kind", ["zeros", "noise", "another page"])
def test_a_garbage_page_is_a_typed_error(kind: str, tmp_path: Path, long_run: bool) -> None:
    base = tmp_path / "base.db"
    _filled(base)
    good = base.read_bytes()
    pages = len(good) // 8192
    refused = 0
    for number in range(pages) if long_run else random.sample(range(pages), 12):
        filler = {
            "zeros": bytes(8192),
            "noise": random.randbytes(8192),
            "another page": good[(number + 3) % pages * 8192 :][:8192],
        }[kind]
        database = tmp_path / f"page{number}.db"
        database.write_bytes(good[: number * 8192] + filler + good[(number + 1) * 8192 :])
        refused += _use_everything(database)
    assert refused > 0


@pytest.mark.req("H10")
def test_a_truncated_file_is_a_typed_error(tmp_path: Path, long_run: bool) -> None:
    base = tmp_path / "base.db"
    _filled(base)
    length = base.stat().st_size
    cuts = [16, 99, 100, 511, 4096, 8191, 8192, length // 2, length - 8192, length - 1]
    for cut in cuts + [random.randrange(17, length) for _ in _rounds(long_run, 10)]:
        database = copy_database(base, tmp_path / f"cut{cut}.db")
        with database.open("r+b") as file:
            file.truncate(cut)
        # The last page may end in bytes that nothing uses.
        assert _use_everything(database) > 0 or cut > length - 8192, cut


@pytest.mark.req("H10")
def test_flipped_bytes_anywhere_are_typed_errors(tmp_path: Path, long_run: bool) -> None:
    base = tmp_path / "base.db"
    _filled(base)
    good = base.read_bytes()
    used = [place for place, byte in enumerate(good) if byte]
    for number in _rounds(long_run, 40):
        seed = random.randrange(2**32)
        chosen = random.Random(seed)
        bad = bytearray(good)
        for _ in range(chosen.randint(1, 8)):
            bad[chosen.choice(used)] ^= 1 << chosen.randrange(8)
        database = tmp_path / f"flip{number}.db"
        database.write_bytes(bad)
        try:
            _use_everything(database)
        except Exception as error:
            raise AssertionError(f"bytes flipped with seed {seed}") from error


@pytest.mark.req("L1", "H10")
def test_a_damaged_log_costs_at_most_its_end(tmp_path: Path, long_run: bool) -> None:
    """A torn log is what a power loss leaves: everything up to the damage is there, and nothing else."""
    base = tmp_path / "base.db"
    live = tmp_path / "live.db"
    known = fill(live, count=4)
    with wellkept.open(live, embedder=None) as memories:
        for number in range(8):
            known[f"log/{number}"] = view_of(memories).add_many([new(f"log/{number}")])[0].id
        copy_database(live, base)
    log = base.with_name(base.name + "-wal").read_bytes()
    assert len(log) > 8192
    for number in _rounds(long_run, 12):
        place = random.randrange(len(log))
        database = copy_database(base, tmp_path / f"torn{number}.db")
        torn = log[:place] if number % 2 else log[:place] + random.randbytes(min(512, len(log) - place))
        database.with_name(database.name + "-wal").write_bytes(torn)
        found = _found(database)
        kept = [key for key in known if key in found]
        assert kept == list(known)[: len(kept)], f"torn at {place}"
        assert len(kept) >= 4
        assert all(memory.content == content_of(key) for key, memory in found.items())
        with wellkept.open(database, embedder=None) as memories:
            assert memories.doctor().findings == ()


def test_raw_errors_would_be_noticed(tmp_path: Path) -> None:
    def raise_raw() -> None:
        raise apsw.CorruptError("raw")

    with pytest.raises(apsw.CorruptError):
        _typed(raise_raw)
