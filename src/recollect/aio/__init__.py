"""The same engine for async code: ``async with recollect.aio.open(...)``.

``database`` opens; ``views`` and ``agent`` are the async classes, which ``facade`` makes of the synchronous ones, one
line per method. ``workers`` is the thread pool, ``coroutines`` are those of the caller that the engine calls, and
``changes`` is the feed.
"""

from recollect.aio.agent import AgentMemory, ContextWindow
from recollect.aio.api_keys import ApiKeys
from recollect.aio.changes import Changes
from recollect.aio.coroutines import AsyncEmbedder, AsyncReranker
from recollect.aio.database import Memories, Opening, open
from recollect.aio.encryption import Encryption
from recollect.aio.privacy import AuditTrail, Privacy
from recollect.aio.upkeep import Upkeep
from recollect.aio.views import Session, SessionPreferences, Sessions, View

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
