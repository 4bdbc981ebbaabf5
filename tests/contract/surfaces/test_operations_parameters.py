"""What the engine's methods take, the verbs take: a parameter without a field has a reason here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

import pytest

import wellkept
from wellkept import operations
from wellkept.memories import (
    ApiKeys,
    AuditTrail,
    Encryption,
    Privacy,
    Session,
    SessionPreferences,
    Sessions,
    Upkeep,
)
from wellkept.operations import VERBS
from wellkept.settings import Settings, declared
from wellkept.transfer.migration import migrate
from wellkept.types import ChangedFields, DecayPolicy, ExportFormatName, Filter, NewMemory, SessionConfig
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


def differences(names: set[str], verb: str, other: dict[str, str]) -> set[str]:
    """Names that are no field of a verb and without a reason, and reasons for what is no name any more."""
    return (names - fields_of(verb) - set(other)) | (set(other) - names)


@pytest.mark.req("H3")
def test_every_parameter_of_a_method_is_a_field_of_its_verb() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        facts = memories.view(user="ada").facts
        methods: list[tuple[Callable[..., Any], str, dict[str, str]]] = [*METHODS]
        methods += [(facts.find, "facts", {}), (facts.add, "facts.add", {})]
    wrong = {
        (method.__qualname__, verb): names
        for method, verb, other in methods
        if (names := differences(set(inspect.signature(method).parameters) - {"self"}, verb, other))
    }
    assert wrong == {}, "give the verb a field for each, or say above why not; or it is no parameter any more"


def test_every_field_of_a_value_is_a_field_of_its_verb() -> None:
    values: list[tuple[str, set[str], str, dict[str, str]]] = [
        ("NewMemory", names_of(NewMemory), "add", {"session": FROM_IDENTITY, "vector": EMBEDS_ITSELF}),
        ("ChangedFields", set(ChangedFields.__annotations__), "update", {"session": FROM_IDENTITY}),
        ("SessionConfig", names_of(SessionConfig), "sessions.configure", {}),
        ("SessionConfig", names_of(SessionConfig), "sessions.create", {}),
        ("DecayPolicy", names_of(DecayPolicy), "sessions.configure", {"enabled": "decay"}),
    ]
    wrong = {
        (value, verb): missing for value, names, verb, other in values if (missing := differences(names, verb, other))
    }
    assert wrong == {}, "give the verb a field for each, or say above why not; or it is no field any more"


def names_of(kind: Any) -> set[str]:
    return {one.name for one in fields(kind)}


def test_the_filter_of_a_verb_is_that_of_the_engine() -> None:
    states = {"include_forgotten", "include_archived", "include_superseded", "include_quarantined"}
    conditions = {}
    for verb in ("search", "list", "count", "sessions.search", "sessions.memories", "forget"):
        schema = operations.schema(verb)["input"]["properties"]["filter"]
        [properties] = [one["properties"] for one in (schema, *schema.get("anyOf", ())) if "properties" in one]
        conditions[verb] = set(properties)
    every = names_of(Filter)
    assert conditions == {
        verb: every - states if verb == "forget" else every  # erasing takes all of them anyway
        for verb in conditions
    }


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
    form = operations.schema("sessions.export")["input"]["properties"]["form"]
    assert form["enum"] == sorted(get_args(ExportFormatName))
