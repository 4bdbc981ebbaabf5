"""Erasure that can be proven: nothing of a person is left, a ledger keeps it so, and a receipt says so."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

import wellkept
from tests.support.erased_person import MARKS, fill, found, open_database
from tests.support.stand_ins import HandClock, store_of
from tools.postgres_server import PostgresServer
from wellkept.errors import Held, InvalidInput, KeyUnavailable, NotFound
from wellkept.keyrings.ram import RamKeyring
from wellkept.types import ErasureScope, Filter, Layer, Owner, Source, SourceType

BOB = Owner(Layer.USER, ("bob",))


@pytest.fixture(params=["memory.db", "jsonl:notes"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(request.param)


def place(url: str, folder: Path) -> Path:
    return folder / url.removeprefix("jsonl:")


def saved(source: Path, target: Path) -> None:
    """Copy a closed database."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def restored(source: Path, target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    saved(source, target)


@pytest.mark.req("N7", "L7")
def test_no_byte_of_an_erased_person_is_left(url: str, tmp_path: Path) -> None:
    with open_database(url) as memories:
        hers = fill(memories)
        present = {name for _, name in found(tmp_path)}
        assert present == set(MARKS), "the marks that are looked for must have been there"
        plan = memories.privacy.plan(user="bob")
        receipt = memories.privacy.erase(user="bob")
        assert replace(receipt.counts, reasons=0) == plan.counts
        assert (receipt.counts.memories, receipt.counts.reasons) == (5, 1)
        assert found(tmp_path) == []
        assert memories.privacy.verify(receipt).valid
        assert memories.view(user="ada").get(hers.id) == hers
        assert [one.memories for one in memories.owners(user="bob")] == [0, 0, 0]
        assert memories.upkeep.policies() == {}
        assert memories.doctor().healthy
    assert found(tmp_path) == []
    with open_database(url) as memories:
        assert list(memories.view(user="bob").search("house")) == []
        assert memories.doctor().healthy
    assert found(tmp_path) == []


@pytest.mark.req("N7")
def test_nothing_of_an_erased_person_stays_in_the_tables_of_a_server(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    def kept() -> bytes:
        name = urlsplit(postgres_url).path[1:]
        [(folder,)] = postgres_server.execute("SELECT oid FROM pg_database WHERE datname = current_database()", name)
        postgres_server.execute("CHECKPOINT")
        files = sorted((Path(postgres_server.data) / "base" / str(folder)).iterdir())
        return b"".join(one.read_bytes() for one in files if one.is_file())

    with open_database(postgres_url) as memories:
        fill(memories)
        before = kept()
        assert [name for name, mark in MARKS.items() if mark.encode() not in before] == []
        receipt = memories.privacy.erase(user="bob")
        after = kept()
        assert [name for name, mark in MARKS.items() if mark.encode() in after] == []
        assert any("write-ahead log" in line for line in receipt.remains)
        assert memories.privacy.verify(receipt).valid


@pytest.mark.req("N7")
def test_an_older_backup_does_not_bring_an_erased_person_back(url: str, tmp_path: Path) -> None:
    here, backup = place(url, tmp_path), tmp_path / "backup"
    with open_database(url) as memories:
        hers = fill(memories)
    backup.mkdir()
    saved(here, backup / here.name)
    with open_database(url) as memories:
        memories.privacy.erase(user="bob")
        memories.view(user="bob").add("bob came back")
    restored(backup / here.name, here)
    assert found(here.parent) != []
    shutil.rmtree(backup)
    with open_database(url) as memories:  # the ledger beside it is replayed
        assert found(tmp_path) == []
        assert len(memories.privacy.ledger()) == 1
        assert memories.view(user="ada").get_many([hers.id])[hers.id].content == hers.content
        new = memories.view(user="bob").add("bob is here again")
        memories.privacy.resume()
        assert memories.view(user="bob").get(new.id) == new
    assert found(tmp_path) == []


@pytest.mark.req("N7")
def test_a_ledger_is_replayed_on_a_copy_elsewhere(url: str, tmp_path: Path) -> None:
    here, copy = place(url, tmp_path), tmp_path / "copy"
    with open_database(url) as memories:
        fill(memories)
    copy.mkdir()
    saved(here, copy / here.name)
    with open_database(url) as memories:
        memories.privacy.erase(user="bob")
        assert memories.privacy.export_ledger(tmp_path / "ledger.jsonl") == 1
        with pytest.raises(InvalidInput, match="there already"):
            memories.privacy.export_ledger(tmp_path / "ledger.jsonl")
    assert (tmp_path / "ledger.jsonl").stat().st_mode & 0o777 == 0o600
    with open_database(url.replace(here.name, str(copy / here.name))) as memories:
        told = memories.privacy.replay(tmp_path / "ledger.jsonl")
        assert (told.entries, told.counts.memories, told.counts.reasons) == (1, 5, 1)
        assert memories.privacy.replay(tmp_path / "ledger.jsonl").counts.memories == 0
    assert found(tmp_path) == []


@pytest.mark.req("N7")
def test_a_conversion_does_not_bring_an_erased_person_back(url: str, tmp_path: Path) -> None:
    source, copy, new = url, url.replace("memory", "copy").replace("notes", "copy"), tmp_path / "new.db"
    with open_database(source) as memories:
        hers = fill(memories)
    wellkept.convert(source, copy)
    with open_database(copy) as memories:
        memories.privacy.erase(user="bob")
        memories.privacy.export_ledger(tmp_path / "ledger.jsonl")
    with open_database(source) as memories:
        memories.view(user="bob").update(memories.view(user="bob").list().memories[0].id, importance=0.9)
        more = memories.view(user="ada").add("Ada likes coffee")
    wellkept.convert(source, copy)  # what came since, and nothing of bob
    with open_database(new) as memories:
        memories.privacy.replay(tmp_path / "ledger.jsonl")
    wellkept.convert(source, new)
    shutil.rmtree(tmp_path / "notes", ignore_errors=True)
    (tmp_path / "memory.db").unlink(missing_ok=True)
    assert found(tmp_path) == []
    for place in (copy, new):
        with open_database(place) as memories:
            assert memories.view(user="ada").get_many([hers.id, more.id]).keys() == {hers.id, more.id}
            assert len(memories.privacy.ledger()) == 1
            assert not any(one.memories for one in memories.owners(user="bob"))


@pytest.mark.req("N7")
def test_an_erasure_in_the_source_reaches_its_copy(url: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with open_database(url) as memories:
        fill(memories)
    wellkept.convert(url, copy)
    with open_database(url) as memories:
        receipt = memories.privacy.erase(user="bob")
    wellkept.convert(url, copy)
    wellkept.convert(url, copy)
    assert found(tmp_path) == []
    with open_database(copy) as memories:
        assert memories.privacy.verify(receipt).valid
        assert memories.privacy.receipts() == (receipt,)


def test_a_ledger_that_others_can_write_is_not_replayed_by_itself(tmp_path: Path) -> None:
    with wellkept.open("ram:", embedder=None) as other:
        other.privacy.erase(user="bob")
        other.privacy.export_ledger(tmp_path / "memory.db.erasures.jsonl")
    (tmp_path / "memory.db.erasures.jsonl").chmod(0o666)
    clock = HandClock()
    with wellkept.open(tmp_path / "memory.db", embedder=None, clock=clock) as memories:
        bob = memories.view(user="bob").add("x")
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        assert memories.view(user="bob").get(bob.id) == bob
    (tmp_path / "memory.db.erasures.jsonl").chmod(0o600)
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        assert memories.view(user="bob").get(bob.id) is None


def test_a_ledger_that_was_altered_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    with wellkept.open("ram:", embedder=None) as memories:
        memories.privacy.erase(user="bob")
        memories.privacy.erase(user="eve")
        memories.privacy.export_ledger(file)
        whole = file.read_bytes()
        assert b"bob" not in whole
        for altered in (whole.replace(b'"person"', b'"owner"', 1), whole.split(b"\n", 1)[1], b"nonsense\n"):
            file.write_bytes(altered)
            with pytest.raises(InvalidInput):
                memories.privacy.replay(file)


@pytest.mark.req("N7")
def test_an_encrypted_person_is_unreadable_in_every_old_copy(tmp_path: Path) -> None:
    here, backup, keyring = tmp_path / "memory.db", tmp_path / "backup.db", RamKeyring()

    def opened(path: Path) -> wellkept.Memories:
        return wellkept.open(path, embedder=None, keyring=keyring, encrypt="all")

    with opened(here) as memories:
        bob = memories.view(user="bob").add("a house", derived_from=[])
        ada = memories.view(user="ada").add("hers", derived_from=[bob.id], dangling=True)
    shutil.copy(here, backup)
    with opened(here) as memories:
        receipt = memories.privacy.erase(user="bob")
        assert (receipt.counts.memories, receipt.counts.derived, receipt.counts.keys) == (2, 1, 1)
        assert not any("backup" in line for line in receipt.remains)
        assert memories.privacy.verify(receipt).signed
    with opened(backup) as memories:
        with pytest.raises(KeyUnavailable):
            memories.view(user="bob").get(bob.id)
        assert memories.view(user="ada").get(ada.id) == ada
        memories.privacy.replay(f"{here}.erasures.jsonl")
        assert memories.view(user="ada").get(ada.id, include_forgotten=True) is None


@pytest.mark.req("N7")
@pytest.mark.parametrize("encrypt", ["all", "sensitive"])
def test_a_restored_hold_keeps_what_can_be_read_and_nothing_else_from_being_erased_again(
    tmp_path: Path, encrypt: Literal["all", "sensitive"], caplog: pytest.LogCaptureFixture
) -> None:
    here, backup, keyring = tmp_path / "memory.db", tmp_path / "backup.db", RamKeyring()

    def opened() -> wellkept.Memories:
        return wellkept.open(here, embedder=None, keyring=keyring, encrypt=encrypt)

    with opened() as memories:
        held = memories.view(user="bob").add("held", tags=["legal"])
        memories.view(user="bob").add("free")
        hold = memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
        hers = memories.view(user="ada").add("hers", tags=["legal"])
    shutil.copy(here, backup)
    with opened() as memories:
        memories.upkeep.release(hold.id)
        memories.privacy.erase(user="bob")
    restored(backup, here)
    with caplog.at_level("WARNING"), opened() as memories:  # the hold is back, and so is the ledger beside it
        left = [one.id for one in store_of(memories).journal.scan({BOB}, payload=False)]
        assert left == ([held.id] if encrypt == "sensitive" else []), "no key opens what is encrypted: nothing is held"
        assert memories.view(user="ada").get(hers.id) is not None
        if left:
            with pytest.raises(Held) as told:
                memories.privacy.replay(f"{here}.erasures.jsonl")
            assert (told.value.details["hold"], told.value.details["memory_id"]) == (hold.id, held.id)
            assert f"HELD (hold {hold.id})" in caplog.text
        memories.upkeep.release(hold.id)
    with opened() as memories:
        assert list(store_of(memories).journal.scan({BOB}, payload=False)) == [], "the next opening finishes it"
        assert store_of(memories).journal.settings()["erasing"] == ""
        assert memories.doctor().healthy


@pytest.mark.req("N7")
def test_without_the_keyring_an_erasure_that_may_be_held_is_left_to_whoever_has_it(tmp_path: Path) -> None:
    here, backup, keyring = tmp_path / "memory.db", tmp_path / "backup.db", RamKeyring()
    with wellkept.open(here, embedder=None, keyring=keyring, encrypt="all") as memories:
        memories.view(user="bob").add("a house")
        memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
    shutil.copy(here, backup)
    with wellkept.open(here, embedder=None, keyring=keyring, encrypt="all") as memories:
        memories.privacy.erase(user="bob")
    restored(backup, here)
    with wellkept.open(here, embedder=None) as memories, pytest.raises(KeyUnavailable):
        memories.privacy.replay(f"{here}.erasures.jsonl")
    with wellkept.open(here, embedder=None, keyring=keyring, encrypt="all") as memories:
        assert list(store_of(memories).journal.scan({BOB}, payload=False)) == []


# -- what is taken --------------------------------------------------------------------------------------------------


@pytest.fixture
def memories(clock: HandClock) -> Iterator[wellkept.Memories]:
    with wellkept.open("ram:", embedder=None, clock=clock) as opened:
        yield opened


@pytest.mark.req("J8", "N7")
def test_single_memories_topics_and_times_are_erased(memories: wellkept.Memories, clock: HandClock) -> None:
    core = memories.view(team="core")
    one, two = core.add("one", tags=["plans.secret"]), core.add("two")
    clock.time += timedelta(days=1)
    late = memories.view(user="ada").add("three")
    receipt = memories.privacy.erase(ids=[one.id])
    assert (receipt.scope, receipt.counts.memories) == (ErasureScope.MEMORIES, 1)
    assert core.get_many([one.id, two.id]).keys() == {two.id}
    again = core.add("again", tags=["plans.secret"])
    assert memories.privacy.erase(filter=Filter(tags=["plans"])).counts.memories == 1
    assert memories.privacy.erase(team="core", filter={"created_after": late.created_at}).counts.memories == 0
    before = {"created_before": late.created_at - timedelta(hours=1)}
    assert memories.privacy.erase(filter=before).counts.memories == 1
    assert core.count() == 0
    assert memories.view(user="ada").count() == 1
    with pytest.raises(NotFound):
        core.update(again.id, content="x")


@pytest.mark.req("N7")
def test_what_came_from_a_source_and_what_was_made_of_it_is_erased(memories: wellkept.Memories) -> None:
    core = memories.view(team="core")
    told = core.add("told", source=Source(type=SourceType.CONVERSATION, reference="msg-7"))
    core.add("other", source=Source(type=SourceType.CONVERSATION, reference="msg-77"))
    summary = memories.view(user="ada", team="core").add("a summary", layer="user", derived_from=[told.id])
    again = memories.view(user="ada").add("of the summary", derived_from=[summary.id])
    plan = memories.privacy.plan(source="msg-7")
    assert set(plan.derived) == {(one.owner, one.id) for one in (summary, again)}
    assert memories.privacy.erase(source="msg-7").counts.memories == 3
    assert (core.count(), memories.view(user="ada").count()) == (1, 0)


@pytest.mark.req("N7")
def test_what_superseded_an_erased_memory_goes_with_it(memories: wellkept.Memories) -> None:
    view = memories.view(user="bob", team="core")
    rome = view.add("Bob lives in Rome", layer="user")
    berlin = view.add("Bob lives in Berlin", layer="team", supersedes=[rome.id])
    oslo = view.add("Bob lives in Oslo", layer="team", supersedes=[berlin.id])
    other = view.add("Tabs", layer="team")
    plan = memories.privacy.plan(user="bob")
    assert {id for _, id in plan.derived} == {berlin.id, oslo.id}
    receipt = memories.privacy.erase(user="bob")
    assert (receipt.counts.memories, receipt.counts.derived) == (3, 2)
    assert [one.id for one in view.list(filter=Filter(include_forgotten=True, include_superseded=True))] == [other.id]


@pytest.mark.req("N7")
def test_what_superseded_a_memory_and_cannot_be_opened_stops_no_erasure() -> None:
    """Neither of somebody else, nor of the person whose key is lost, nor of the memory that it superseded."""
    keyring = RamKeyring()
    with wellkept.open("ram:", embedder=None, keyring=keyring) as memories:
        bob = memories.view(user="bob", project="p")
        rome = bob.add("The office is in Rome", layer="project")
        bob.add("The office moves to Berlin", layer="user", supersedes=[rome.id], sensitive=True)
        memories.view(user="carl").add("Likes tea")
        keyring.destroy(Owner(Layer.USER, ("bob",)))
        assert memories.privacy.erase(user="carl").counts.memories == 1
        plan = memories.privacy.plan(ids=[rome.id])
        assert (plan.counts.memories, plan.counts.derived) == (2, 1)
        assert memories.privacy.erase(user="bob").counts.memories == 1


def test_a_hold_refuses_the_whole_erasure(memories: wellkept.Memories) -> None:
    bob = memories.view(user="bob")
    bob.add("held", tags=["legal"])
    bob.add("free")
    hold = memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
    for call in (memories.privacy.plan, memories.privacy.erase):
        with pytest.raises(Held) as caught:
            call(user="bob")
        assert caught.value.details["hold"] == hold.id
    assert bob.count() == 2
    assert memories.privacy.ledger() == ()
    memories.upkeep.release(hold.id)
    assert memories.privacy.erase(user="bob").counts.memories == 2


@pytest.mark.req("N7")
def test_an_erasure_among_writers_takes_all_that_was_there_before(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        bob = memories.view(user="bob")
        before = {memory.id for memory in bob.add_many(map(str, range(50)))}
        ended = threading.Event()

        def write() -> None:
            while not ended.is_set():
                memory = bob.add("more")
                with suppress(NotFound):  # it was erased meanwhile
                    bob.update(memory.id, importance=0.9)

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            receipts = [memories.privacy.erase(user="bob") for _ in range(3)]
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        assert not before & {memory.id for memory in bob.list(limit=100)}
        assert [memories.privacy.verify(receipt).valid for receipt in receipts] == [True] * 3
        assert memories.doctor().healthy


def test_nothing_is_erased_unasked(memories: wellkept.Memories) -> None:
    memories.view(user="bob", project="api").add("x")
    for wrong in ({}, {"user": "bob", "project": "api"}, {"ids": ["x"], "filter": {}}, {"user": ""}, {"ids": "x y"}):
        with pytest.raises(InvalidInput):
            memories.privacy.erase(**wrong)
    assert memories.view(user="bob").count() == 1
    memories.view(user="bob_").add("somebody else")
    memories.view(user="bo").add("somebody else")
    assert memories.privacy.erase(user="bo").counts.memories == 1
    assert memories.privacy.erase(user="bob").counts.owners == 1
    assert memories.view(user="bob_").count() == 1


def test_a_receipt_names_the_copies_that_a_migration_left(tmp_path: Path) -> None:
    (tmp_path / "memory.db.schema-1.bak").write_text("an old copy")
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        assert any("schema-1.bak" in line for line in memories.privacy.erase(user="bob").remains)


def test_working_memory_and_context_of_an_erased_person_are_emptied(memories: wellkept.Memories) -> None:
    mine, hers = memories.agent("helper", user="bob"), memories.agent("helper", user="ada")
    for agent in (mine, hers):
        agent.working.set("step", 3)
    memories.privacy.erase(user="bob")
    assert mine.working.get("step") is None
    assert hers.working.get("step") == 3


# -- receipts -------------------------------------------------------------------------------------------------------


class Exchanged(RamKeyring):
    """Signs as another keyring does, once it is told to."""

    other: RamKeyring | None = None

    def signing_seed(self) -> bytes:
        return super().signing_seed() if self.other is None else self.other.signing_seed()


@pytest.mark.req("N7")
def test_a_receipt_is_signed_by_the_keyring_and_any_change_is_found() -> None:
    keyring = Exchanged()
    with wellkept.open("ram:", embedder=None, keyring=keyring) as memories:
        keyring.create(BOB)
        memories.view(user="bob").add("x")
        receipt = memories.privacy.erase(user="bob")
        assert receipt.counts.keys == 1
        assert keyring.key(BOB) is None
        told = memories.privacy.verify(receipt)
        assert (told.valid, told.signed, told.checked) == (True, True, 1)
        for altered in (
            replace(receipt, counts=replace(receipt.counts, memories=2)),
            replace(receipt, remains=()),
            replace(receipt, ledger_hash="0" * 64),
            replace(receipt, erased_at=receipt.erased_at + timedelta(seconds=1)),
            replace(receipt, signature="00" * 64),
            replace(receipt, public_key="00"),
            replace(receipt, signature=None),
            replace(receipt, signature=None, public_key=None, signed_by="nobody", remains=("nothing",)),
        ):
            if altered != receipt:
                assert not memories.privacy.verify(altered).valid, altered
        keyring.other = RamKeyring()
        problems = memories.privacy.verify(receipt).problems
        assert problems == ("the signature is by another keyring than this database's",)


def test_without_a_keyring_a_receipt_says_that_it_is_unsigned(memories: wellkept.Memories) -> None:
    receipt = memories.privacy.erase(user="bob")
    assert receipt.signature is None
    assert "without a keyring" in receipt.signed_by
    assert memories.privacy.receipts() == (receipt,)
    with pytest.raises(InvalidInput):
        memories.privacy.verify("{}")


@pytest.mark.req("N7")
def test_the_record_of_a_session_is_counted_once(memories: wellkept.Memories) -> None:
    view = memories.view(user="bob", session="monday")
    view.sessions.create("monday")
    view.add("Asked about an invoice", layer="session")
    assert memories.privacy.plan(user="bob").counts.records == 1
    assert memories.privacy.erase(user="bob").counts.records == 1


def test_a_ledger_that_lost_an_entry_does_not_verify(memories: wellkept.Memories) -> None:
    records = store_of(memories).records
    first, second = memories.privacy.erase(user="bob"), memories.privacy.erase(user="eve")
    [one, _] = [record for record in records.list(None) if record.kind == "erasures"]
    records.drop(one.owner, one.kind, one.name)
    assert not memories.privacy.verify(first).valid
    assert not memories.privacy.verify(second).valid
