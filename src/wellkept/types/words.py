"""``Literal`` types for the values of enumerations, for editors and type checkers.

A type checker rejects ``layer="teem"``; at run time the value is validated as well.
"""

from collections.abc import Iterable
from typing import Literal

from wellkept.types.memory import MemoryType, Tier
from wellkept.types.owners import Layer

LayerName = Literal["agent", "user", "session", "project", "team", "org", "company"]
"""The value of a :class:`wellkept.Layer`."""
MemoryTypeName = Literal["fact", "event", "insight", "preference", "correction", "conversation", "decision", "finding"]
"""The value of a :class:`wellkept.MemoryType`."""
TierName = Literal["session", "episodic", "semantic", "procedural", "personal", "archival"]
"""The value of a :class:`wellkept.types.Tier` of a stored memory."""
SourceTypeName = Literal[
    "conversation", "tool_result", "knowledge_sync", "manual", "import", "web", "extracted", "unknown"
]
"""The value of a :class:`wellkept.types.SourceType`."""
DuplicatesName = Literal["merge", "keep", "refuse"]
"""The value of a :class:`wellkept.types.Duplicates`."""
PointerTypeName = Literal["adr", "policy", "pattern", "spec"]
"""The value of a :class:`wellkept.types.PointerType`."""
SortName = Literal["newest", "oldest", "important", "recently_accessed", "most_accessed", "relevance"]
"""The value of a :class:`wellkept.types.Sort`."""
RankingName = Literal["best", "similarity", "precedence", "relevance"]
"""The value of a :class:`wellkept.types.Ranking`."""
AccessPolicyName = Literal["private", "restricted", "shared", "organization", "public"]
"""The value of a :class:`wellkept.types.AccessPolicy`."""
DurabilityName = Literal["full", "relaxed"]
"""What an acknowledged write survives: a power loss (``full``), or the end of the process (``relaxed``)."""
EncryptName = Literal["sensitive", "all"]
"""What is encrypted where there is a keyring."""
ExportFormatName = Literal["json", "jsonl", "entries"]
"""The format of an exported session."""
UpkeepJobName = Literal["retention", "consolidation", "session_end", "compaction"]
"""The value of a :class:`wellkept.types.UpkeepJob`."""

Layers = Iterable[Layer | LayerName] | Layer | LayerName
"""One or several layers, as members or values."""
MemoryTypes = Iterable[MemoryType | MemoryTypeName] | MemoryType | MemoryTypeName
"""One or several memory types, as members or values."""
Tiers = Iterable[Tier | TierName] | Tier | TierName
"""One or several tiers, as members or values."""
