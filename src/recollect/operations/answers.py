"""What verbs answer, where the engine has no value for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recollect.types import Memory, MemoryType, Stats, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The memories as they were stored, in the order given."""

    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions, the oldest first. ``last`` is the sequence to go on from; what was given if there are none."""

    versions: tuple[Version, ...]
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many there are."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ids that were forgotten (or would be: ``dry_run``), and those where there was nothing to forget."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    permanent: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The ids that are back, and those where nothing was forgotten."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as the clients of language models take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A memory that stayed out of a prompt, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes into the next call of a language model, and what it takes of the budget."""

    text: str
    messages: tuple[Message, ...]
    budget_tokens: int
    total_tokens: int
    tokens_by_part: Mapping[str, int] = field(default_factory=dict)
    included: tuple[str, ...] = ()
    left_out: tuple[Omitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """How many memories were recorded from ``start`` until ``end``."""

    start: datetime
    end: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of a view, and when its memories were recorded."""

    stats: Stats
    timeline: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory in a graph."""

    id: str
    label: str
    type: MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A reference from one memory to another."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and the references between them. ``complete`` is false if there were more than asked for."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reembedded:
    """How many memories got a vector, and of which embedder."""

    embedded: int
    embedder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the database keeps about itself."""

    settings: Mapping[str, str] = field(default_factory=dict)
