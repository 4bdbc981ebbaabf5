"""What the entries of working memory take."""

from __future__ import annotations

import tracemalloc

import pytest

import wellkept


@pytest.mark.req("W8")
def test_ten_thousand_entries_take_less_than_100_mb() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        working = memories.agent("debugger").working
        tracemalloc.start()
        try:
            for number in range(10_000):
                working.set(f"key {number}", {"text": "x" * 200, "step": number})
            held_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(working) == 10_000
        assert held_bytes < 100_000_000
