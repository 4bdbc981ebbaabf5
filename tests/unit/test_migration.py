"""Taking a database to another schema on request: told before, copied first, and refused while somebody has it open."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import wellkept
from tests.contract.stores.test_schemas import fill
from tests.support import later_schema
from tests.support.terminal import Terminal
from wellkept.errors import ConfigurationError, InvalidInput, StoreBusy, Unsupported
from wellkept.stores.sqlite import connections, schema
from wellkept.testing.cases import Cases
from wellkept.transfer.migration import migrate

OLDER, NEWEST = 1, 2


@pytest.fixture(autouse=True)
def _later(later_release: pytest.MonkeyPatch) -> None:
    """One schema has no way down: these tests are about a release that knows two."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with two memories, one of them changed, that the release before wrote and this one opened."""
    path = tmp_path / "memory.db"
    with wellkept.open(path, embedder=None) as memories:
        view = memories.view(user="ada")
        memory = view.add("Lives in Paris", key="home", tags=["place"])
        view.update(memory.id, content="Lives in Rome")
        view.add("Likes tea", language="en", metadata={"n": 1})
    label(path)
    return path


def label(path: Path) -> None:
    """Give the memories of a database labels, as the step to the newest schema does."""
    with closing(connections.connect(path, "full")) as connection:
        for number in (OLDER, NEWEST):
            schema.migrate(connection, number)


def told(path: Path) -> list[tuple[str, str | None, tuple[str, ...], str | None, dict[str, object]]]:
    with wellkept.open(path, embedder=None) as memories:
        found = memories.view(user="ada").list(sort_by="oldest")
        return [(one.content, one.key, one.tags, one.language, dict(one.metadata)) for one in found]


@pytest.mark.req("L14")
def test_down_and_up_again_keeps_every_memory(path: Path) -> None:
    before = told(path)
    report = migrate(path, to=OLDER)
    assert (report.before, report.after, report.copy) == (NEWEST, OLDER, "memory.db.schema-2.bak")
    assert (path.parent / str(report.copy)).stat().st_mode & 0o777 == 0o600
    assert told(path) == before  # opening it brings it up
    assert migrate(path).before == NEWEST


@pytest.mark.req("L14")
def test_what_the_older_schema_cannot_hold_is_told_and_nothing_is_changed(path: Path) -> None:
    before = path.read_bytes()
    report = migrate(path, to=OLDER, dry_run=True)
    assert (report.copy, report.dry_run) == (None, True)
    assert report.losses == ("3 labels are dropped",)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["memory.db"]


@pytest.mark.req("L14")
def test_the_copy_is_the_database_as_it_was(path: Path) -> None:
    before = told(path)
    report = migrate(path, to=OLDER)
    copy = path.with_name(str(report.copy))
    with wellkept.open(copy, embedder=None) as memories:
        assert [version.version for version in memories.view(user="ada").changes()] == [1, 2, 1]
    assert told(copy) == before


@pytest.mark.req("L14")
def test_a_database_that_is_open_is_not_taken_away(path: Path) -> None:
    with wellkept.open(path, embedder=None) as memories:
        view = memories.view(user="ada")
        assert view.count() == 2
        with pytest.raises(StoreBusy, match="open elsewhere"):
            migrate(path, to=OLDER)
        assert view.add("Still here").version == 1
    assert migrate(path, to=OLDER).after == OLDER


def test_schemas_that_do_not_exist_are_refused(path: Path) -> None:
    with Cases() as cases:
        for to in (0, -1, NEWEST + 1, True, "5", 1.5):
            with cases.case(to):
                _refused(path, to)


def _refused(path: Path, to: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        migrate(path, to=to)
    assert (caught.value.details["field"], caught.value.operation) == ("to", "migrate")


def test_what_cannot_be_migrated_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no database"):
        migrate(tmp_path / "missing.db")
    for url in ("ram:", f"jsonl:{tmp_path / 'notes'}"):
        with pytest.raises(Unsupported) as caught:
            migrate(url, to=1)
        assert caught.value.details["capability"] == "migrate"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("L14")
def test_a_loss_needs_a_yes_on_the_command_line(terminal: Terminal) -> None:
    terminal.add("Likes tea")
    label(terminal.database)
    shown = terminal("migrate", "memory.db", "--to", str(OLDER), "--dry-run", "--json")
    assert json.loads(shown.out)["result"]["losses"]
    refused = terminal("migrate", "memory.db", "--to", str(OLDER))
    assert (refused.code, "--yes" in refused.err) == (2, True)
    done = terminal("migrate", "memory.db", "--to", str(OLDER), "--yes", "--json")
    assert json.loads(done.out)["result"]["after"] == OLDER
    assert json.loads(terminal("migrate", "memory.db", "--json").out)["result"]["before"] == OLDER


@pytest.mark.parametrize(("start", "version"), [(1, 1), (2, 1), (2, 2)])
def test_every_schema_of_ours_is_known_on_every_way(
    start: int, version: int, later_release: pytest.MonkeyPatch
) -> None:
    with closing(apsw.Connection(":memory:")) as connection:
        schema.migrate(connection, start)
        schema.migrate(connection, version)
        assert schema.strangers(connection) == []
        assert (schema.digest(schema.objects(connection)) == schema.DIGEST) == (version == 1)


@pytest.mark.req("L14")
def test_a_step_fills_what_it_adds_and_takes_it_back(tmp_path: Path, later_release: pytest.MonkeyPatch) -> None:
    database = tmp_path / "memory.db"
    later_release.undo()
    fill(database, with_vectors=False)
    with closing(connections.connect(database, "full")) as connection:
        later_release.setattr(schema, "MIGRATIONS", (schema.FIRST, later_schema.SQLITE))
        before = schema.objects(connection)
        versions = connection.execute("SELECT count(*) FROM journal").get
        schema.migrate(connection, 2)
        assert connection.execute("SELECT count(*), sum(label = 'version 1') FROM labels").fetchall() == [
            (versions, versions - 3)
        ]
        assert connection.execute("SELECT sum(labels) FROM owners").get == versions
        assert schema.losses(connection, 2) == []
        assert schema.losses(connection, 1) == [f"{versions} labels are dropped"]
        schema.migrate(connection, 1)
        assert schema.objects(connection) == before
