"""Whether two memories answer one question differently, on labelled pairs."""

import pytest

from tests.unit.conflicting_pairs import CONFLICTS, HELD_OUT_CONFLICTS, HELD_OUT_LOOK_ALIKES, LOOK_ALIKES
from wellkept.recall.conflicts import conflicting, read
from wellkept.testing.cases import Cases

Pairs = tuple[tuple[str, str], ...]
EVERY = (*CONFLICTS, *LOOK_ALIKES, *HELD_OUT_CONFLICTS, *HELD_OUT_LOOK_ALIKES)


def found(pairs: Pairs) -> int:
    return sum(conflicting(read(left), read(right)) for left, right in pairs)


@pytest.mark.req("H4")
@pytest.mark.parametrize(
    ("conflicts", "others"),
    [(CONFLICTS, LOOK_ALIKES), (HELD_OUT_CONFLICTS, HELD_OUT_LOOK_ALIKES)],
    ids=["fitted", "held out"],
)
def test_precision_and_recall_are_those_of_the_guide(conflicts: Pairs, others: Pairs) -> None:
    right, wrong = found(conflicts), found(others)
    assert right / (right + wrong) >= 0.95
    assert right / len(conflicts) >= 0.8


def test_there_are_enough_pairs_and_each_once() -> None:
    assert len(set(CONFLICTS)) == len(set(LOOK_ALIKES)) == 60
    assert len(set(EVERY)) == 160


def test_both_sides_say_the_same_and_nothing_conflicts_with_itself() -> None:
    with Cases() as cases:
        for pair in EVERY:
            with cases.case(pair):
                left, right = map(read, pair)
                assert conflicting(left, right) == conflicting(right, left)
                assert not conflicting(left, left)


def test_any_text_can_be_read() -> None:
    with Cases() as cases:
        for text in ("", "!?", "use", "Use for", "is", "not", "\u4f60\u597d", "a " * 100):
            with cases.case(text):
                assert not conflicting(read(text), read(text))
