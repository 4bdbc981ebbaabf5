"""What only the inside of working memory can bring about."""

import pytest

from tests.support.stand_ins import HandClock
from wellkept.errors import InvalidInput
from wellkept.working import WorkingMemory


@pytest.mark.req("W2")
def test_what_is_nested_too_deeply_to_be_read_says_so(clock: HandClock) -> None:
    working = WorkingMemory("debugger", clock=clock)
    working.set("deep", [])
    # As if it had been set from a place where the stack was nearly empty.
    working._slots["deep"].content = b"[" * 100_000 + b"]" * 100_000
    for kind in (None, list[object]):
        with pytest.raises(InvalidInput, match="'deep' is nested too deeply"):
            working.get("deep", type=kind)
