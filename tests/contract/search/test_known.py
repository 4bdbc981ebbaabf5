"""How sure a search is that an answer is stored."""

import pytest

import wellkept
from tests.support.stand_ins import somebody
from wellkept.testing.cases import Cases


@pytest.mark.req("N8")
def test_a_question_of_which_every_word_is_heard_is_likelier_known() -> None:
    """The same best memory: what else the question speaks of is what tells the two apart."""
    with wellkept.open("ram:") as database:
        ada = database.view(user="ada")
        ada.add_many(["The spare key is under the flower pot", "The kitchen tap drips", "Tom plays the cello"])
        own = ada.search("Where is the spare key of the kitchen?").known
        foreign = ada.search("Where is the volcano key of the parliament?").known
        invented = ada.search("Where is the spare key of the qwrtzl?").known
    assert foreign < 0.6 * own
    assert foreign < invented < own, "of a word that the lexicon does not know, nobody can say who means it"


@pytest.mark.req("N8")
def test_a_question_without_a_word_for_anything_stored_returns_nothing() -> None:
    with wellkept.open("ram:") as memories, Cases() as cases:
        for count in (1, 7, 20):
            view = somebody(memories)
            view.add_many([f"The {place} user prefers dark mode" for place in range(count)])
            for nothing in ("   .", "\x00\x01\x02", "zebra"):
                with cases.case(nothing, count):
                    assert view.search(nothing).hits == ()
