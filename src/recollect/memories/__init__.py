"""The one orchestrator: ``database`` opens, ``view`` is what one identity can do.

``engine`` holds the parts together; ``adding``, ``changing``, ``listing`` and ``searching`` are the verbs of a view;
``drafts`` is what a write leaves, as pure functions; ``converting`` copies one store into another.
"""

from recollect.memories.agent import AgentMemory, AgentSnapshot, AgentStats
from recollect.memories.converting import convert
from recollect.memories.database import Memories, open
from recollect.memories.session import Session, SessionPreferences
from recollect.memories.sessions import Sessions
from recollect.memories.view import View

__all__ = [
    "AgentMemory",
    "AgentSnapshot",
    "AgentStats",
    "Memories",
    "Session",
    "SessionPreferences",
    "Sessions",
    "View",
    "convert",
    "open",
]
