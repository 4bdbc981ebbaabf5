"""Searching without an index that lasts: it is made for one search from the memories themselves. Slow, but right."""

from collections.abc import Iterable

import numpy as np

from recollect import codec, filters
from recollect.filters import Where
from recollect.recall.columns import Array
from recollect.recall.entries import entry_of
from recollect.recall.index import Index
from recollect.recall.parts import Part
from recollect.recall.probes import Candidates, Probe
from recollect.recall.search import candidates
from recollect.text import words
from recollect.types import Memory, Owner, State


def search(memories: Iterable[tuple[int, Memory]], where: Where, probe: Probe) -> Candidates:
    """The candidates among memories given with their numbers. Others than those let through count in the statistics."""
    owned: dict[Owner, list[tuple[int, Memory]]] = {}
    for number, memory in memories:
        if where.include_forgotten or memory.state is State.ACTIVE:
            owned.setdefault(memory.owner, []).append((number, memory))
    stored = {
        number: memory.vector.data for some in owned.values() for number, memory in some if memory.vector is not None
    }
    now = float("-inf") if where.include_forgotten else codec.to_micros(where.now) / 1e6
    parts = [_part(some, where, probe) for some in owned.values()]

    def exact(numbers: Array) -> list[bytes]:
        return [stored[number] for number in numbers.tolist()]

    return candidates(parts, probe, now, exact)


def _part(memories: list[tuple[int, Memory]], where: Where, probe: Probe) -> Part:
    dimension = next((memory.vector.dimension for _, memory in memories if memory.vector is not None), 0)
    index = Index(dimension)
    index.add(entry_of(number, memory) for number, memory in memories)
    index.settle()
    wild = [_numbers(one for one, memory in memories if begins(memory, prefix)) for prefix in probe.asked.prefixes]
    matches = filters.matching(where)
    allowed = _numbers(number for number, memory in memories if matches(memory))
    return Part(index=index, allowed=allowed, wild=wild)


def begins(memory: Memory, prefix: str) -> bool:
    """Whether a word of the memory begins so."""
    text = words.searchable(memory.content, memory.title, memory.author)
    return any(word.startswith(prefix) for word in words.words(text))


def _numbers(found: Iterable[int]) -> Array:
    return np.fromiter(found, np.int64)
