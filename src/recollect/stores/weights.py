"""What the memories of owners weigh in bytes, without weighing all of them again at every write."""

from collections.abc import Callable

from recollect.types import Owner


class Weights:
    """Totals by owner. A memory is weighed when its owner's total is asked for, and again only if it changed.

    >>> from recollect.types import Layer
    >>> ada, kept = Owner(Layer.USER, ("ada",)), {"a": 3, "b": 4}
    >>> weights = Weights()
    >>> weights.changed(ada, "a", "b")
    >>> weights.total(ada, kept.__getitem__)
    7
    >>> kept["a"] = 5; weights.changed(ada, "a")
    >>> weights.total(ada, kept.__getitem__)
    9
    """

    def __init__(self) -> None:
        self._changed: dict[Owner, set[str]] = {}
        self._totals: dict[Owner, int] = {}
        self._weighed: dict[str, int] = {}

    def changed(self, owner: Owner, *ids: str) -> None:
        """Say that memories came, or may weigh something else now."""
        self._changed.setdefault(owner, set()).update(ids)

    def total(self, owner: Owner, weigh: Callable[[str], int]) -> int:
        """What all memories of an owner weigh; those that changed are weighed now."""
        total, changed = self._totals.get(owner, 0), self._changed.pop(owner, ())
        for memory_id in changed:
            weight = weigh(memory_id)
            total += weight - self._weighed.get(memory_id, 0)
            self._weighed[memory_id] = weight
        if changed:
            self._totals[owner] = total
        return total
