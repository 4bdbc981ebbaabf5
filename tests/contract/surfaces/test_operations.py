"""The table of verbs is complete, says everything a surface must know, and every surface has all of it."""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.terminal import Terminal, environment, light_database
from wellkept import errors
from wellkept.errors import WellkeptError
from wellkept.memories import (
    ApiKeys,
    AuditTrail,
    Encryption,
    Facts,
    Privacy,
    Session,
    SessionPreferences,
    Sessions,
    Upkeep,
)
from wellkept.operations import EVERYWHERE, EXIT_CODES, FAILURES, LISTED, VERBS, failure_of, parameter_of
from wellkept.types import Need

# What the engine can do, and the verb that says it. None: not for a surface, and why.
VIEW = {
    "add": "add",
    "add_many": "add",
    "put": "put",
    "facts": "facts",
    "lineage": "lineage",
    "get": "show",
    "get_many": "graph",
    "list": "list",
    "count": "count",
    "stats": "stats",
    "history": "history",
    "changes": "watch",
    "position": None,  # watch answers with it
    "search": "search",
    "update": "update",
    "forget": "forget",
    "restore": "restore",
    "move": "move",
    "point_to": None,  # a pointer is a field of add
    "refresh": "refresh",
    "add_messages": "messages",
    "undo": "undo",
    "undoable": "undo",
    "plan_quarantine": "quarantine.plan",
    "quarantine": "quarantine",
    "release": "quarantine.release",
    "erase_quarantined": "quarantine.erase",
    "layers": None,  # follows from the identity
    "forget_many": "forget",
    "sessions": "sessions",
}
ENTRY = '{"id":"1","session_id":"tuesday","timestamp":"2026-01-10T10:00:00Z","type":"fact","content":"Tea"}'
SESSIONS = {
    "create": "sessions.create",
    "load": "sessions.show",
    "list": "sessions",
    "compact": "compact",
    "close": "sessions.close",
    "delete": "sessions.delete",
    "restore": "sessions.restore",
    "import_session": "sessions.import",
    "search": "sessions.search",
    "list_memories": "sessions.memories",
    "topics": "sessions.topics",
    "sessions_about": "sessions.about",
}
SESSION = {
    "view": None,  # the verbs of memories, with the session's id and the layer session
    "preferences": "sessions.preferences",
    "config": "sessions.show",
    "metadata": "sessions.show",
    "closed_at": "sessions.show",
    "configure": "sessions.configure",
    "compact": "compact",
    "stats": "sessions.show",
    "close": "sessions.close",
    "reopen": "sessions.reopen",
    "forget": None,  # forget with the session's id, the layer session, and a tag or times
    "export": "sessions.export",
}
UPKEEP = {
    "set_retention": "retention.set",
    "retention": "retention",
    "policies": "retention",
    "clear_retention": "retention.clear",
    "set_consolidation": "consolidation.set",
    "consolidation": "consolidation",
    "consolidation_policies": "consolidation",
    "clear_consolidation": "consolidation.clear",
    "set_session_end": "endings.set",
    "session_end": "endings",
    "session_end_policies": "endings",
    "clear_session_end": "endings.clear",
    "plan": "upkeep.plan",
    "apply": "upkeep.run",
    "run": "upkeep.run",
    "next_due": "upkeep",
    "run_due": None,  # every surface opens the database, which does it
    "start": None,  # a thread of this process
    "stop": None,  # as above
    "runs": "upkeep.runs",
    "undo": "upkeep.undo",
    "hold": "hold",
    "holds": "hold.list",
    "release": "hold.release",
}
PRIVACY = {
    "plan": "erase",
    "erase": "erase",
    "receipts": "erase.receipts",
    "verify": "erase.verify",
    "ledger": "erase.ledger",
    "export_ledger": "erase.ledger",
    "replay": "erase.replay",
    "resume": None,  # every surface opens the database, which does it
    "export": "owners.export",
}
AUDIT = {"list": "audit", "verify": "audit.verify", "prune": "audit.prune"}
API_KEYS = {
    "create": "keys.create",
    "list": "keys.list",
    "revoke": "keys.revoke",
    "grant_of": None,  # every surface that takes tokens asks for each of its calls
}
ENCRYPTION = {
    "init": "keys.init",
    "check": "keys.check",
    "rotate": "keys.rotate",
    "encrypt": "encrypt",
    "recovery_code": None,  # told by keys.init and keys.rotate
}
MEMORIES = {
    "keys": "keys",
    "owners": "owners",
    "privacy": "erase",
    "audit": "audit",
    "encryption": "keys.check",
    "view": None,  # every surface makes one for its caller
    "agent": "context",
    "agents": None,  # handles of this process
    "upkeep": "upkeep",
    "plan": None,  # said by whoever opens the database
    "sizes": None,  # for metrics of those who run a server; stats shows what the caller sees
    "watch": None,  # operations of this process; the verb watch follows what is written
    "on": None,  # events of this process; watch follows those of all
    "health": "health",
    "settings": "config",
    "configure": "config",
    "doctor": "doctor",
    "reembed": "reembed",
    "rebuild": "rebuild",
    "scrub": "scrub",
    "close": None,  # surfaces close what they opened
}

ENGINE: dict[type, Mapping[str, str | None]] = {
    wellkept.View: VIEW,
    wellkept.Memories: MEMORIES,
    Sessions: SESSIONS,
    Session: SESSION,
    Upkeep: UPKEEP,
    ApiKeys: API_KEYS,
    Privacy: PRIVACY,
    AuditTrail: AUDIT,
    Encryption: ENCRYPTION,
}


def helps(terminal: Terminal) -> dict[str, str]:
    """What the command line says to `--help`, by verb; nothing for a verb that it does not have."""
    ended = {name: terminal(*name.split("."), "--help") for name in VERBS}
    return {name: done.out for name, done in ended.items() if done.code == 0}


# A surface, and what it says of each verb that it offers. Who adds one enters it here.
SURFACES = {"command line": helps}


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_has_every_verb_and_tells_its_examples(surface: str, terminal: Terminal) -> None:
    texts = SURFACES[surface](terminal)
    assert set(VERBS) - set(texts) == set()
    untold = {
        name: example
        for name, verb in VERBS.items()
        for example in verb.examples
        if example.line not in texts[name] or example.says not in texts[name]
    }
    assert untold == {}
    assert [name for name, verb in VERBS.items() if not verb.examples] == []


def test_everything_that_the_engine_can_do_has_a_verb() -> None:
    public = {kind: {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")} for kind in ENGINE}
    differing = {
        kind.__name__: names ^ set(ENGINE[kind]) for kind, names in public.items() if names != set(ENGINE[kind])
    }
    assert differing == {}, "enter it in the table of verbs, or say above why it is not for a surface"
    assert {verb for verbs in ENGINE.values() for verb in verbs.values() if verb} <= set(VERBS)


def test_the_listing_and_the_verb_have_the_same_name() -> None:
    assert {name: verb.name for name, verb in VERBS.items()} == {name: name for name in LISTED}
    assert [name for name, listed in LISTED.items() if not listed.summary.endswith(".")] == []


def test_inputs_are_frozen_values_whose_fields_are_explained() -> None:
    inputs = {name: verb.input for name, verb in VERBS.items()}
    thawed = [
        name
        for name, kind in inputs.items()
        if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    ]
    assert thawed == []
    described = {f"{name}.{one.name}": parameter_of(one) for name, verb in VERBS.items() for one in verb.fields}
    assert [name for name, parameter in described.items() if not parameter.description.endswith(".")] == []


def test_errors_are_named_once_and_known() -> None:
    named = {name: (*EVERYWHERE, *verb.errors) for name, verb in VERBS.items()}
    assert {name: errors for name, errors in named.items() if len(set(errors)) != len(errors)} == {}
    codes = {error: failure_of(error).exit_code for errors in named.values() for error in errors}
    assert {error: code for error, code in codes.items() if code not in EXIT_CODES} == {}


@pytest.mark.req("H10")
def test_every_kind_of_error_has_an_exit_code_and_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WellkeptError)]
    direct = {kind for kind in kinds if WellkeptError in kind.__bases__}
    assert direct - set(FAILURES) == set(), "say in operations.failures how it leaves"
    for kind in kinds:
        assert failure_of(kind).exit_code in EXIT_CODES
        assert 400 <= failure_of(kind).http_status < 600


# What each verb needs; all others need admin. With ``permanent`` or ``purge`` they erase, as a dry run they read.
READING = """search list show count context facts lineage history watch stats decay graph sessions sessions.show
    sessions.preferences sessions.export sessions.topics sessions.about sessions.search sessions.memories
    quarantine.plan health config"""
WRITING = """add messages put update move forget restore undo facts.add sessions.create sessions.configure
    sessions.close sessions.reopen sessions.delete sessions.restore sessions.import compact refresh
    quarantine quarantine.release"""
NEEDED = dict.fromkeys(READING.split(), "read") | dict.fromkeys(WRITING.split(), "write")
NEEDED["quarantine.erase"] = "erase"
CHANGED = {
    **{name: {"dry_run": "read"} for name in ("refresh", "sessions.import")},
    **{name: {"permanent": "erase", "dry_run": "read"} for name in ("forget", "sessions.delete")},
    "compact": {"purge": "erase", "dry_run": "read"},
    "sessions.preferences": {"set": "write", "unset": "write"},
    "config": {"durability": "admin"},
}


@pytest.mark.req("L11")
def test_every_verb_needs_what_it_should_and_says_by_which_method() -> None:
    needs = {name: verb.needs for name, verb in VERBS.items()}
    assert needs == {name: NEEDED.get(name, "admin") for name in VERBS}
    changed = {
        name: {one.name: need for one in verb.fields if (need := verb.needed_with({one.name: True})) != needs[name]}
        for name, verb in VERBS.items()
    }
    assert {name: fields for name, fields in changed.items() if fields} == CHANGED
    without = {name for name, verb in VERBS.items() if isinstance(verb.method, Need)}
    assert without == {"decay", "convert", "migrate", "config.check"}


# What declares no need: it is of this process alone, or is called as the database is opened.
UNDECLARED = """Memories.on Memories.watch Memories.agents Memories.close Upkeep.start Upkeep.stop Privacy.resume
    AgentMemory.close"""
# What a grant for some owners can reach; all else concerns the whole database.
NARROW = (wellkept.View, Sessions, Session, SessionPreferences, Facts, wellkept.AgentMemory)
HARMLESS = {"Memories.view", "Memories.agent", "Memories.health", "Memories.settings", "ApiKeys.grant_of"}


@pytest.mark.req("L11")
def test_every_method_declares_its_need_and_the_arguments_that_change_it() -> None:
    wrong: dict[str, object] = {}
    undeclared = set(UNDECLARED.split())
    for kind in {*ENGINE, *NARROW}:
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            name = f"{kind.__name__}.{method}"
            if method.startswith("_") or name in undeclared:
                undeclared.discard(name)
                continue
            declared: Any = getattr(function, "declared", None)
            parameters = inspect.signature(function).parameters
            named = {one for one in ("permanent", "purge", "dry_run") if one in parameters}
            if declared is None or {one for one, _ in declared.changes} != named:
                wrong[name] = declared
            elif (declared.need is Need.ADMIN) is (kind in NARROW or name in HARMLESS):
                wrong[name] = declared.need
            elif not all(parameters[one].kind is inspect.Parameter.KEYWORD_ONLY for one in named):
                wrong[name] = "the wrapper sees only what is given by its name"
            elif "dry_run" in named and declared.needed(dict.fromkeys(named, True)) is not Need.READ:
                wrong[name] = "a dry run needs no more than reading"
    assert (wrong, undeclared) == ({}, set())


def test_needs_grow_with_what_is_asked() -> None:
    doctor, config, forget = VERBS["doctor"], VERBS["config"], VERBS["forget"]
    assert config.needed(config.input()).value == "read"
    assert config.needed(config.input(durability="full")).value == "admin"
    assert forget.needed(forget.input(ids=("x",), permanent=True)).value == "erase"
    assert forget.needed(forget.input(ids=("x",), permanent=True, dry_run=True)).value == "read"
    assert doctor.needed(doctor.input()).value == "admin"


SETTINGS = "[limits]\nentries = 500\n[audit]\nfile = 'audit.jsonl'\n"


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [example.line for verb in VERBS.values() for example in verb.examples if verb.name != "reembed"]
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    light_database(prepared / "memory.db")
    id = _prepared(Terminal(prepared, monkeypatch, capsys))
    wrong = {}
    for number, line in enumerate(lines):
        folder = tmp_path / str(number)
        shutil.copytree(prepared, folder)
        if complaint := _example(line, id, Terminal(folder, monkeypatch, capsys)):
            wrong[line] = complaint
    assert wrong == {}


def _prepared(terminal: Terminal) -> str:
    """The memories, sessions and files that the examples speak of; the id of a memory."""
    terminal.add("The user prefers a dark theme", "--tag", "ui", "--importance", "0.4")
    id = terminal.add("Lives in Paris", "--title", "Home", "--meta", "sure=true")
    for step in range(2):  # the examples speak of version 3
        terminal.json("update", id, "--importance", str(0.6 + 0.1 * step))
    terminal.json("put", "style", "Indent with two spaces")
    terminal.configure(SETTINGS)
    (terminal.folder / "chat.jsonl").write_text('{"role": "user", "content": "I prefer tea."}\n', encoding="utf-8")
    (terminal.folder / "tuesday.jsonl").write_text(ENTRY, encoding="utf-8")
    (terminal.folder / "notes.txt").write_text("Likes tea\nLives in Rome\n", encoding="utf-8")
    terminal.json("sessions", "create", "monday", "--prefer", "theme=dark", "--prefer", "language=en")
    return id


def _example(line: str, id: str, terminal: Terminal) -> str:
    """Run the line of an example; what is wrong with how it ended, or an empty text."""
    terminal.configure(SETTINGS)  # it is trusted at its place, and this is another one
    if "$HOLD" in line:
        line = line.replace("$HOLD", terminal.json("hold", "--tag", "ui", "--reason", "case 17")["id"])
    if "$KEY" in line:
        line = line.replace("$KEY", terminal.json("keys", "create", "ci", "--everything")["key"]["id"])
    if "$RECEIPT" in line:
        line = line.replace("$RECEIPT", terminal.json("erase", "--id", "x", "--yes")["receipt"]["id"])
    if "$LEDGER" in line:
        terminal.json("erase", "ledger", "known.jsonl")
        line = line.replace("$LEDGER", "known.jsonl")
    if line.startswith(("wellkept keys check", "wellkept keys rotate", "wellkept encrypt")):
        terminal.json("keys", "init")
    if line.startswith("wellkept upkeep undo"):
        terminal.json("upkeep", "run")
    if line.startswith(("wellkept quarantine release", "wellkept quarantine erase")):
        terminal.json("quarantine", "--since", "1d", "--yes")
    if line.startswith("wellkept restore"):
        terminal.json("forget", id)
    if "2030" in line or "2d" in line:  # a time before anything was recorded, or after: both are answers
        code = _in_a_shell(line, id, terminal.folder)
        return "" if code in (0, 3) else f"ended with {code} in a shell"
    if set(line) & set("|<"):
        code = _in_a_shell(line, id, terminal.folder)
        return f"ended with {code} in a shell" if code else ""
    done = terminal(*shlex.split(line.replace("$ID", id))[1:])
    return f"ended with {done.code}: {done.err}" if done.code else ""


def _in_a_shell(line: str, id: str, folder: Path) -> int:
    program = folder / "wellkept"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wellkept "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    known = {**os.environ, **environment(folder), "ID": id, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", line], cwd=folder, env=known, capture_output=True, check=False).returncode
