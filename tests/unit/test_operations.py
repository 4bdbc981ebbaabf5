"""What the verbs are made of: the periods of a timeline, and the strict decoding of a field."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import pytest

from wellkept.codec import strict
from wellkept.codec.strict import PayloadMismatch
from wellkept.operations.stats import periods
from wellkept.types.bounds import Bounds, Property

NOW = datetime(2030, 1, 7, tzinfo=UTC)


@pytest.mark.parametrize("days", [0, 0.01, 1, 20, 300, 4_000, 40_000])
def test_the_timeline_holds_both_ends_in_few_equal_periods(days: float) -> None:
    newest = datetime(2150, 6, 1, 9, 30, tzinfo=UTC)
    oldest = newest - timedelta(days=days)
    found = periods(oldest, newest)
    assert 1 <= len(found) <= 30
    assert found[0][0] <= oldest
    assert found[-1][0] <= newest < found[-1][1]
    assert all(end == start for (_, end), (start, _) in pairwise(found))


def test_a_time_or_a_text_in_one_field_is_told_apart() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Place:
        at: datetime | str | None = None

    def describe(kind: type, name: str) -> Property:
        return Property(description="A place.", bounds=Bounds(max_length=40))

    def read(value: Any) -> Any:
        return strict.decode_strictly({"at": value}, Place, describe).at

    assert read("2030-01-07T00:00:00Z") == read(NOW) == NOW
    assert read("1;ada:7") == "1;ada:7"
    assert read(None) is None
    for wrong in ("x" * 41, 7):
        with pytest.raises(PayloadMismatch):
            read(wrong)


def test_a_literal_takes_its_words_alone() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Mode:
        durability: Literal["full", "relaxed"] | None = None

    def describe(kind: type, name: str) -> Property:
        return Property(description="A word.")

    assert strict.decode_strictly({"durability": "full"}, Mode, describe).durability == "full"
    with pytest.raises(PayloadMismatch):
        strict.decode_strictly({"durability": "vague"}, Mode, describe)
