"""Tests that ask many cases name every case that fails."""

import pytest

from wellkept.testing.cases import Cases


def some_fail() -> None:
    with Cases() as cases:
        for value in (1, 2, "tea", "\x00"):
            with cases.case(value):
                assert len(str(value)) == value
        with cases.case("nothing is raised"), pytest.raises(KeyError):
            pass
        with cases.case("broken"):
            raise KeyError("lost")


def test_every_case_that_fails_is_named_with_what_was_compared() -> None:
    with pytest.raises(AssertionError) as caught:
        some_fail()
    text = str(caught.value)
    assert text.startswith("5 of 6 cases failed\n")
    for told in ("2: AssertionError", "tea: AssertionError", "'\\x00': AssertionError", "broken: KeyError: 'lost'"):
        assert f"\n{told}" in text
    assert "\nnothing is raised: Failed: DID NOT RAISE" in text
    assert "where 3 = len" in text
    assert "\n1: " not in text


def test_a_test_without_a_case_fails() -> None:
    with pytest.raises(AssertionError, match="no case was asked"), Cases():
        pass


def test_a_skip_ends_the_test() -> None:
    with pytest.raises(pytest.skip.Exception), Cases() as cases, cases.case("one"):
        pytest.skip("nothing to see")


def ends_with(error: BaseException) -> None:
    with Cases() as cases:
        with cases.case("first"):
            assert len("tea") == 4
        raise error


def test_neither_a_skip_nor_an_error_hides_what_failed_before() -> None:
    for error in (pytest.skip.Exception("nothing to see"), KeyError("lost")):
        with pytest.raises(AssertionError, match="first: AssertionError"):
            ends_with(error)
