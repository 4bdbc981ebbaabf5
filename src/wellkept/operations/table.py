"""The table of verbs: names, summaries, and the modules that define them."""

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from wellkept.operations.verb import Listed, Section, Verb

LISTED = MappingProxyType(
    {
        "add": Listed("Remember something.", Section.REMEMBER, "add"),
        "messages": Listed("Remember a conversation, and what is worth keeping of it.", Section.REMEMBER, "messages"),
        "put": Listed("Change the memory that has a key, or add it.", Section.REMEMBER, "put"),
        "update": Listed("Change a memory; the version before stays in its history.", Section.REMEMBER, "update"),
        "move": Listed("Give a memory to the owner of another layer.", Section.REMEMBER, "move"),
        "forget": Listed("Forget memories, or erase them for good.", Section.REMEMBER, "forget"),
        "restore": Listed("Restore forgotten memories.", Section.REMEMBER, "forget"),
        "undo": Listed("Take back the last write or run.", Section.REMEMBER, "undo"),
        "search": Listed("Find the memories that answer a question best.", Section.RECALL, "search"),
        "list": Listed("Show memories page by page.", Section.RECALL, "list"),
        "show": Listed("Show one memory with all its fields.", Section.RECALL, "show"),
        "count": Listed("Count memories.", Section.RECALL, "count"),
        "context": Listed("Compose a prompt from memories, within a budget of tokens.", Section.RECALL, "prompt"),
        "facts": Listed("Find facts by subject, predicate and object; add them.", Section.RECALL, "facts"),
        "facts.add": Listed("Remember a fact; it supersedes the one before.", Section.RECALL, "facts"),
        "lineage": Listed("Show what a memory replaced, and what replaced it.", Section.LOOK, "facts"),
        "history": Listed("Show every version of a memory.", Section.LOOK, "history"),
        "watch": Listed("Follow changes as they are written.", Section.LOOK, "history"),
        "stats": Listed("Show counts, sizes, types, tags and times of memories.", Section.LOOK, "stats"),
        "decay": Listed("Show how memories fade.", Section.LOOK, "decay"),
        "graph": Listed("Show which memories refer to which.", Section.LOOK, "graph"),
        "sessions": Listed("List sessions; create, show, export, import and delete them.", Section.LOOK, "sessions"),
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
        "sessions.import": Listed("Import a session that was exported.", Section.LOOK, "sessions"),
        "sessions.topics": Listed("Show the tags of all sessions.", Section.LOOK, "session_queries"),
        "sessions.about": Listed("List the sessions about a topic.", Section.LOOK, "session_queries"),
        "sessions.search": Listed("Search in all sessions.", Section.LOOK, "session_queries"),
        "sessions.memories": Listed("Show the memories of all sessions.", Section.LOOK, "session_queries"),
        "compact": Listed("Free space in a session.", Section.KEEP, "compact"),
        "upkeep": Listed("Show how upkeep stands; plan, run and undo it.", Section.KEEP, "upkeep"),
        "upkeep.plan": Listed("Show what a run of upkeep would take.", Section.KEEP, "upkeep"),
        "upkeep.run": Listed("Run a job of upkeep now.", Section.KEEP, "upkeep"),
        "upkeep.runs": Listed("List the last runs of upkeep.", Section.KEEP, "upkeep"),
        "upkeep.undo": Listed("Undo a run of upkeep.", Section.KEEP, "upkeep"),
        "retention": Listed("Show the retention policies; set and clear them.", Section.KEEP, "retention"),
        "retention.set": Listed("Set a retention policy.", Section.KEEP, "retention"),
        "retention.clear": Listed("Remove a retention policy.", Section.KEEP, "retention"),
        "consolidation": Listed("Show when memories that say the same are merged.", Section.KEEP, "policies"),
        "consolidation.set": Listed("Set a consolidation policy.", Section.KEEP, "policies"),
        "consolidation.clear": Listed("Remove a consolidation policy.", Section.KEEP, "policies"),
        "endings": Listed("Show what becomes of sessions that end.", Section.KEEP, "policies"),
        "endings.set": Listed("Set a policy for the end of sessions.", Section.KEEP, "policies"),
        "endings.clear": Listed("Remove a policy for the end of sessions.", Section.KEEP, "policies"),
        "hold": Listed("Hold memories, so that nothing can erase them.", Section.KEEP, "hold"),
        "hold.list": Listed("List the holds.", Section.KEEP, "hold"),
        "hold.release": Listed("Release a hold.", Section.KEEP, "hold"),
        "refresh": Listed("Bring memories that point to files up to date.", Section.KEEP, "refresh"),
        "quarantine": Listed("Take what came from a source out of recall; decide on it.", Section.KEEP, "quarantine"),
        "quarantine.plan": Listed("Show what a quarantine would take.", Section.KEEP, "quarantine"),
        "quarantine.release": Listed("Bring back what a quarantine took.", Section.KEEP, "quarantine"),
        "quarantine.erase": Listed("Erase what a quarantine took.", Section.KEEP, "quarantine"),
        "keys": Listed("List API keys; create and revoke them.", Section.KEEP, "api_keys"),
        "keys.list": Listed("List API keys.", Section.KEEP, "api_keys"),
        "keys.create": Listed("Create an API key; its token is shown once.", Section.KEEP, "api_keys"),
        "keys.revoke": Listed("Revoke an API key.", Section.KEEP, "api_keys"),
        "owners": Listed("List whose memories there are; export a person.", Section.KEEP, "owners"),
        "owners.export": Listed("Export everything about a person.", Section.KEEP, "owners"),
        "erase": Listed("Erase a person, or memories, with a receipt.", Section.KEEP, "erase"),
        "erase.receipts": Listed("List the receipts of erasures.", Section.KEEP, "erase"),
        "erase.verify": Listed("Verify the receipt of an erasure.", Section.KEEP, "erase"),
        "erase.ledger": Listed("Write the ledger of erasures into a file.", Section.KEEP, "erase"),
        "erase.replay": Listed("Erase again what a ledger says was erased.", Section.KEEP, "erase"),
        "audit": Listed("Show who did what to which memories; verify the log.", Section.KEEP, "audit"),
        "audit.verify": Listed("Check that no entry of the audit log was altered or removed.", Section.KEEP, "audit"),
        "audit.prune": Listed("Drop old entries of the audit log.", Section.KEEP, "audit"),
        "health": Listed("Check whether the database works now.", Section.KEEP, "maintenance"),
        "doctor": Listed("Check that the database is undamaged, and repair it.", Section.KEEP, "maintenance"),
        "rebuild": Listed("Rebuild everything that is derived from the journal.", Section.KEEP, "maintenance"),
        "scrub": Listed("Remove the bytes of erased memories from a server.", Section.KEEP, "maintenance"),
        "reembed": Listed("Embed memories that have no vector, or all of them anew.", Section.KEEP, "maintenance"),
        "keys.init": Listed("Make the keys that encrypt sensitive memories.", Section.KEEP, "keyring"),
        "keys.check": Listed("Check that all keys fit, and everything opens.", Section.KEEP, "keyring"),
        "keys.rotate": Listed("Rotate the master key, or the data keys.", Section.KEEP, "keyring"),
        "encrypt": Listed("Encrypt memories that were stored before there were keys.", Section.KEEP, "keyring"),
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
        module = importlib.import_module(f"wellkept.operations.{LISTED[name].module}")
        found: Verb[Any, Any] = getattr(module, name.upper().replace(".", "_"))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(LISTED)

    def __len__(self) -> int:
        return len(LISTED)


VERBS: Mapping[str, Verb[Any, Any]] = _Table()
