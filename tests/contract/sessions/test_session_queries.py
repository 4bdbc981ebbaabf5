"""Asking across sessions, by text, topic and relevance."""

from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from wellkept import Memories, NewMemory, View
from wellkept.errors import InvalidInput
from wellkept.memories import Sessions
from wellkept.testing.builders import START


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    """Two open sessions, a closed one, a deleted one, and what is no session's or another user's."""
    sessions = memories.view(user="ada").sessions
    told = {
        "monday": ("OAuth needs a security review", ["security.oauth"]),
        "tuesday": ("The security review found nothing", ["security"]),
        "friday": ("Tabs, not spaces", ["style"]),
        "gone": ("The security review is cancelled", ["security"]),
    }
    for id, (content, tags) in told.items():
        sessions.create(id).view.add(content, tags=tags)
    sessions.load("tuesday").view.add("Ask for another one", tags=["security", "todo"])
    sessions.close("monday")
    sessions.delete("gone")
    memories.view(user="ada").add("The user likes security reviews", tags=["security"])
    memories.view(user="bob").sessions.create("monday").view.add("Bob's security review", tags=["security"])
    return sessions


def names(found: Any) -> list[str]:
    return sorted(memory.owner.ids[1] for memory in found)


@pytest.mark.req("J5")
def test_searching_all_sessions_of_a_user(sessions: Sessions) -> None:
    hits = sessions.search("security review", min_score=0)
    assert names(hit.memory for hit in hits if "review" in hit.memory.content) == ["monday", "tuesday"]
    assert [layer.value for layer in hits.layers] == ["session"]
    assert {hit.memory.owner.ids[1] for hit in sessions.search("secur*")} == {"monday", "tuesday"}
    only = sessions.search("review", filter={"tags": ["security.oauth"]}, limit=1, explain=True)
    assert names(hit.memory for hit in only) == ["monday"]
    assert only.hits[0].reasons


@pytest.mark.req("J5")
def test_listing_all_sessions_of_a_user(sessions: Sessions) -> None:
    assert names(sessions.list_memories()) == ["friday", "monday", "tuesday", "tuesday"]
    assert names(sessions.list_memories(filter={"tags": ["security"], "no_tags": ["todo"]})) == ["monday", "tuesday"]
    assert names(sessions.list_memories(filter={"text": "secur* REV*W"})) == ["monday", "tuesday"]
    first = sessions.list_memories(limit=3, sort_by="relevance")
    rest = sessions.list_memories(limit=3, sort_by="relevance", cursor=first.next_cursor)
    assert (len(first), len(rest), rest.next_cursor) == (3, 1, None)
    assert len({memory.id for memory in (*first, *rest)}) == 4
    sessions.create("new")
    with pytest.raises(InvalidInput):
        sessions.list_memories(limit=3, sort_by="relevance", cursor=first.next_cursor)


@pytest.mark.req("J5")
def test_topics(sessions: Sessions) -> None:
    counted = [(one.tag, one.count) for one in sessions.topics()]
    assert counted == [("security", 2), ("security.oauth", 1), ("style", 1), ("todo", 1)]
    assert [one.id for one in sessions.sessions_about("security")] == ["tuesday", "monday"]
    assert [one.id for one in sessions.sessions_about("security.oauth")] == ["monday"]
    assert sessions.sessions_about("secur") == sessions.sessions_about("%") == ()
    for wrong in ("", 5, None):
        with pytest.raises(InvalidInput) as caught:
            sessions.sessions_about(wrong)  # type: ignore[arg-type]  # the mistake to be refused
        assert caught.value.details["field"] == "topic"


@pytest.mark.req("J5")
def test_a_user_without_sessions(memories: Memories) -> None:
    sessions = memories.view(user="carol").sessions
    assert len(sessions.search("anything", min_score=0)) == len(sessions.list_memories()) == 0
    assert [*sessions.list(), *sessions.topics(), *sessions.sessions_about("a")] == []


@pytest.mark.req("J6")
def test_relevance_shows_its_parts(view: View, clock: HandClock) -> None:
    view.add("a decision", type="decision", importance=0.8)
    view.add("a chat", type="conversation", importance=0.9)
    clock.forward(days=7)
    page = view.list(sort_by="relevance")
    assert [memory.content for memory in page] == ["a decision", "a chat"]
    assert page.reasons[1] == {"importance": 0.9, "decay": 0.5, "recency": round(1 + 0.5 * 0.5**7, 4), "match": 1.0}
    assert view.list().reasons == ()
    past = view.list(sort_by="relevance", as_of=START)
    assert [reasons["decay"] for reasons in past.reasons] == [1.0, 1.0]
    assert [memory.content for memory in past] == ["a chat", "a decision"]


@pytest.mark.req("J6")
def test_of_equal_relevance_the_newest_comes_first(view: View) -> None:
    view.add_many([NewMemory(content=str(number)) for number in range(5)])
    assert [memory.content for memory in view.list(sort_by="relevance")] == list("43210")
