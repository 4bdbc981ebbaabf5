"""Runs that were taken back: what stands in the way, what does not, and that nothing does them again by itself."""

import pytest

from tests.support.stand_ins import HandClock
from wellkept import Memories, View
from wellkept.errors import Conflict
from wellkept.types import ConsolidationPolicy, RetentionPolicy, SessionEndPolicy, UpkeepJob


@pytest.mark.req("N3", "P4")
def test_what_was_erased_since_stays_so_and_the_rest_comes_back(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    ids = [view.add(f"Fact {number}").id for number in range(3)]
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False))
    clock.forward(days=20)
    run = memories.upkeep.run()
    assert view.forget(ids[0], permanent=True)
    undone = memories.upkeep.undo(run.id)
    assert (set(undone.ids), undone.erased) == (set(ids[1:]), (ids[0],))
    assert view.count() == 2


@pytest.mark.req("N9", "N3")
def test_a_quarantine_is_released_although_one_of_its_memories_was_erased(view: View) -> None:
    page = view.add("Invoices go to Mallory", author="mallory")
    made = view.add("Mallory is paid", derived_from=[page.id])
    run = view.quarantine(author="mallory")
    assert view.forget(page.id, permanent=True)
    released = view.release(run.id)
    assert (released.ids, released.erased) == ((made.id,), (page.id,))
    assert view.get(made.id) is not None


@pytest.mark.req("N9", "N3")
def test_what_a_quarantine_brought_back_is_not_replaced_by_what_was_erased(view: View) -> None:
    bob = view.add("Invoices go to Bob")
    mallory = view.add("Invoices go to Mallory", supersedes=[bob.id], author="mallory")
    made = view.add("Mallory is paid", derived_from=[mallory.id])
    run = view.quarantine(author="mallory")
    assert view.forget(mallory.id, permanent=True)
    released = view.release(run.id)
    assert (released.ids, released.erased) == ((made.id,), (mallory.id,))
    assert {one.id for one in view.list()} == {bob.id, made.id}


@pytest.mark.req("N3", "H8")
def test_an_edit_that_was_taken_back_is_none(memories: Memories, view: View, clock: HandClock) -> None:
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
    ids = {view.add(text).id for text in ("Uses vim", "Uses vim.")}
    clock.forward(days=1)
    memories.upkeep.run(job=UpkeepJob.CONSOLIDATION)
    [merged] = view.list().memories
    clock.forward(days=1)
    view.update(merged.id, content="Uses neovim")
    with pytest.raises(Conflict):
        memories.upkeep.undo(memories.upkeep.runs()[0].id)
    clock.forward(days=1)
    view.undo()
    clock.forward(days=1)
    assert set(view.undo().ids) == ids
    assert {one.id for one in view.list()} == ids


@pytest.mark.req("N3", "P4")
def test_an_edit_of_what_was_taken_is_none_once_it_was_taken_back(memories: Memories, clock: HandClock) -> None:
    view = memories.view(user="ada")
    id = view.add("Likes tea").id
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False))
    clock.forward(days=20)
    memories.upkeep.run()
    clock.forward(days=1)
    view.restore(id)
    clock.forward(days=1)
    view.undo()
    assert view.get(id) is None
    clock.forward(days=1)
    assert view.undo().ids == (id,)
    assert view.get(id) is not None


@pytest.mark.req("N3", "H9")
def test_a_user_takes_back_the_end_of_an_own_session(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8, delete_after="0d", automatic=False))
    user = memories.view(user="ada")
    session = user.sessions.create("monday")
    session.view.add("Is allergic to nuts", importance=0.9)
    clock.forward(hours=1)
    session.close()
    [last, *_] = user.undoable()
    assert last.blocked is None
    assert len(user.undo().ids) == 1
    assert (session.view.count(), user.count()) == (1, 0)


@pytest.mark.req("N3")
def test_a_run_over_others_is_listed_as_out_of_reach(memories: Memories, view: View, clock: HandClock) -> None:
    memories.upkeep.set_retention(RetentionPolicy(long_term_age="10d", automatic=False))
    view.add("Likes tea")
    memories.view(user="bob").add("Likes cake")
    clock.forward(days=20)
    memories.upkeep.run()
    assert "others" in str(view.undoable()[0].blocked)


@pytest.mark.req("N3", "P4")
def test_nothing_merges_by_itself_what_somebody_took_apart(memories: Memories, view: View, clock: HandClock) -> None:
    memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2))
    for text in ("Uses vim", "Uses vim."):
        view.add(text)
    clock.forward(days=1)
    run = memories.upkeep.run_due()
    assert run is not None
    assert run.merged == 2
    memories.upkeep.undo(run.id)
    clock.forward(days=1)
    again = memories.upkeep.run_due()
    assert again is not None
    assert (again.merged, view.count()) == (0, 2)
    view.add("Uses Vim")
    clock.forward(days=1)
    assert memories.upkeep.run_due() is not None
    assert view.count() == 3
    assert memories.upkeep.run(job=UpkeepJob.CONSOLIDATION).merged == 3, "but whoever asks for it gets it"


@pytest.mark.req("N3", "H9")
def test_nothing_ends_a_session_by_itself_whose_end_was_taken_back(memories: Memories, clock: HandClock) -> None:
    memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8, delete_after="0d"))
    session = memories.view(user="ada").sessions.create("monday")
    session.view.add("Is allergic to nuts", importance=0.9)
    session.view.add("Talked about rain")
    clock.forward(hours=1)
    run = session.close()
    assert run is not None
    clock.forward(hours=1)
    memories.upkeep.undo(run.id)
    session.view.add("Said goodbye")
    clock.forward(days=1)
    assert memories.upkeep.run_due() is not None
    assert sorted(one.content for one in session.view.list(layers="session")) == [
        "Is allergic to nuts",
        "Talked about rain",
    ]
    session.reopen()
    clock.forward(hours=1)
    session.close()
    assert session.view.count(layers="session") == 0, "it ended once more"
