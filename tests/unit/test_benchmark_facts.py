"""The sets of short facts are sound, and their figures are what they are named."""

from collections import Counter

import pytest

from benchmarks import facts
from benchmarks.facts import Outcome, Question


def outcome(found: list[str], *expected: str, kind: str = "word") -> Outcome:
    return Outcome(question=Question(text="?", kind=kind, expected=frozenset(expected)), found=found)


def test_every_question_names_memories_of_its_set() -> None:
    sets = facts.load([facts.OWN])
    assert sum(len(one.memories) for one in sets) >= 120
    assert sum(len(one.questions) for one in sets) >= 150
    for one in sets:
        ids = [memory["id"] for memory in one.memories]
        assert len(set(ids)) == len(ids)
        assert all(question.expected <= set(ids) for question in one.questions)
        kinds = Counter(question.kind for question in one.questions)
        assert {"paraphrase", "word", "person", "time", "update", "foreign"} <= set(kinds)
        assert all((question.kind == "foreign") is (not question.expected) for question in one.questions)


def test_hits_and_recall() -> None:
    found = outcome(["a", "b", "c", "d"], "b", "d", "x")
    assert (found.hit(1), found.hit(2), found.hit(3)) == (0.0, 1.0, 1.0)
    assert found.recall == pytest.approx(2 / 3)
    assert (outcome([], "a").hit(3), outcome([], "a").recall) == (0.0, 0.0)


def test_the_table_counts_what_is_empty_and_what_should_be() -> None:
    lines = facts.table(
        [outcome(["a"], "a"), outcome([], "b"), outcome(["c"], kind="foreign"), outcome([], kind="foreign")]
    )
    [word] = [line for line in lines if line.startswith("| word")]
    cells = [cell.strip() for cell in word.split("|")]
    assert (cells[2], cells[3], cells[6]) == ("2", "50%", "50.0%")
    assert lines[-1] == "foreign: 1 of 2 answered (50%)"


def test_sets_in_one_store_keep_their_names_apart() -> None:
    sets = facts.load([facts.OWN])
    together = facts.joined(sets)
    assert len({memory["id"] for memory in together.memories}) == sum(len(one.memories) for one in sets)
    assert len(together.questions) == sum(len(one.questions) for one in sets)
