"""A search on PostgreSQL finds what one on SQLite finds, in the same order: from RAM, and from tables of the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

import wellkept
from benchmarks import facts, kinds
from tests.contract.faults.soundness import everything
from tests.support.stand_ins import HandClock
from wellkept import View
from wellkept.types import Status

POINTS = 0.003
"""How far the share of answers found may differ."""

MORE = (
    '"green tea" in the kitchen',
    "wor* of last week",
    "What did she say before that?",
    "Who moved in March?",
    "the and of",
)
PLACES = ("sqlite", "in RAM", "on the server")


@pytest.fixture(scope="module")
def known() -> facts.FactSet:
    return facts.joined(facts.load([facts.OWN]))


@pytest.fixture
def views(known: facts.FactSet, tmp_path: Path, postgres_url: str) -> Iterator[dict[str, View]]:
    """The same memories in each place."""
    urls = (str(tmp_path / "memory.db"), f"{postgres_url}?schema=ram", f"{postgres_url}?schema=tables&ram_rows=0")
    with ExitStack() as stack:
        opened = [stack.enter_context(wellkept.open(url, clock=HandClock())) for url in urls]
        found = {}
        for place, memories in zip(PLACES, opened, strict=True):
            found[place] = memories.view(user="ada")
            found[place].add_many(facts.OTHERS[:60])
            found[place].add_many(facts.news_of(known))
        yield found
        assert [memories.health().components["index"].status for memories in opened] == [
            Status.HEALTHY,
            Status.HEALTHY,
            Status.DEGRADED,
        ]


@pytest.mark.req("L14", "H5")
@pytest.mark.slow
@pytest.mark.parametrize("ranking", ["best", "similarity"])
def test_every_place_finds_the_same(
    known: facts.FactSet, views: dict[str, View], ranking: Literal["best", "similarity"]
) -> None:
    expected = {memory["content"]: memory["id"] for memory in known.memories}
    recalls = dict.fromkeys(PLACES, 0.0)
    texts = [*(question.text for question in known.questions), *MORE]
    differing = 0
    answers = {question.text: question for question in known.questions if question.expected}
    for text in texts:
        contents: dict[str, list[str]] = {}
        for place, view in views.items():
            hits = view.search(text, limit=kinds.LIMIT, asked_at=known.asked_at, ranking=ranking, min_score=0)
            contents[place] = [hit.memory.content for hit in hits]
            if text in answers:
                found = [expected.get(content, "") for content in contents[place]]
                recalls[place] += kinds.Outcome(question=answers[text], found=found).recall / len(answers)
        assert contents["in RAM"] == contents["sqlite"], text
        assert contents["on the server"][:1] == contents["sqlite"][:1], text
        differing += contents["on the server"][:3] != contents["sqlite"][:3]
    # The server compares in half precision, the index in RAM in 8 bits: which memories are just near enough to be
    # candidates may differ, and with it what comes behind the answer.
    assert differing <= len(texts) / 100
    assert recalls == pytest.approx(dict.fromkeys(PLACES, recalls["sqlite"]), abs=POINTS)
    assert recalls["sqlite"] > 0.5


@pytest.mark.req("L14")
def test_every_place_follows_changes(known: facts.FactSet, views: dict[str, View]) -> None:
    for view in views.values():
        view.search("warm up")
        kept = {memory.content: memory.id for memory in everything(view)}
        for place, (content, memory_id) in enumerate(kept.items()):
            if place % 7 == 0:
                view.forget(memory_id)
            elif place % 7 == 1:
                view.forget(memory_id, permanent=True)
            elif place % 7 == 2:
                view.update(memory_id, content=f"{content}, or so they say")
        view.add("A zebra was seen on the roof", author="Zoe", role="user")
    for text in ["Who saw a zebra?", "or so they say", *(question.text for question in known.questions[:40])]:
        contents = {
            place: [hit.memory.content for hit in view.search(text, asked_at=known.asked_at, min_score=0)]
            for place, view in views.items()
        }
        assert contents["in RAM"] == contents["sqlite"], text
        assert contents["on the server"][:3] == contents["sqlite"][:3], text
