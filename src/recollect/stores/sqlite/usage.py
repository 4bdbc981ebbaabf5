"""What owners' memories take, without adding all of them up at every write.

A figure holds for one place in the journal. From there on, memories that came behind it are added; only if an older
one was changed, by a writer who kept no figure, everything is added up again. The figures are in RAM: nothing is
written to the file for them, and who never has a quota pays nothing.
"""

from collections.abc import Mapping
from typing import NamedTuple

import apsw

from recollect.stores.sqlite import rows
from recollect.types import Owner

# Vectors that came later and repairs change sizes without a version; they count up the generation.
_PLACE = (
    "SELECT coalesce((SELECT max(sequence) FROM journal), 0),"
    f" coalesce((SELECT value FROM settings WHERE name = '{rows.GENERATION}'), '')"
)
_CHANGED = "SELECT EXISTS (SELECT 1 FROM journal WHERE owner = ?1 AND sequence > ?2 AND number <= ?2)"
# The number of a memory is the sequence of its first version.
_BEHIND = "SELECT coalesce(sum(bytes), 0) FROM heads WHERE owner = ? AND number > ?"


class Figure(NamedTuple):
    """What an owner's memories took when the journal was at a sequence, and in which generation."""

    used: int
    sequence: int
    generation: str


Figures = Mapping[Owner, Figure]
"""What is known of owners."""


def measure(connection: apsw.Connection, owners: Mapping[Owner, int], known: Figures) -> dict[Owner, Figure]:
    """What the memories of owners, given with their numbers, take now; the connection must be in a transaction."""
    [(sequence, generation)] = rows.fetch(connection, _PLACE)
    found: dict[Owner, Figure] = {}
    for owner, number in owners.items():
        last = known.get(owner)
        if last is None or not _holds(connection, number, last, generation):
            last = Figure(0, 0, generation)
        behind = connection.execute(_BEHIND, (number, last.sequence)).get
        found[owner] = Figure(last.used + int(behind), sequence, generation)
    return found


def _holds(connection: apsw.Connection, number: int, figure: Figure, generation: str) -> bool:
    if figure.generation != generation:
        return False
    return not connection.execute(_CHANGED, (number, figure.sequence)).get
