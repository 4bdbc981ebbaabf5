"""How few memories are looked at for the most relevant ones. That they are the right ones is in the conformance kit."""

from datetime import timedelta

from recollect.lifecycle.decay import USUAL, Irrelevance
from recollect.stores import fading
from recollect.stores.fading import Fading
from recollect.testing.builders import START, memory, owner, query
from recollect.types import Memory, Sort

ADA = owner("ada")
MANY = [memory(importance=number / 1_000, created_at=START + timedelta(minutes=number)) for number in range(1_000)]
ALIKE = [memory() for _ in range(1_000)]
PAGE = query(ADA, sort=Sort.RELEVANCE, limit=10)


def looked_at(kept: Fading, memories: list[Memory], *, hours: float) -> tuple[list[Memory], int]:
    """The memories that may be on a page so many hours later, and how often one was worked out."""
    order, calls = Irrelevance(START + timedelta(hours=24 + hours), {ADA: USUAL}), []

    def value(one: Memory) -> float:
        calls.append(one.id)
        return order(one)

    return kept.leading(PAGE, memories, order, value)[0], len(calls)


def test_once_all_were_worked_out_it_takes_few() -> None:
    kept = Fading()
    assert looked_at(kept, MANY, hours=0)[1] >= len(MANY)
    for hour in range(1, 48):
        leading, count = looked_at(kept, MANY, hours=hour)
        assert leading[-10:] == MANY[-10:]
        assert count < 100


def test_what_was_changed_is_looked_at_again() -> None:
    kept = Fading()
    looked_at(kept, MANY, hours=0)
    _, usual = looked_at(kept, MANY, hours=0)
    for one in MANY[:5]:
        kept.changed(one.id)
    assert looked_at(kept, MANY, hours=0)[1] == usual + 5


def test_among_equals_the_few_are_not_looked_for_every_time() -> None:
    kept = Fading()
    leading, _ = looked_at(kept, ALIKE, hours=0)
    assert leading == ALIKE
    for _ in range(fading.REST):
        assert looked_at(kept, ALIKE, hours=1) == (ALIKE, len(ALIKE))
    assert looked_at(kept, MANY, hours=1)[1] > len(MANY), "then it is tried again"
    assert looked_at(kept, MANY, hours=1)[1] < 100
