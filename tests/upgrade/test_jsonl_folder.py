"""A folder of JSON Lines that release 0.1 wrote opens in this one, with everything in it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from wellkept.engine import sealing
from wellkept.stores.jsonl import JsonlStore, lines
from wellkept.stores.jsonl.disk import Disk
from wellkept.types import Layer, Operation, Owner, State

OLD = Path(__file__).parent / "jsonl_0_1"
ADA = Owner(Layer.USER, ("ada",))
MONDAY = Owner(Layer.SESSION, ("ada", "monday"))
LOG = "journal/commits.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "memory")
    return tmp_path / "memory"


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_everything(root: Path) -> None:
    with closing(JsonlStore(root)) as store:
        journal = store.journal
        memories = [sealing.unseal(one) for one in journal.scan({ADA, MONDAY}, vectors=True)]
        assert [one.content for one in memories] == [
            "How do I implement OAuth2?",
            "Use the authorization code flow with PKCE",
            "Likes tea",
            "Lives in Ávila\u2028really",
            "forgotten soon",
        ]
        question, flow, *_, forgotten = memories
        assert (question.role, question.tags, question.owner) == ("user", ("oauth2",), MONDAY)
        assert (flow.references, flow.key, flow.title, flow.language) == ((question.id,), "flow", "OAuth", "en")
        assert (flow.confidence, flow.metadata, flow.version) == (0.75, {"rationale": "secure"}, 2)
        assert flow.source is not None
        assert flow.source.reference == "doc 7"
        assert forgotten.state is State.FORGOTTEN
        assert all(one.vector is not None and one.vector.dimension == 256 for one in memories)
        for one in journal.scan({ADA, MONDAY}):
            assert sealing.seal(sealing.unseal(one)) == (one.facets, one.payload)  # counted as the engine counts
        history = journal.history(MONDAY, flow.id)
        assert [one.version for one in history] == [1, 2]
        assert history[1].replaced == history[0].stamp
        [gone] = [one for one in journal.versions({ADA}) if one.operation is Operation.ERASED]
        assert gone.reason == "asked for"
        assert store.records.get(ADA, "session", "monday") is not None
        assert journal.settings()["embedder"] == "wordllama-l2-supercat-256"
        assert store.check(repair=True).healthy  # the modes are git's


@pytest.mark.req("J1", "L14")
def test_everything_is_there_and_a_copy_was_made(root: Path) -> None:
    before = files(root)
    check_everything(root)
    assert files(root.with_name("memory.0.1.bak")) == before
    assert not {LOG, "settings.jsonl", "users/ada/vectors.jsonl"} & files(root).keys()
    check_everything(root)


@pytest.mark.req("L14")
@pytest.mark.parametrize("kept", [0, 1, 5, 9, 13])
def test_a_migration_that_was_killed_begins_again(root: Path, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after some of its writes."""
    calls = iter(range(kept))
    for name in ("replace", "remove"):
        monkeypatch.setattr(Disk, name, _dying(getattr(Disk, name), calls))
    with pytest.raises(KeyboardInterrupt):
        JsonlStore(root)
    monkeypatch.undo()
    check_everything(root)


def _dying(method: object, calls: object) -> object:
    def call(*arguments: object, **options: object) -> object:
        if next(calls, None) is None:  # type: ignore[call-overload]  # an iterator of numbers
            raise KeyboardInterrupt
        return method(*arguments, **options)  # type: ignore[operator]  # a method of Disk

    return call


@pytest.mark.req("J11")
@pytest.mark.parametrize("damage", ["missing", "emptied", "damaged"])
def test_without_the_log_every_whole_line_counts(root: Path, damage: str) -> None:
    log = root / LOG
    if damage == "missing":
        log.unlink()
    else:
        log.write_bytes(b"" if damage == "emptied" else log.read_bytes().replace(b"commit", b"cemmit", 1))
    check_everything(root)


@pytest.mark.req("J12")
def test_a_hostile_log_names_no_file_outside(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    line = lines.seal({"commit": 99, "sequence": 99, "files": {"../outside": 0}, "rewritten": ["../outside"]})
    with (root / LOG).open("ab") as file:
        file.write(line)
    check_everything(root)
    assert outside.read_text() == "mine"


def test_an_edited_line_still_waits_for_a_person(root: Path) -> None:
    memory = root / "users/ada/memory.jsonl"
    memory.write_bytes(memory.read_bytes().replace(b"Likes tea", b"Likes gin"))
    with closing(JsonlStore(root)) as store:
        store.check()
        assert "Likes tea" not in [one.facets["text"] for one in store.journal.scan({ADA})]
        assert [finding.check for finding in store.check().findings if finding.check != "modes"] == ["handwritten"]


@pytest.mark.req("L14")
def test_a_folder_of_today_with_a_log_of_0_1_stays_as_it_is(root: Path) -> None:
    """As a merge of an older branch leaves it."""
    check_everything(root)
    (root / "journal").mkdir()
    (root / LOG).write_bytes((OLD / LOG).read_bytes())
    (root / "settings.jsonl").write_bytes((OLD / "settings.jsonl").read_bytes())
    check_everything(root)
    assert not root.with_name("memory.0.1.bak.2").exists()


@pytest.mark.req("L14")
def test_the_copy_of_an_earlier_migration_is_not_taken_for_the_folder(root: Path) -> None:
    """Somebody went back to 0.1 by copying the copy, wrote more there, and comes again."""
    check_everything(root)
    shutil.rmtree(root)
    shutil.copytree(root.with_name("memory.0.1.bak"), root)
    shutil.rmtree(root.with_name("memory.0.1.bak"))
    root.with_name("memory.0.1.bak").mkdir()  # older than the folder: it has none of the memories
    check_everything(root)
    assert (root.with_name("memory.0.1.bak.2") / LOG).exists()
