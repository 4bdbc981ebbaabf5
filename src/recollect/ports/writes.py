"""What a store is given to append."""

from dataclasses import dataclass
from datetime import datetime

from recollect.types import Memory, Operation, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One version to append.

    ``memory`` is the state that the write leaves, with its version: the write is accepted only if the version stored
    now is one less (0: no such id). For ``ERASED`` the content is ignored: the store drops every version of the
    memory and keeps that it was erased. ``keeps_vector`` leaves the stored vector in place; otherwise
    ``vector`` replaces it, ``None`` removing it. ``digest`` is a hash of the text that the vector was made from, where
    making it again would cost something. ``follows`` is for copies from another store, where versions in between may
    be gone: the version that must be stored now, instead of one less.
    """

    operation: Operation
    memory: Memory
    recorded_at: datetime
    reason: str | None = None
    vector: Vector | None = None
    keeps_vector: bool = False
    digest: bytes | None = None
    follows: int | None = None

    @property
    def expected(self) -> int:
        """The version that must be stored now; 0 if none. It is always a lower one: versions rise."""
        before = self.memory.version - 1
        return before if self.follows is None else min(self.follows, before)
