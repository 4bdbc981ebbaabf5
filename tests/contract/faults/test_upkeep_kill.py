"""kill -9 in the middle of upkeep: each owner is as it was or as it will be, and a run, or its undo, does the rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.faults import processes
from tests.support.erased_person import open_database
from tests.support.stand_ins import store_of
from wellkept import Memories
from wellkept.ports import Lease
from wellkept.types import ConsolidationPolicy, Filter, SessionEndPolicy, State, UpkeepJob

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
URLS = ["memory.db", "jsonl:notes"]
PAIRS = [("Prefers dark mode", "Prefers the dark mode."), ("Uses vim", "uses vim.")]
ADA, BOB = "ada", "bob"
Known = list[tuple[str, State, tuple[str, ...]]]


def known(memories: Memories, user: str = ADA, session: str | None = None) -> Known:
    """What an identity has, whatever its state: text, state, and the texts that it was made from."""
    view = memories.view(user=user, session=session)
    found = view.list(filter=Filter(include_forgotten=True, include_archived=True), limit=100).memories
    texts = {one.id: one.content for one in found}
    return sorted(
        (one.content, one.state, tuple(sorted(texts.get(source, "elsewhere") for source in one.derived_from)))
        for one in found
    )


def killed(
    child: str, did: str, original: Path, tmp_path: Path, name: str
) -> Iterator[tuple[processes.Told, Memories]]:
    """The database after a child was killed at each of its changes in turn, and after one that came to its end.

    The child's right to run upkeep is taken from it, as a minute would do.
    """
    for step in range(1, 100):
        place = tmp_path / f"step{step}"
        shutil.copytree(original, place)
        told = processes.run(child, url_in(place, name), step)
        assert told.killed or told.of(did), told.errors
        with open_database(url_in(place, name)) as memories:
            for lease in told.of("leased")[-1:]:
                held = Lease(name=lease["name"], holder=lease["holder"], token=lease["token"])
                store_of(memories).records.release(held)
            yield told, memories
            assert memories.doctor().healthy
        shutil.rmtree(place)
        if not told.killed:
            break


def url_in(place: Path, name: str) -> str:
    plain = name.removeprefix("jsonl:")
    return name.replace(plain, str(place / plain))


def take_back(memories: Memories) -> None:
    """Undo the run of the child, if it got so far that there is one."""
    for run in memories.upkeep.runs():
        memories.upkeep.undo(run.id)


@pytest.mark.req("H8", "N3")
@pytest.mark.parametrize("name", URLS)
def test_a_killed_consolidation_leaves_each_owner_merged_or_as_it_was(tmp_path: Path, name: str) -> None:
    original = tmp_path / "original"
    original.mkdir()
    with open_database(url_in(original, name)) as memories:
        memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
        for user in (ADA, BOB):
            for pair in PAIRS:
                for text in pair:
                    memories.view(user=user).add(text)
        before = known(memories)
    after: Known = sorted(
        [(text, State.SUPERSEDED, ()) for pair in PAIRS for text in pair]
        + [(max(pair, key=len), State.ACTIVE, tuple(sorted(pair))) for pair in PAIRS]
    )
    seen: list[tuple[bool, ...]] = []
    for told, memories in killed("consolidate", "merged", original, tmp_path, name):
        states = [known(memories, user) for user in (ADA, BOB)]
        assert all(state in (before, after) for state in states)
        assert told.killed or states == [after, after]
        seen.append(tuple(state == after for state in states))
        take_back(memories)
        assert [known(memories, user) for user in (ADA, BOB)] == [before, before]
        again = memories.upkeep.run(job=UpkeepJob.CONSOLIDATION, max_share=1.0)
        assert again.errors == ()
        assert [known(memories, user) for user in (ADA, BOB)] == [after, after]
        assert memories.upkeep.run(job=UpkeepJob.CONSOLIDATION, max_share=1.0).merged == 0, "nothing is merged twice"
    assert seen == sorted(seen), "later kills find more done"
    assert set(seen) >= {(False, False), (True, True)}


@pytest.mark.req("H9", "N3")
@pytest.mark.parametrize("name", URLS)
def test_a_killed_end_of_a_session_loses_nothing_and_closing_again_finishes_it(tmp_path: Path, name: str) -> None:
    original = tmp_path / "original"
    original.mkdir()
    with open_database(url_in(original, name)) as memories:
        memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8, delete_after="0d", automatic=False))
        view = memories.view(user=ADA, session="monday")
        view.sessions.create("monday")
        for text, importance in (("Is allergic to nuts", 0.9), ("Lives in Rome", 0.8), ("Talked about rain", 0.2)):
            view.add(text, importance=importance, layer="session")
        before = known(memories, session="monday")
    assert [state for _, state, _ in before] == [State.ACTIVE] * 3
    gone: Known = [(text, State.FORGOTTEN, ()) for text, _, _ in before]
    promoted: Known = [(text, State.ACTIVE, ("elsewhere",)) for text, _, _ in before[:2]]
    seen: list[tuple[bool, bool, bool]] = []
    for told, memories in killed("end_session", "ended", original, tmp_path, name):
        session = memories.view(user=ADA).sessions.load("monday")
        hers, its = own(memories), of_session(memories)
        assert hers in ([], promoted)
        assert its in (before, gone)
        assert hers == promoted or its == before, "what matters is copied before anything goes"
        assert told.killed or its == gone
        seen.append((session.closed_at is not None, bool(hers), its == gone))
        take_back(memories)
        assert (own(memories), of_session(memories)) == ([], before)
        session.close()
        assert (own(memories), of_session(memories)) == (promoted, gone)
        assert session.close() is None, "nothing is left to do"
        assert session.closed_at is not None
    assert seen == sorted(seen), "later kills find more done"
    assert set(seen) >= {(False, False, False), (True, False, False), (True, True, True)}


def own(memories: Memories) -> Known:
    """What ada has beyond her session."""
    return known(memories)


def of_session(memories: Memories) -> Known:
    """What her session has, whatever its state."""
    return [one for one in known(memories, session="monday") if one[2] == ()]
