"""Verbose metadata: the first that old memories can do without when a session is full."""

from collections.abc import Mapping
from typing import Any

from wellkept import codec
from wellkept.types import Memory

VERBOSE = 200
"""The bytes from which on a value of the metadata is verbose, as JSON."""

FADED = 0.5
"""Below this decay factor a memory is old: it is older than its half-life."""


def terse(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Metadata without its verbose values, and the bytes that these take.

    >>> terse({"page": 3, "log": "x" * 500})
    ({'page': 3}, 509)
    """
    kept = {name: value for name, value in metadata.items() if len(codec.encode_json(value)) < VERBOSE}
    return kept, len(codec.encode_json(metadata)) - len(codec.encode_json(kept))


def freed(memory: Memory, decay_factor: float) -> int:
    """How many bytes a memory could do without: none unless it is old."""
    return terse(memory.metadata)[1] if memory.metadata and decay_factor < FADED else 0
