"""Holds that are placed while something else is being done."""

from __future__ import annotations

from typing import Any

import pytest

from wellkept import Memories, View
from wellkept.engine import holds
from wellkept.errors import Held
from wellkept.types import Filter

LEGAL = Filter(tags=["legal"])


@pytest.mark.req("P4")
def test_a_hold_that_is_placed_during_an_erasure_wins(
    memories: Memories, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = view.add("Signed the contract", tags=["legal"])
    real = holds.check
    placed: list[Any] = []

    def check(*given: Any, **more: Any) -> Any:
        found = real(*given, **more)
        if not placed:
            placed.append(memories.upkeep.hold(LEGAL, reason="at the last moment"))
        return found

    monkeypatch.setattr(holds, "check", check)
    with pytest.raises(Held):
        view.forget(memory.id, permanent=True)
    assert view.get(memory.id) is not None


def test_two_administrators_do_not_overwrite_each_other(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    real = holds.read
    others: list[int] = []

    def read(engine: Any) -> Any:
        found = real(engine)
        if not others:
            others.append(1)
            monkeypatch.setattr(holds, "read", real)
            memories.upkeep.hold(Filter(), reason="second")
        return found

    monkeypatch.setattr(holds, "read", read)
    memories.upkeep.hold(LEGAL, reason="first")
    assert {one.reason for one in memories.upkeep.holds()} == {"first", "second"}
