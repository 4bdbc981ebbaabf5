"""The same engine for async code: ``async with recollect.aio.open(...)``.

``database`` opens; ``view``, ``sessions`` and ``agent`` are the async classes, made by ``facade`` of the synchronous
ones. ``workers`` are the threads, ``mailbox`` is the way back from them; ``parts`` and ``handlers`` are the coroutines
that the engine calls; ``following`` is the feed.
"""

from recollect.aio.agent import AgentMemory, ContextWindow
from recollect.aio.database import Memories, Opening, open
from recollect.aio.following import Changes
from recollect.aio.parts import AsyncEmbedder, AsyncReranker
from recollect.aio.sessions import Session, SessionPreferences, Sessions
from recollect.aio.view import View

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
