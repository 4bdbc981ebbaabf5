"""Patterns of words, and vectors of which an index holds 8 bits alone."""

import pytest

import wellkept
from wellkept.filters import Where, matches
from wellkept.recall import owner_index
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START, Writer, owner
from wellkept.testing.cases import Cases
from wellkept.types import Stored


@pytest.mark.req("L1")
def test_similarity_is_exact_however_many_vectors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an index holds vectors in 8 bits alone, those that come first are compared with the stored ones."""
    texts = [f"{colour} {thing}" for colour in ("red", "green", "blue") for thing in ("car", "house", "fish", "tree")]

    def scores() -> dict[str, float]:
        with wellkept.open("ram:") as memories:
            view = memories.view(user="ada")
            view.add_many(texts)
            return {hit.memory.content: hit.score for hit in view.search("a blue fish", ranking="similarity")}

    exactly = scores()
    monkeypatch.setattr(owner_index, "EXACT", 2)
    assert scores() == pytest.approx(exactly, abs=1e-9)


def _stored(title: str, author: str) -> Stored:
    store, writer = RamStore(), Writer()
    store.journal.append([writer.add(owner("ada"), "prefers tea", title=title, author=author)])
    [one] = store.journal.scan({owner("ada")})
    return one


PATTERNS: tuple[tuple[str, bool], ...] = (
    *(("pref*", True), ("te*", True), ("secur*", True), ("ingr*", True), ("ea*", False), ("zebr*", False)),
    *(("t?a", True), ("*fers", True), ("p?ef*s", True), ("s?c*r?ty", True), ("t?", False), ("t??a", False)),
    *(("*", True), ("?ea", True), ("te?", True), ("????", False), ("i*g*d", True), ("p*e?s", True)),
)


def test_a_pattern_is_that_of_a_word_of_title_content_or_author() -> None:
    stored = _stored(title="Security", author="Ingrid")
    with Cases() as cases:
        for pattern, found in PATTERNS:
            with cases.case(pattern):
                assert matches(stored, Where(now=START, pattern=pattern)) is found
