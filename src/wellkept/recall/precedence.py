"""Precedence: what a more specific layer says overrides what a less specific one answers to the same question."""

from collections.abc import Sequence

from wellkept.recall import conflicts
from wellkept.recall.duplicates import Found
from wellkept.types import Layer, MemoryType

_LONGEST = 300  # letters: longer texts say more than one thing
_HAPPENED = frozenset({MemoryType.EVENT, MemoryType.CONVERSATION})


def overriding(found: Sequence[Found], rank: Sequence[Layer], *, keep: bool = False) -> list[Found]:
    """Hits without those that a hit of a more specific layer overrides; that one names them.

    ``rank`` lists the layers, the most specific first. With ``keep``, what is overridden stays and is only named. Hits
    conflict if they have the same key, facts of one subject and predicate have, or if they answer one question
    differently. What is overridden overrides nothing.
    """
    for one in found:
        one.overrides.clear()
    place = {layer: number for number, layer in enumerate(rank)}
    places = [place[one.memory.layer] for one in found]
    if len(set(places)) < 2:
        return list(found)
    said = [_read(one) for one in found]
    gone: set[int] = set()
    for index in sorted(range(len(found)), key=places.__getitem__):
        if index in gone:
            continue
        for other in range(len(found)):
            if places[other] > places[index] and other not in gone and _conflict(found, said, index, other):
                found[index].overrides.append(found[other].memory.id)
                gone.add(other)
    return list(found) if keep else [one for number, one in enumerate(found) if number not in gone]


def _read(one: Found) -> conflicts.Said | None:
    """What a hit says, unless it only tells of what happened, or of many things."""
    memory = one.memory
    if len(memory.content) > _LONGEST or memory.type in _HAPPENED:
        return None
    return conflicts.read(memory.content)


def _conflict(found: Sequence[Found], said: Sequence[conflicts.Said | None], index: int, other: int) -> bool:
    left, right = found[index].memory, found[other].memory
    if left.key is not None and left.key == right.key:
        return True
    ours, theirs = said[index], said[other]
    if ours is None or theirs is None or left.author != right.author:
        return False
    return conflicts.conflicting(ours, theirs)
