"""The fields of a memory that both ``add`` and ``update`` take."""

from dataclasses import dataclass
from datetime import datetime

from wellkept.operations.verb import group, memory_field, option
from wellkept.types import AccessPolicy, KnowledgePointer, Source, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalFields:
    """Fields that a memory may have; the table of fields declares them, and a test holds the types to it."""

    tier: Tier | None = memory_field("tier")
    title: str | None = memory_field("title")
    description: str | None = memory_field("description")
    author: str | None = memory_field("author")
    role: str | None = memory_field("role")
    language: str | None = memory_field("language")
    type_name: str | None = memory_field("type_name")
    occurred_at: datetime | None = memory_field("occurred_at")
    expires_at: datetime | None = memory_field("expires_at")
    confidence: float | None = memory_field("confidence")
    relevance: float | None = memory_field("relevance")
    decay_factor: float | None = memory_field("decay_factor")
    sensitive: bool | None = memory_field("sensitive")
    source: Source | None = group("Where the memory came from.")
    pointer: KnowledgePointer | None = memory_field("pointer")
    trust: float | None = memory_field("trust")
    access_policy: AccessPolicy | None = memory_field("access_policy")
    dangling: bool = option("Accept references to memories that do not exist or are not visible.", False)
