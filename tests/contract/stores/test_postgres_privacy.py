"""On a PostgreSQL server: access policies withhold what they say, and exported sessions are read in again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import wellkept
from wellkept import Memories
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import Conflict
from wellkept.keyrings.ram import RamKeyring
from wellkept.types import AccessPolicy, ExportFormatName, State

PLANS = {
    None: "plan for the harbour",
    AccessPolicy.PRIVATE: "plan of quarterly salaries",
    AccessPolicy.RESTRICTED: "plan to migrate servers",
    AccessPolicy.SHARED: "plan about summer picnics",
    AccessPolicy.ORGANIZATION: "plan against flooding cellars",
    AccessPolicy.PUBLIC: "plan with seven bicycles",
}
NOBODYS = {PLANS[None], PLANS[AccessPolicy.PUBLIC]}
SOMEBODYS = set(PLANS.values()) - {PLANS[AccessPolicy.PRIVATE]}


@pytest.fixture(params=["plain", "encrypted"])
def memories(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Memories]:
    keys = {"keyring": RamKeyring(), "encrypt": "all"} if request.param == "encrypted" else {}
    with wellkept.open(postgres_url, embedder=HashingEmbedder(16), **keys) as opened:  # type: ignore[arg-type]
        yield opened


@pytest.mark.req("H2", "L14")
def test_access_policies_withhold_what_they_say(memories: Memories) -> None:
    ada = memories.view(user="ada", team="core")
    made = {policy: ada.add(text, layer="team", author="ada", access_policy=policy) for policy, text in PLANS.items()}
    for identity, expected in (({"team": "core"}, NOBODYS), ({"user": "bob", "team": "core"}, SOMEBODYS)):
        view = memories.view(**identity)  # type: ignore[arg-type]
        assert {one.content for one in view.list()} == expected
        assert view.count() == len(expected)
        assert {hit.memory.content for hit in view.search("plan", min_score=0)} == expected
        assert {one.content for one in view.list(as_of=view.position())} == expected
    ada.update(made[None].id, access_policy="private")
    assert {one.content for one in memories.view(team="core").list()} == {PLANS[AccessPolicy.PUBLIC]}, "seen at once"
    ada.update(made[AccessPolicy.PRIVATE].id, access_policy="public")
    assert PLANS[AccessPolicy.PRIVATE] in {one.content for one in memories.view(team="core").list()}


@pytest.mark.req("P3", "L14")
@pytest.mark.parametrize("form", ["json", "jsonl", "entries"])
def test_an_exported_session_is_read_in_once(memories: Memories, form: ExportFormatName) -> None:
    with wellkept.open("ram:", embedder=None) as elsewhere:
        session = elsewhere.view(user="grace").sessions.create("monday", preferences={"language": "en"})
        asked = session.view.add("How do I log in?", type="conversation", role="user", tags=["oauth2"])
        session.view.add("Use the code flow", references=[asked.id], key="flow", metadata={"deep": {"er": [1, None]}})
        session.view.add({"decision": "Use PKCE"})
        session.view.forget(session.view.add("Use passwords").id)
        told = session.export(form, history=form != "entries")
    sessions = memories.view(user="ada").sessions
    added = 3 if form == "entries" else 4
    report = sessions.import_session(told, "monday")
    assert (report.added, report.known) == (added, 0)
    again = sessions.import_session(told, "monday")
    assert (again.added, again.known) == (0, added)
    found = json.loads(sessions.load("monday").export())["memories"]
    assert len(found) == added
    assert [one["state"] for one in found].count(State.FORGOTTEN.value) == added - 3
    assert {one["id"] for one in found} >= {asked.id}
    view = sessions.load("monday").view
    assert view.count() == 3
    assert view.search("log in", min_score=0).hits[0].memory.content == "How do I log in?"
    other = told.replace("How do I log in?", "How do I get in?")
    with pytest.raises(Conflict):
        sessions.import_session(other, "monday")
    assert view.count() == 3, "all or none"
