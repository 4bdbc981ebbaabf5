"""What the engine's methods take, the verbs take: a parameter without a field has a reason here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import wellkept
from wellkept.cli.parameters import kind_of
from wellkept.memories.api_keys import ApiKeys
from wellkept.memories.audit import AuditTrail
from wellkept.memories.encryption import Encryption
from wellkept.memories.facts import Facts
from wellkept.memories.privacy import Privacy
from wellkept.memories.session import Session, SessionPreferences
from wellkept.memories.sessions import Sessions
from wellkept.memories.upkeep import Upkeep
from wellkept.operations import VERBS
from wellkept.operations.sessions import Form
from wellkept.sessions.export import Format
from wellkept.settings import Settings, declared
from wellkept.transfer.migration import migrate
from wellkept.types import ChangedFields, DecayPolicy, Filter, NewMemory, SessionConfig
from wellkept.window import ContextWindow

EMBEDS_ITSELF = "who makes vectors uses the library"
FUNCTION = "a function of the program's own"
FROM_IDENTITY = "follows from the identity"
IDS = ("agent", "user", "session", "project", "team", "org", "company")
# Each method, the verb that calls it, and of its parameters those that are called otherwise, or why they are missing.
METHODS: list[tuple[Callable[..., Any], str, dict[str, str]]] = [
    (wellkept.View.search, "search", {"min_trust": "a condition of its filter"}),
    (wellkept.View.list, "list", {"keys": "the condition keyed of its filter"}),
    (wellkept.View.count, "count", {}),
    (wellkept.View.get, "show", {}),
    (wellkept.View.forget_many, "forget", {}),
    (wellkept.View.forget, "forget", {"id": "ids"}),
    (wellkept.View.restore, "restore", {"id": "ids"}),
    (wellkept.View.history, "history", {}),
    (wellkept.View.changes, "watch", {}),
    (wellkept.View.stats, "stats", {}),
    (wellkept.View.update, "update", {"vector": EMBEDS_ITSELF, "changes": "compared with ChangedFields"}),
    (wellkept.View.lineage, "lineage", {}),
    (wellkept.View.move, "move", {}),
    (wellkept.View.refresh, "refresh", {}),
    (wellkept.View.add_messages, "messages", {"extract": "a function, which a command line does not have"}),
    (wellkept.View.undo, "undo", {}),
    (wellkept.View.undoable, "undo", {}),
    (wellkept.View.plan_quarantine, "quarantine.plan", {}),
    (wellkept.View.quarantine, "quarantine", {"plan": "quarantine.plan shows it, and a plan is no text"}),
    (wellkept.View.release, "quarantine.release", {"run_id": "id"}),
    (wellkept.View.erase_quarantined, "quarantine.erase", {"run_id": "id"}),
    (Facts.find, "facts", {}),
    (Facts.add, "facts.add", {}),
    (wellkept.View.put, "put", {"fields": "compared with NewMemory"}),
    (wellkept.View.add_many, "add", {"items": "compared with NewMemory"}),
    (wellkept.Memories.doctor, "doctor", {}),
    (wellkept.Memories.configure, "config", {}),
    (wellkept.Memories.reembed, "reembed", {"progress": "the caller's"}),
    (Upkeep.plan, "upkeep.plan", {"owner": "layer", "summariser": FUNCTION, "progress": "the caller's"}),
    (Upkeep.run, "upkeep.run", {"owner": "layer", "summariser": FUNCTION, "progress": "the caller's"}),
    (wellkept.convert, "convert", {"progress": "the caller's"}),
    (migrate, "migrate", {"database": "file"}),
    (
        ContextWindow.compose,
        "context",
        {
            "now": "the clock of the surface",
            "recalled": "who has memories of elsewhere uses the library",
            "recalled_share": "shares out what turns and memories take, and there are no turns",
            "min_priority": "a matter of turns",
        },
    ),
    (wellkept.Memories.owners, "owners", dict.fromkeys(IDS, FROM_IDENTITY)),
    (Privacy.erase, "erase", {**dict.fromkeys(IDS, FROM_IDENTITY), "scrub": "leave_bytes"}),
    (Privacy.plan, "erase", dict.fromkeys(IDS, FROM_IDENTITY)),
    (Privacy.verify, "erase.verify", {}),
    (Privacy.export_ledger, "erase.ledger", {}),
    (Privacy.replay, "erase.replay", {}),
    (Privacy.export, "owners.export", {"user": FROM_IDENTITY}),
    (AuditTrail.list, "audit", {"user": "who"}),
    (AuditTrail.verify, "audit.verify", {}),
    (AuditTrail.prune, "audit.prune", {}),
    (ApiKeys.create, "keys.create", {}),
    (ApiKeys.revoke, "keys.revoke", {}),
    (Encryption.init, "keys.init", {}),
    (Encryption.check, "keys.check", {"recovery_code": "recovery", "progress": "shown by the surface"}),
    (Encryption.rotate, "keys.rotate", {"progress": "shown by the surface"}),
    (Encryption.encrypt, "encrypt", {"progress": "shown by the surface"}),
    (Sessions.create, "sessions.create", {"config": "compared with SessionConfig"}),
    (Sessions.load, "sessions.show", {}),
    (Sessions.list, "sessions", {}),
    (Sessions.delete, "sessions.delete", {}),
    (Sessions.restore, "sessions.restore", {}),
    (Sessions.import_session, "sessions.import", {}),
    (Sessions.search, "sessions.search", {}),
    (Sessions.list_memories, "sessions.memories", {}),
    (Sessions.sessions_about, "sessions.about", {}),
    (Sessions.compact, "compact", {}),
    (Session.configure, "sessions.configure", {"config": "compared with SessionConfig"}),
    (Session.export, "sessions.export", {"format": "form"}),
    (SessionPreferences.merge, "sessions.preferences", {"values": "set"}),
    (SessionPreferences.remove, "sessions.preferences", {"name": "unset"}),
]


def fields_of(verb: str) -> set[str]:
    return {one.name for one in VERBS[verb].fields}


@pytest.mark.req("H3")
@pytest.mark.parametrize(("method", "verb", "other"), METHODS, ids=[method.__qualname__ for method, _, _ in METHODS])
def test_every_parameter_of_a_method_is_a_field_of_its_verb(
    method: Callable[..., Any], verb: str, other: dict[str, str]
) -> None:
    taken = set(inspect.signature(method).parameters) - {"self"}
    assert set(other) <= taken, "it is no parameter any more"
    assert taken - fields_of(verb) - set(other) == set(), f"give {verb} a field for it, or say here why not"


@pytest.mark.parametrize(
    ("names", "verb", "other"),
    [
        (
            {one.name for one in fields(NewMemory)},
            "add",
            {"session": FROM_IDENTITY, "vector": EMBEDS_ITSELF},
        ),
        (set(ChangedFields.__annotations__), "update", {"session": FROM_IDENTITY}),
        ({one.name for one in fields(SessionConfig)}, "sessions.configure", {}),
        ({one.name for one in fields(SessionConfig)}, "sessions.create", {}),
        ({one.name for one in fields(DecayPolicy)}, "sessions.configure", {"enabled": "decay"}),
    ],
)
def test_every_field_of_a_value_is_a_field_of_its_verb(names: set[str], verb: str, other: dict[str, str]) -> None:
    assert set(other) <= names, "it is no field any more"
    assert names - fields_of(verb) - set(other) == set(), f"give {verb} a field for it, or say here why not"


@pytest.mark.parametrize("verb", ["search", "list", "count", "sessions.search", "sessions.memories", "forget"])
def test_the_filter_of_a_verb_is_that_of_the_engine(verb: str) -> None:
    [one] = [one for one in VERBS[verb].fields if one.name == "filter"]
    names = {inner.name for inner in fields(kind_of(one.type).base)}
    states = {"include_forgotten", "include_archived", "include_superseded", "include_quarantined"}
    left_out = states if verb == "forget" else set()  # erasing takes all of them anyway
    assert names == {inner.name for inner in fields(Filter)} - left_out


def test_whatever_a_database_can_be_opened_with_can_be_said_in_a_terminal() -> None:
    elsewhere = {
        "url": "--db",
        "store": "an object of Python",
        "index": "an object of Python",
        "reranker": "an object of Python",
        "clock": "an object of Python",
        "settings": "wellkept.toml and the environment",
        "config": "the nearest wellkept.toml",
    }
    configured = {"embedder": "embedder.name", "plan": "plan.name", "durability": "database.durability"}
    configured |= {"keyring": "encryption.keyring", "encrypt": "encryption.encrypt"}
    elsewhere["retry"] = "the section [retry] of wellkept.toml"
    taken = set(inspect.signature(wellkept.open).parameters)
    assert set(elsewhere) <= taken
    assert taken - set(elsewhere) == set(configured)
    assert set(configured.values()) <= set(declared(Settings))


def test_the_forms_of_an_export_are_those_of_the_engine() -> None:
    assert [one.value for one in Form] == [one.value for one in Format]
