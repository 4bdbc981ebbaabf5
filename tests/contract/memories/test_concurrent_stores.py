"""Many threads that store at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import wellkept
from wellkept.embedders.hashing import HashingEmbedder

THREADS = 100


@pytest.mark.req("L15")
def test_a_hundred_stores_at_once_are_all_kept_and_embedded(tmp_path: Path) -> None:
    start = Barrier(THREADS)
    with (
        wellkept.open(tmp_path / "memory.db", embedder=HashingEmbedder(16)) as memories,
        ThreadPoolExecutor(THREADS) as threads,
    ):

        def store(number: int) -> str:
            view = memories.view(user="ada")
            start.wait(timeout=60)
            return view.add(f"Note {number}").id

        ids = list(threads.map(store, range(THREADS)))
        view = memories.view(user="ada")
        assert {memory.id for memory in view.list(limit=100)} == set(ids)
        assert (len(set(ids)), view.count()) == (THREADS, THREADS)
        stored = view.get_many(ids, include_vector=True).values()
        assert [memory.content for memory in stored if memory.vector is None] == []
        assert view.stats().embeddings_made == THREADS
