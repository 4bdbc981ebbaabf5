"""Recollect: the memory engine for AI agents. One embedded file, no server, no network, no LLM.

>>> import recollect
>>> with recollect.open("ram:") as memories:
...     ada = memories.view(user="ada")
...     _ = ada.add("Prefers dark mode", type="preference")
...     [hit.memory.content for hit in ada.search("dark mode")]
['Prefers dark mode']

The names here are what a program needs on its first day. The rest has a home of its own: values in ``types``, errors
in ``errors``, events in ``events``, what a store or an embedder must be in ``ports``, plans in ``entitlements``,
sessions and agents in ``memories``, the same for async code in ``aio``, the kit for authors of stores in ``testing``.
All of them are attributes of the package: ``import recollect`` is enough.
"""

from typing import TYPE_CHECKING

from recollect import errors, exports
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from recollect import aio, events, ports, types
    from recollect import entitlements as entitlements
    from recollect import memories as memories
    from recollect import testing as testing
    from recollect.memories.agent import AgentMemory
    from recollect.memories.database import Memories, open
    from recollect.memories.view import View
    from recollect.transfer.conversion import convert
    from recollect.types import Filter, Hit, Identity, Layer, Memory, MemoryType, NewMemory, Results

__version__ = "0.1.0"

__all__ = [
    "AgentMemory",
    "Filter",
    "Hit",
    "Identity",
    "Layer",
    "Memories",
    "Memory",
    "MemoryType",
    "NewMemory",
    "RecollectError",
    "Results",
    "View",
    "__version__",
    "aio",
    "convert",
    "errors",
    "events",
    "open",
    "ports",
    "types",
]


# The engine brings in numpy and the driver of SQLite: it is imported when it is first used.
if not TYPE_CHECKING:  # a type checker sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "": "aio entitlements events memories ports testing types",
            "memories.agent": "AgentMemory",
            "transfer.conversion": "convert",
            "memories.database": "Memories open",
            "memories.view": "View",
            "types": "Filter Hit Identity Layer Memory MemoryType NewMemory Results",
        },
    )
