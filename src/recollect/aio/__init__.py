"""The same engine for async code: ``async with recollect.aio.open(...)``.

``database`` opens; ``views`` and ``agent`` are the async classes, which ``facade`` makes of the synchronous ones, one
line per method. ``workers`` is the thread pool, ``coroutines`` are those of the caller that the engine calls, and
``changes`` is the feed.
"""

from recollect.aio.agent import AgentMemory, ContextWindow
from recollect.aio.changes import Changes
from recollect.aio.coroutines import AsyncEmbedder, AsyncReranker
from recollect.aio.database import Memories, Opening, open
from recollect.aio.views import Session, SessionPreferences, Sessions, View

__all__ = [
    "AgentMemory",
    "AsyncEmbedder",
    "AsyncReranker",
    "Changes",
    "ContextWindow",
    "Memories",
    "Opening",
    "Session",
    "SessionPreferences",
    "Sessions",
    "View",
    "open",
]
