"""The table of verbs: names, summaries, and the modules that define them."""

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from recollect.operations.verb import Listed, Section, Verb

LISTED = MappingProxyType(
    {
        "add": Listed("Remember something.", Section.REMEMBER, "add"),
        "update": Listed("Change a memory; the version before stays in its history.", Section.REMEMBER, "update"),
        "forget": Listed("Forget memories, or erase them for good.", Section.REMEMBER, "forget"),
        "restore": Listed("Restore forgotten memories.", Section.REMEMBER, "forget"),
        "search": Listed("Find the memories that answer a question best.", Section.RECALL, "search"),
        "list": Listed("Show memories page by page.", Section.RECALL, "list"),
        "show": Listed("Show one memory with all its fields.", Section.RECALL, "show"),
        "count": Listed("Count memories.", Section.RECALL, "count"),
        "context": Listed("Compose a prompt from memories, within a budget of tokens.", Section.RECALL, "prompt"),
        "history": Listed("Show every version of a memory.", Section.LOOK, "history"),
        "watch": Listed("Follow changes as they are written.", Section.LOOK, "history"),
        "stats": Listed("Show counts, sizes, types, tags and times of memories.", Section.LOOK, "stats"),
        "graph": Listed("Show which memories refer to which.", Section.LOOK, "graph"),
        "sessions": Listed("List sessions; create, show, export, delete and search them.", Section.LOOK, "sessions"),
        "sessions.create": Listed("Create a session.", Section.LOOK, "sessions"),
        "sessions.show": Listed(
            "Show statistics, preferences and configuration of a session.", Section.LOOK, "sessions"
        ),
        "sessions.preferences": Listed("Show, set and remove preferences of a session.", Section.LOOK, "sessions"),
        "sessions.configure": Listed("Configure the decay and the limits of a session.", Section.LOOK, "sessions"),
        "sessions.close": Listed("Close a session.", Section.LOOK, "sessions"),
        "sessions.reopen": Listed("Reopen a closed session.", Section.LOOK, "sessions"),
        "sessions.delete": Listed("Delete a session and forget its memories.", Section.LOOK, "sessions"),
        "sessions.restore": Listed("Restore a deleted session.", Section.LOOK, "sessions"),
        "sessions.export": Listed("Export everything that is stored of a session.", Section.LOOK, "sessions"),
        "sessions.topics": Listed("Show the tags of all sessions.", Section.LOOK, "session_queries"),
        "sessions.about": Listed("List the sessions about a topic.", Section.LOOK, "session_queries"),
        "sessions.search": Listed("Search in all sessions.", Section.LOOK, "session_queries"),
        "sessions.memories": Listed("Show the memories of all sessions.", Section.LOOK, "session_queries"),
        "compact": Listed("Free space in a session.", Section.KEEP, "compact"),
        "health": Listed("Check whether the database works now.", Section.KEEP, "maintenance"),
        "doctor": Listed("Check that the database is undamaged, and repair it.", Section.KEEP, "maintenance"),
        "rebuild": Listed("Rebuild everything that is derived from the journal.", Section.KEEP, "maintenance"),
        "reembed": Listed("Embed memories that have no vector, or all of them anew.", Section.KEEP, "maintenance"),
        "convert": Listed("Copy a database into another, with its history.", Section.KEEP, "convert"),
        "migrate": Listed("Take a database to another schema.", Section.KEEP, "migrate"),
        "config": Listed("Show or change the settings that the database stores.", Section.KEEP, "maintenance"),
        "config.check": Listed("Check a file of settings.", Section.KEEP, "configuration"),
    }
)
"""Every verb in one line, in the order in which they are shown. A command loads only the module of its own verb.

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
