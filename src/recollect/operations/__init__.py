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
        "add": Listed("Remember something.", Section.REMEMBER, "adding"),
        "update": Listed("Change a memory; the version before stays in its history.", Section.REMEMBER, "updating"),
        "forget": Listed("Forget memories: for a while, or for good.", Section.REMEMBER, "forgetting"),
        "restore": Listed("Bring forgotten memories back.", Section.REMEMBER, "forgetting"),
        "search": Listed("Find the memories that answer a question best.", Section.RECALL, "searching"),
        "list": Listed("Show memories page by page.", Section.RECALL, "listing"),
        "show": Listed("Show one memory with everything that is known of it.", Section.RECALL, "showing"),
        "count": Listed("Count memories.", Section.RECALL, "counting"),
        "context": Listed("Compose what goes into the next call of a language model.", Section.RECALL, "composing"),
        "history": Listed("Show every version of a memory.", Section.LOOK, "looking"),
        "watch": Listed("Follow what is written, as it is written.", Section.LOOK, "looking"),
        "stats": Listed("Show counts, sizes, types, tags and when memories were recorded.", Section.LOOK, "looking"),
        "graph": Listed("Show which memories refer to which.", Section.LOOK, "looking"),
        "sessions": Listed("List sessions; make, show, hand over, delete and search them.", Section.LOOK, "sessions"),
        "sessions.create": Listed("Make a session.", Section.LOOK, "sessions"),
        "sessions.show": Listed("Show what a session holds, prefers and is allowed.", Section.LOOK, "sessions"),
        "sessions.preferences": Listed("Show, set and unset what is preferred.", Section.LOOK, "sessions"),
        "sessions.configure": Listed("Set how a session fades, and its limit.", Section.LOOK, "sessions"),
        "sessions.close": Listed("Note that a session has ended.", Section.LOOK, "sessions"),
        "sessions.reopen": Listed("Go on with a session that was closed.", Section.LOOK, "sessions"),
        "sessions.delete": Listed("Delete a session and forget its memories.", Section.LOOK, "sessions"),
        "sessions.restore": Listed("Bring a deleted session back.", Section.LOOK, "sessions"),
        "sessions.export": Listed("Hand over all that is kept of a session.", Section.LOOK, "sessions"),
        "sessions.topics": Listed("Show the tags of all sessions.", Section.LOOK, "across"),
        "sessions.about": Listed("List the sessions about a topic.", Section.LOOK, "across"),
        "sessions.search": Listed("Search in all sessions.", Section.LOOK, "across"),
        "sessions.memories": Listed("Show the memories of all sessions.", Section.LOOK, "across"),
        "compact": Listed("Make room in a session.", Section.KEEP, "compacting"),
        "health": Listed("Tell whether the database can work now.", Section.KEEP, "keeping"),
        "doctor": Listed("Check that what is stored is what was written.", Section.KEEP, "keeping"),
        "rebuild": Listed("Derive everything but the journal again.", Section.KEEP, "keeping"),
        "reembed": Listed("Give every memory a vector of an embedder.", Section.KEEP, "keeping"),
        "convert": Listed("Copy a database into another, with its history.", Section.KEEP, "converting"),
        "config": Listed("Show or change what the database keeps about itself.", Section.KEEP, "keeping"),
        "config.check": Listed("Check a file of settings.", Section.KEEP, "configuration"),
    }
)
"""Every verb in one line, in the order in which they are shown. A command loads the module of its own verb only.

A name with a dot belongs to a family: `sessions.export` is shown below `sessions`, which is a verb itself.
"""


def family(name: str) -> dict[str, Listed]:
    """The verbs below one, by the last part of their names.

    >>> list(family("sessions"))[:2], family("add")
    (['create', 'show'], {})
    """
    start = f"{name}."
    return {whole.removeprefix(start): listed for whole, listed in LISTED.items() if whole.startswith(start)}


class _Table(Mapping[str, Verb[Any, Any]]):
    """The verbs by name, in the order in which they are listed."""

    def __getitem__(self, name: str) -> Verb[Any, Any]:
        module = importlib.import_module(f"recollect.operations.{LISTED[name].module}")
        found: Verb[Any, Any] = getattr(module, name.upper().replace(".", "_"))
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
    "family",
]
