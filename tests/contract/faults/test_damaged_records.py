"""Damaged records: named, set aside, and the rest still there."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import apsw
import pytest

import wellkept
from wellkept.testing.cases import Cases
from wellkept.types import SessionConfig

DAMAGES = {
    "body": "UPDATE records SET body = replace(body, 'de', 'fr') WHERE name = 'monday'",
    "no JSON": "UPDATE records SET body = '{' WHERE name = 'monday'",
    "no text": "UPDATE records SET body = CAST(x'7b22ff' AS TEXT) WHERE name = 'monday'",
    "version": "UPDATE records SET version = 7 WHERE name = 'monday'",
    "time": "UPDATE records SET updated_at = 1 WHERE name = 'monday'",
    "kind": "UPDATE records SET kind = 'Session' WHERE name = 'monday'",
    "name": "UPDATE records SET name = 'moonday' WHERE name = 'monday'",
    "name no text": "UPDATE records SET name = CAST(x'ff41fe' AS TEXT) WHERE name = 'monday'",
    "owner": "UPDATE records SET owner = (SELECT owner FROM owners WHERE name LIKE '%bob%') WHERE name = 'monday'",
    "checksum": "UPDATE records SET checksum = x'00' WHERE name = 'monday'",
}

LOST = {"kind": "Session 'monday'", "name": "'moonday'", "name no text": r"xff", "owner": "session 'monday'"}
"""After these, the record cannot be found under its name: the session is as one that was never created, its memories
are there, and doctor names the record.
"""


@pytest.mark.req("H5", "H10", "J2")
def test_doctor_sets_a_damaged_record_aside(tmp_path: Path) -> None:
    with Cases() as cases:
        for name in DAMAGES:
            with cases.case(name):
                _set_aside(name, Path(mkdtemp(dir=tmp_path)))


def _set_aside(name: str, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with wellkept.open(database, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        for day in ("monday", "tuesday"):
            sessions.create(day, preferences={"language": "de"}).view.add(f"Talked on {day}")
        memories.view(user="bob").add("Likes tea")
    connection = apsw.Connection(str(database))
    connection.execute(DAMAGES[name])
    assert connection.changes() == 1
    connection.close()
    with wellkept.open(database, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        if name not in LOST:
            with pytest.raises(wellkept.errors.StoreCorrupt) as caught:
                sessions.load("monday")
            assert caught.value.hint
        else:
            session = sessions.load("monday")
            assert (session.config, session.preferences.all()) == (SessionConfig(), {})
            assert [memory.content for memory in session.view.list()] == ["Talked on monday"]
        memories.rebuild()
        [finding] = memories.doctor().findings
        assert (finding.check, finding.repaired) == ("checksums", False)
        assert "1 records" in finding.message
        assert LOST.get(name, "session 'monday'") in finding.message
        [finding] = memories.doctor(repair=True).findings
        assert finding.repaired
        assert memories.doctor().findings == ()
        described = ["monday"] if name in LOST else []  # to load it was to use it
        assert [one.id for one in sessions.list()] == [*described, "tuesday"]
        assert sessions.load("tuesday").preferences.language == "de"
        again = sessions.load("monday") if described else sessions.create("monday")
        assert [memory.content for memory in again.view.list()] == ["Talked on monday"]


@pytest.mark.req("H5", "J8")
def test_what_was_set_aside_goes_with_the_record(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with wellkept.open(database, embedder=None) as memories:
        memories.view(user="ada").sessions.create("monday", metadata={"mark": "only0in0this0record"})
    connection = apsw.Connection(str(database))
    connection.execute("UPDATE records SET version = 7")
    connection.close()
    with wellkept.open(database, embedder=None) as memories:
        assert memories.doctor(repair=True).healthy
        sessions = memories.view(user="ada").sessions
        sessions.create("monday")
        assert b"only0in0this0record" in database.read_bytes()
        sessions.delete("monday", permanent=True)
    assert b"only0in0this0record" not in database.read_bytes()
