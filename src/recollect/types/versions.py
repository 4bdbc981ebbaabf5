"""What happened to a memory."""

from dataclasses import dataclass
from datetime import datetime

from recollect.types.memory import Memory, Operation
from recollect.types.owners import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One entry of the journal: a memory as one write left it.

    ``sequence`` orders all versions of a store. ``memory`` is ``None`` once the memory was erased: what remains
    is that it was.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     view = memories.view(user="ada")
    ...     memory = view.add("Lives in Paris")
    ...     _ = view.update(memory.id, content="Lives in Rome")
    ...     [(version.operation.value, version.version) for version in view.history(memory.id)]
    [('added', 1), ('updated', 2)]
    """

    sequence: int
    memory_id: str
    owner: Owner
    version: int
    operation: Operation
    recorded_at: datetime
    reason: str | None = None
    memory: Memory | None = None
