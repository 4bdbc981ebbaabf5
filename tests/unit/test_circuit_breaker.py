"""The breaker: when an embedder that failed is asked again."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.engine.circuit_breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, CircuitBreaker
from wellkept.testing.builders import START


@pytest.mark.req("H10")
@given(st.lists(st.floats(0, 1_000), max_size=30))
def test_the_breaker_admits_one_call_after_each_growing_pause(waits: list[float]) -> None:
    now, breaker = START, CircuitBreaker()
    assert breaker.admits(now)
    breaker.failed(now)
    pause = FIRST_PAUSE_S
    for wait in waits:
        now += timedelta(seconds=wait)
        due = breaker.remaining_s(now) == 0
        assert breaker.admits(now) is due
        if due:
            assert not breaker.admits(now)
            breaker.failed(now)
            pause = min(2 * pause, LONGEST_PAUSE_S)
            assert breaker.remaining_s(now) == pause
    assert breaker.worked()
    assert breaker.admits(now)
    assert not breaker.open


@pytest.mark.req("H10")
def test_a_clock_that_is_set_back_does_not_keep_the_breaker_open() -> None:
    breaker = CircuitBreaker()
    breaker.failed(START)
    assert breaker.admits(START - timedelta(days=1))
