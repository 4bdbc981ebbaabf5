"""The one orchestrator: ``database`` opens, ``view`` is what one identity can do.

``engine`` holds the parts together; ``adding``, ``changing``, ``listing`` and ``searching`` are the verbs of a view;
``drafts`` is what a write leaves, as pure functions; ``converting`` copies one store into another.
"""

from recollect.memories.converting import convert
from recollect.memories.database import Memories, open
from recollect.memories.view import View

__all__ = ["Memories", "View", "convert", "open"]
