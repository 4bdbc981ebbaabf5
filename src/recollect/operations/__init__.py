"""The table of verbs: each exists once, and every surface derives from it.

To add a verb: write its input (a frozen dataclass whose fields are made by ``option`` and ``argument``), its answer
(a value of the engine, or one of its own), a function that runs it, and its ``Verb``, a constant of its name, in one of
the modules here; then enter it below. The command line, its help, completion and documentation follow by themselves.
"""

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from recollect.operations.failures import EXIT_CODES, FAILURES, Failure, failure_of
from recollect.operations.verb import (
    EVERYWHERE,
    Asked,
    Caller,
    Example,
    Listed,
    Needs,
    Progress,
    Section,
    Takes,
    Verb,
    asked,
)

LISTED = MappingProxyType(
    {
        "add": Listed("Remember something.", Section.REMEMBER, "writing"),
        "update": Listed("Change a memory; the version before stays in its history.", Section.REMEMBER, "writing"),
        "forget": Listed("Forget memories: for a while, or for good.", Section.REMEMBER, "writing"),
        "restore": Listed("Bring forgotten memories back.", Section.REMEMBER, "writing"),
        "search": Listed("Find the memories that answer a question best.", Section.RECALL, "recalling"),
        "list": Listed("Show memories page by page.", Section.RECALL, "recalling"),
        "show": Listed("Show one memory with everything that is known of it.", Section.RECALL, "recalling"),
        "count": Listed("Count memories.", Section.RECALL, "recalling"),
        "context": Listed("Compose what goes into the next call of a language model.", Section.RECALL, "recalling"),
        "history": Listed("Show every version of a memory.", Section.LOOK, "looking"),
        "watch": Listed("Follow what is written, as it is written.", Section.LOOK, "looking"),
        "stats": Listed("Show counts, sizes, types, tags and when memories were recorded.", Section.LOOK, "looking"),
        "graph": Listed("Show which memories refer to which.", Section.LOOK, "looking"),
        "health": Listed("Tell whether the database can work now.", Section.KEEP, "keeping"),
        "doctor": Listed("Check that what is stored is what was written.", Section.KEEP, "keeping"),
        "rebuild": Listed("Derive everything but the journal again.", Section.KEEP, "keeping"),
        "reembed": Listed("Give every memory a vector of an embedder.", Section.KEEP, "keeping"),
        "config": Listed("Show or change what the database keeps about itself.", Section.KEEP, "keeping"),
    }
)
"""Every verb in one line, in the order in which they are shown. A command loads the module of its own verb only."""


class _Table(Mapping[str, Verb[Any, Any]]):
    """The verbs by name, in the order in which they are listed."""

    def __getitem__(self, name: str) -> Verb[Any, Any]:
        module = importlib.import_module(f"recollect.operations.{LISTED[name].module}")
        found: Verb[Any, Any] = getattr(module, name.upper())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(LISTED)

    def __len__(self) -> int:
        return len(LISTED)


VERBS: Mapping[str, Verb[Any, Any]] = _Table()

__all__ = [
    "EVERYWHERE",
    "EXIT_CODES",
    "FAILURES",
    "LISTED",
    "VERBS",
    "Asked",
    "Caller",
    "Example",
    "Failure",
    "Listed",
    "Needs",
    "Progress",
    "Section",
    "Takes",
    "Verb",
    "asked",
    "failure_of",
]
