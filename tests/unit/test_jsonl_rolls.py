"""What the store in plain files keeps at hand to answer listings: it must never answer otherwise than the filters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect import filters
from recollect.stores.jsonl import JsonlStore, rolls
from recollect.stores.jsonl.grams import Grams, tells
from recollect.testing import strategies
from recollect.testing.builders import added, erased, forgotten, memory, owner, put, query, restored, updated
from recollect.types import Memory, Sort
from tests.unit.jsonl_files import ADA, MEMORY, contents, edit, opened

BOB = owner("bob")
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "update", "forget", "restore", "erase"]), st.integers(0, 9), strategies.drafts()),
    max_size=8,
)
CONDITIONS = st.lists(strategies.conditions(), min_size=1, max_size=3)


@pytest.fixture(scope="module", autouse=True)
def at_once() -> Iterator[None]:
    """Texts are marked from the first memory and the first question on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolls, "MANY", 0)
        patch.setattr(rolls, "PATIENCE", 0)
        yield


def change(store: JsonlStore, what: str, number: int, draft: dict[str, Any]) -> None:
    """Add a memory to ada's or bob's, or change one of theirs in some way."""
    known = [one.memory for one in store.scan({ADA, BOB})]
    if what == "add" or not known:
        store.apply([added(memory(whose=(ADA, BOB)[number % 2], **draft))])
        return
    old = known[number % len(known)]
    store.apply(
        [
            {
                "update": lambda: updated(old, content=draft["content"], tags=draft["tags"]),
                "forget": lambda: forgotten(old),
                "restore": lambda: restored(old),
                "erase": lambda: erased(old),
            }[what]()
        ]
    )


@pytest.mark.req("J5")
@settings(max_examples=60, deadline=None)
@given(first=st.lists(strategies.drafts(), max_size=5), changes=CHANGES, asked=CONDITIONS)
def test_listings_agree_with_the_filters_whatever_was_written_in_between(
    first: list[dict[str, Any]], changes: list[tuple[str, int, dict[str, Any]]], asked: list[dict[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "memory", durability="relaxed") as store:
        put(store, *(memory(whose=(ADA, BOB)[place % 2], **draft) for place, draft in enumerate(first)))
        for step in (None, *changes):
            if step is not None:
                change(store, *step)
            for wanted in asked:
                for owners in ((ADA,), (ADA, BOB)):
                    question = query(*owners, sort=Sort.OLDEST, limit=None, **wanted)
                    there = [one.memory for one in store.scan(set(owners))]
                    expected = [one for one in there if filters.matches(one, question.where)]
                    assert [one.memory for one in store.select(question)] == expected
                    assert store.count(question) == len(expected)


@pytest.mark.req("J5")
def test_a_tag_is_found_in_whatever_company_it_comes(tmp_path: Path) -> None:
    with recollect.open(f"jsonl:{tmp_path / 'memory'}", embedder=None, durability="relaxed") as memories:
        view, asked = memories.view(user="ada"), recollect.Filter(tags=["security"], no_tags=["old"])
        found: list[str] = []
        company = {
            "security": True,
            "tea": False,
            "security.tokens tea": True,
            "security old": False,
            "tea security": True,
        }
        for tags, fits in company.items():
            memory_id = view.add("Something to remember", tags=tags.split()).id
            found += [memory_id] if fits else []
            assert [one.id for one in view.list(filter=asked, sort_by="oldest")] == found
            assert view.search("remember", filter=asked, min_score=0).total == len(found)


@given(st.lists(strategies.contents(), min_size=1, max_size=20), st.data())
def test_no_text_that_has_the_pieces_is_passed_over(texts: list[str], data: st.DataObject) -> None:
    grams, numbers = Grams(), list(range(1, len(texts) + 1))
    half = len(texts) // 2
    grams.add(numbers[:half], texts[:half])
    grams.add(numbers[half:], texts[half:])
    folded = data.draw(st.sampled_from(texts)).casefold()
    start = data.draw(st.integers(0, len(folded)))
    piece = folded[start : start + data.draw(st.integers(1, 12))]
    if tells(piece):
        having = {number for number, text in zip(numbers, texts, strict=True) if piece in text.casefold()}
        assert having <= grams.candidates([piece])


def test_texts_of_any_length_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.jsonl.grams._CHUNK_TEXTS", 3)
    monkeypatch.setattr("recollect.stores.jsonl.grams._CHUNK_BYTES", 100)
    texts = [f"{'tea ' * (number * 7 % 60)}number{number} {number}" for number in range(40)]
    grams = Grams()
    grams.add(range(100, 140), texts)
    for number in range(40):
        assert 100 + number in grams.candidates([f"number{number} {number}"])


def test_most_texts_without_a_piece_are_passed_over() -> None:
    texts = [f"This is about {word}, and about nothing else." for word in ("tea", "coffee", "security", "cake") * 50]
    grams = Grams()
    grams.add(range(200), texts)
    assert len(grams) == 200
    assert grams.candidates(["security"]) == {number for number in range(200) if number % 4 == 2}
    assert not grams.candidates(["security", "coffee"])


@pytest.mark.req("J5")
@pytest.mark.parametrize("asked", [{"text": ("secur*",)}, {"content_contains": "security rev"}])
def test_texts_are_found_from_the_moment_they_are_written(tmp_path: Path, asked: dict[str, Any]) -> None:
    question = query(ADA, sort=Sort.OLDEST, **asked)

    def found() -> list[str]:
        return [one.memory.content for one in store.select(question)]

    with opened(tmp_path / "memory") as store:
        some = [memory(f"number {number}") for number in range(30)]
        put(store, *some)
        assert found() == []
        put(store, new := memory("A security review"))
        assert found() == ["A security review"]
        store.apply([updated(some[7], content="Another security review")])
        assert found() == ["Another security review", "A security review"]
        store.apply([updated(new, content="Over")])
        assert found() == ["Another security review"]
        for number in range(8, 28):  # so many that they are marked
            store.apply([updated(some[number], content=f"Security review {number}")])
            assert len(found()) == number - 6
        store.apply([erased(store.get({ADA}, [some[7].id])[some[7].id])])
        assert len(found()) == 20


@pytest.mark.req("J5")
def test_words_are_found_however_they_are_accented(tmp_path: Path) -> None:
    with opened(tmp_path / "memory") as store:
        put(
            store,
            *(memory(text) for text in ("A naïve café", "A CAFE\u0301 in I\u0307stanbul", "Tea in Straße 5", "tea")),
        )
        for wanted, count in {"naive": 1, "cafe": 2, "istan*": 1, "strasse": 1, "*traß*": 0}.items():
            assert store.count(query(ADA, text=(wanted,))) == count
        for needle, count in {"straße": 0, "strasse": 1, "naïve": 1, "naive": 0, "tea": 2}.items():
            assert store.count(query(ADA, content_contains=needle)) == count


# --- what is read again ---------------------------------------------------------------------------


def held(store: JsonlStore) -> set[str]:
    return {entry.memory_id for entry in store._known.values()}


@pytest.mark.req("J8")
def test_an_erased_memory_is_not_kept_to_spare_reading_it_again(tmp_path: Path) -> None:
    with opened(tmp_path / "memory") as one, opened(tmp_path / "memory") as other:
        first, second = memory("first"), memory("second")
        put(one, first, second)
        assert contents(other) == ["first", "second"]
        assert held(other) == {first.id, second.id}
        other.apply([erased(first)])
        assert first.id not in held(other)
        assert contents(one) == contents(other) == ["second"]
        assert held(one) == {second.id}


@pytest.mark.req("J11")
def test_reading_again_decodes_only_what_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "memory") as store:
        put(store, *(memory(f"number {number}") for number in range(5)))
        store.rebuild()
        before: list[Memory | None] = [entry.memory for entry in store._journal.entries]
        monkeypatch.setattr("recollect.stores.jsonl.lines.to_entry", lambda _: pytest.fail("a line was decoded"))
        store.rebuild()
        assert [entry.memory for entry in store._journal.entries] == before


@pytest.mark.req("J4", "J11")
def test_reading_again_finds_what_was_damaged_since(tmp_path: Path) -> None:
    with opened(tmp_path / "memory") as store:
        put(store, *(memory(f"number {number}") for number in range(3)))
        store.rebuild()

        def damage(found: list[bytes]) -> None:
            found[1] = found[1].replace(b"number 1", b"number 7")

        edit(tmp_path / "memory" / MEMORY, damage)
        store.rebuild()
        assert contents(store) == ["number 0", "number 2"]
        assert store.health().components["damaged_lines"] == "1"
