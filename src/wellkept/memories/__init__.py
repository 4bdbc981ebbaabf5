"""The surface: ``open``, the database, views, agents and sessions. They put the capabilities together and own no
logic.
"""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.memories.agent import AgentMemory, AgentSnapshot, AgentStats
    from wellkept.memories.api_keys import ApiKeys
    from wellkept.memories.audit import AuditTrail
    from wellkept.memories.database import Memories, open
    from wellkept.memories.encryption import Encryption
    from wellkept.memories.facts import Facts
    from wellkept.memories.privacy import Privacy
    from wellkept.memories.session import Session, SessionPreferences
    from wellkept.memories.sessions import Sessions
    from wellkept.memories.upkeep import Upkeep
    from wellkept.memories.view import View

__all__ = [
    "AgentMemory",
    "AgentSnapshot",
    "AgentStats",
    "ApiKeys",
    "AuditTrail",
    "Encryption",
    "Facts",
    "Memories",
    "Privacy",
    "Session",
    "SessionPreferences",
    "Sessions",
    "Upkeep",
    "View",
    "open",
]

# A part of this package that is imported by itself must not bring in all others: a start would take 60 ms more.
if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "agent": "AgentMemory AgentSnapshot AgentStats",
            "api_keys": "ApiKeys",
            "audit": "AuditTrail",
            "database": "Memories open",
            "encryption": "Encryption",
            "facts": "Facts",
            "privacy": "Privacy",
            "session": "Session SessionPreferences",
            "sessions": "Sessions",
            "upkeep": "Upkeep",
            "view": "View",
        },
    )
