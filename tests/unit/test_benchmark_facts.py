"""The sets of short facts are sound, and their figures are what they are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import facts, kinds
from benchmarks.facts import Question
from benchmarks.kinds import Outcome
from wellkept.recall import updates, weights
from wellkept.text import words


def outcome(found: list[str], *expected: str, kind: str = "word") -> Outcome:
    question = Question(text="?", kind=kind, expected=frozenset(expected))
    return Outcome(question=question, found=found, scores=[0.5] * len(found))


def test_every_question_names_memories_of_its_set() -> None:
    sets = facts.load(sorted(path for path in facts.OWN.parent.iterdir()))
    assert len({one.name for one in sets}) == len(sets)
    for one in sets:
        ids = [memory["id"] for memory in one.memories]
        assert len(set(ids)) == len(ids)
        assert all(question.expected <= set(ids) for question in one.questions)
        assert all((question.kind in ("foreign", "near")) is (not question.expected) for question in one.questions)


def test_short_facts_are_asked_in_every_way() -> None:
    sets = facts.load([facts.OWN])
    assert sum(len(one.memories) for one in sets) >= 300
    assert sum(len(one.questions) for one in sets) >= 350
    for one in sets:
        kinds = {question.kind for question in one.questions}
        assert {"paraphrase", "word", "person", "time", "update", "foreign"} <= kinds


def test_a_paraphrase_shares_no_word_with_what_answers_it() -> None:
    def content(text: str) -> set[int]:
        return {words.term(word) for word in words.tokens(text) if not words.is_stop(word)}

    folders = [facts.OWN, facts.OWN.parent / "code", facts.OWN.parent / "chats", facts.OWN.parent / "notes"]
    for one in facts.load(folders):
        texts = {memory["id"]: f"{memory['content']} {memory.get('title', '')}" for memory in one.memories}
        for question in one.questions:
            if question.kind == "paraphrase":
                assert all(not content(question.text) & content(texts[answer]) for answer in question.expected)


def test_hits_and_recall() -> None:
    found = outcome(["a", "b", "c", "d"], "b", "d", "x")
    assert (found.hit(1), found.hit(2), found.hit(3)) == (0.0, 1.0, 1.0)
    assert found.recall == pytest.approx(2 / 3)
    assert (outcome([], "a").hit(3), outcome([], "a").recall) == (0.0, 0.0)


def test_figures_count_what_is_empty_and_what_should_be() -> None:
    figures = kinds.figures(
        [outcome(["a"], "a"), outcome([], "b"), outcome(["c"], kind="foreign"), outcome([], kind="foreign")]
    )
    assert figures["questions"] == 2
    assert [figures[name][0] for name in ("hit@1", "emptied", "foreign answered")] == [0.5, 0.5, 0.5]
    assert all(0 <= figures[name][1] <= 0.5 <= figures[name][2] <= 1 for name in ("hit@1", "emptied"))


@given(
    pairs=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40),
)
def test_the_calibration_error_is_a_mean_distance(pairs: list[tuple[float, bool]]) -> None:
    assert 0 <= kinds.calibration_error(pairs) <= 1
    bins = kinds.reliability(pairs)
    assert sum(one["hits"] for one in bins) == len(pairs)
    assert kinds.calibration_error([(float(right), right) for _, right in pairs]) == 0


def test_scores_that_are_right_as_often_as_they_say_have_no_error() -> None:
    assert kinds.calibration_error([(0.75, True)] * 3 + [(0.75, False)]) == 0
    assert kinds.calibration_error([(0.95, False)] * 4) == pytest.approx(0.95)


@pytest.mark.parametrize("signal", ["words", updates.LATER])
def test_a_signal_is_left_out_and_comes_back(signal: str) -> None:
    before, lifted = weights.of(None), updates.lifted
    with kinds.without(signal):
        assert signal not in weights.of(None).model.weights
        assert (updates.lifted is lifted) is (signal != updates.LATER)
    assert weights.of(None) is before
    assert updates.lifted is lifted


def test_a_signal_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit, match="similarity"), kinds.without("luck"):
        pass


def test_sets_in_one_store_keep_their_names_apart() -> None:
    sets = facts.load([facts.OWN])
    together = facts.joined(sets)
    assert len({memory["id"] for memory in together.memories}) == sum(len(one.memories) for one in sets)
    assert len(together.questions) == sum(len(one.questions) for one in sets)
