"""The same engine for async code: ``async with wellkept.aio.open(...)``.

``database`` opens; ``views`` and ``agent`` are the async classes, which ``facade`` makes of the synchronous ones, one
line per method. ``workers`` is the thread pool, ``coroutines`` are those of the caller that the engine calls, and
``changes`` is the feed.
"""

from wellkept.aio.agent import AgentMemory, ContextWindow
from wellkept.aio.api_keys import ApiKeys
from wellkept.aio.changes import Changes
from wellkept.aio.coroutines import AsyncEmbedder, AsyncReranker
from wellkept.aio.database import Memories, Opening, open
from wellkept.aio.encryption import Encryption
from wellkept.aio.privacy import AuditTrail, Privacy
from wellkept.aio.upkeep import Upkeep
from wellkept.aio.views import Session, SessionPreferences, Sessions, View

__all__ = [
    "AgentMemory",
    "ApiKeys",
    "AsyncEmbedder",
    "AsyncReranker",
    "AuditTrail",
    "Changes",
    "ContextWindow",
    "Encryption",
    "Memories",
    "Opening",
    "Privacy",
    "Session",
    "SessionPreferences",
    "Sessions",
    "Upkeep",
    "View",
    "open",
]
