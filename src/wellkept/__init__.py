"""Wellkept: the memory engine for AI agents. One embedded file, no server, no network, no LLM.

>>> import wellkept
>>> with wellkept.open("ram:") as memories:
...     ada = memories.view(user="ada")
...     _ = ada.add("Prefers dark mode", type="preference")
...     [hit.memory.content for hit in ada.search("dark mode")]
['Prefers dark mode']

The names here are what a program needs on its first day. The rest has a home of its own: values in ``types``, errors
in ``errors``, events in ``events``, what a store or an embedder must be in ``ports``, plans in ``entitlements``,
sessions and agents in ``memories``, the same for async code in ``aio``, the kit for authors of stores in ``testing``,
which needs the extra of that name. All of them are attributes of the package, and so is every other name that a guide
writes, such as ``wellkept.text.tokens.bpe_counter``: ``import wellkept`` is enough.
"""

from typing import TYPE_CHECKING

from wellkept import errors, exports
from wellkept.errors import WellkeptError

if TYPE_CHECKING:
    from wellkept import aio, events, ports, types
    from wellkept import embedders as embedders
    from wellkept import entitlements as entitlements
    from wellkept import indexes as indexes
    from wellkept import keyrings as keyrings
    from wellkept import layers as layers
    from wellkept import logs as logs
    from wellkept import memories as memories
    from wellkept import operations as operations
    from wellkept import recall as recall
    from wellkept import rerankers as rerankers
    from wellkept import settings as settings
    from wellkept import statistics as statistics
    from wellkept import stores as stores
    from wellkept import telemetry as telemetry
    from wellkept import testing as testing
    from wellkept import text as text
    from wellkept import transfer as transfer
    from wellkept import window as window
    from wellkept import working as working
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
            "": "aio embedders entitlements events indexes keyrings layers logs memories operations ports recall "
            "rerankers settings statistics stores telemetry testing text transfer types window working",
            "memories.agent": "AgentMemory",
            "transfer.conversion": "convert",
            "memories.database": "Memories open",
            "memories.view": "View",
            "types": "Filter Hit Identity Layer Memory MemoryType NewMemory Results",
        },
        extra="testing",
    )
