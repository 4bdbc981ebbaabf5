"""That many cases in one test hide no failure."""

import pytest

from tests.support.cases import every_case


def fails(*bad: int, refused: int | None = None) -> None:
    with every_case() as case:
        for number in range(5):
            with case("number", number):
                assert number not in bad
                if number == refused:
                    with pytest.raises(ValueError, match="never"):
                        int(number)


def test_every_case_that_fails_is_named_with_what_was_wrong() -> None:
    fails()
    with pytest.raises(pytest.fail.Exception) as caught:
        fails(1, 3, refused=4)
    summary, *lines = [line for line in str(caught.value).splitlines() if not line.startswith(" ")]
    assert summary == "wrong cases: 3"
    assert [line.split(":")[0] for line in lines] == ["'number' 1", "'number' 3", "'number' 4"]
    assert "AssertionError: assert 1 not in (1, 3)" in lines[0]
    assert "DID NOT RAISE" in lines[2]


def test_what_goes_wrong_outside_a_case_is_raised() -> None:
    def stops() -> None:
        with every_case() as case:
            with case(1):
                raise ValueError
            raise KeyError

    with pytest.raises(KeyError):
        stops()
