"""Wellkept: the memory engine for AI agents. One embedded file, no server, no network, no LLM.

>>> import wellkept
>>> with wellkept.open("ram:") as memories:
...     ada = memories.view(user="ada")
...     _ = ada.add("Prefers dark mode", type="preference")
...     [hit.memory.content for hit in ada.search("dark mode")]
['Prefers dark mode']

The names here are what a program needs on its first day. The rest has a home of its own: values in ``types``, errors
in ``errors``, events in ``events``, what a store or an embedder must be in ``ports``, plans in ``entitlements``,
sessions and agents in ``memories``, the same for async code in ``aio``, the kit for authors of stores in ``testing``.
All of them are attributes of the package: ``import wellkept`` is enough.
"""

from typing import TYPE_CHECKING

from wellkept import errors, exports
from wellkept.errors import WellkeptError

if TYPE_CHECKING:
    from wellkept import aio, events, ports, types
    from wellkept import entitlements as entitlements
    from wellkept import memories as memories
    from wellkept import testing as testing
    from wellkept.memories.agent import AgentMemory
    from wellkept.memories.database import Memories, open
    from wellkept.memories.view import View
    from wellkept.transfer.conversion import convert
    from wellkept.types import Filter, Hit, Identity, Layer, Memory, MemoryType, NewMemory, Results

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
    "Results",
    "View",
    "WellkeptError",
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
