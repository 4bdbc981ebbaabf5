"""The table of verbs is complete, says everything a surface must know, and every surface has all of it."""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

import wellkept
from tests.support.terminal import Terminal, environment
from tools import verbs_reference
from wellkept import errors
from wellkept.cli.app import Commands
from wellkept.cli.parameters import kind_of, slots_of
from wellkept.cli.screen import standard_screens
from wellkept.errors import WellkeptError
from wellkept.memories.api_keys import ApiKeys
from wellkept.memories.audit import AuditTrail
from wellkept.memories.encryption import Encryption
from wellkept.memories.privacy import Privacy
from wellkept.memories.session import Session
from wellkept.memories.sessions import Sessions
from wellkept.memories.upkeep import Upkeep
from wellkept.operations import EVERYWHERE, EXIT_CODES, FAILURES, LISTED, VERBS, Takes, Verb, failure_of, parameter_of
from wellkept.operations.stats import periods

ROOT = Path(__file__).resolve().parents[2]
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


def commands() -> Commands:
    return Commands(*standard_screens())


def command_names() -> set[str]:
    """The names of the commands; those below another one with a dot."""
    root = commands()
    context = click.Context(root)
    names = set(root.list_commands(context))
    for name in tuple(names):
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            names |= {f"{name}.{below}" for below in command.list_commands(context)}
    return names


def command_of(name: str) -> click.Command:
    found: click.Command = commands()
    for part in name.split("."):
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), part)
        assert below is not None
        found = below
    return found


# A surface, and the verbs that it offers. Who adds one enters it here.
SURFACES = {"command line": command_names}

every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=list(VERBS))


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_has_every_verb(surface: str) -> None:
    assert set(VERBS) - SURFACES[surface]() == set()


@pytest.mark.parametrize(
    ("kind", "verbs"),
    [
        (wellkept.View, VIEW),
        (wellkept.Memories, MEMORIES),
        (Sessions, SESSIONS),
        (Session, SESSION),
        (Upkeep, UPKEEP),
        (ApiKeys, API_KEYS),
        (Privacy, PRIVACY),
        (AuditTrail, AUDIT),
        (Encryption, ENCRYPTION),
    ],
    ids=["View", "Memories", "Sessions", "Session", "Upkeep", "ApiKeys", "Privacy", "AuditTrail", "Encryption"],
)
def test_everything_that_the_engine_can_do_has_a_verb(kind: type, verbs: dict[str, str | None]) -> None:
    public = {name for name, member in inspect.getmembers(kind) if not name.startswith("_")}
    assert public == set(verbs), "enter it in the table of verbs, or say above why it is not for a surface"
    assert {verb for verb in verbs.values() if verb} <= set(VERBS)


@every_verb
def test_the_listing_and_the_verb_have_the_same_name(verb: Verb[Any, Any]) -> None:
    assert VERBS[verb.name] is verb
    assert LISTED[verb.name].summary.endswith(".")


@every_verb
def test_inputs_are_frozen_values_whose_fields_are_explained(verb: Verb[Any, Any]) -> None:
    assert dataclasses.is_dataclass(verb.input)
    assert verb.input.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for one in verb.fields:
        assert parameter_of(one).description.endswith("."), f"{verb.name}.{one.name} has no sentence"
        kind_of(one.type)


@every_verb
def test_no_two_options_of_a_command_have_the_same_name(verb: Verb[Any, Any]) -> None:
    command = command_of(verb.name)
    names = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]
    assert sorted(names) == sorted(set(names))
    assert {param.name for param in command.params} >= {slot.key for slot in slots_of(verb)}


@every_verb
def test_errors_are_named_once_and_known(verb: Verb[Any, Any]) -> None:
    named = (*EVERYWHERE, *verb.errors)
    assert len(set(named)) == len(named)
    for error in named:
        assert failure_of(error).exit_code in EXIT_CODES


@every_verb
def test_the_help_of_a_command_has_its_examples(verb: Verb[Any, Any], terminal: Terminal) -> None:
    assert verb.examples
    done = terminal(*verb.name.split("."), "--help")
    assert done.code == 0
    for example in verb.examples:
        assert example.line in done.out
        assert example.says in done.out
    for slot in slots_of(verb):
        if slot.parameter.takes is Takes.OPTION:
            assert slot.flag in done.out


@pytest.mark.req("H10")
def test_every_kind_of_error_has_an_exit_code_and_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WellkeptError)]
    direct = {kind for kind in kinds if WellkeptError in kind.__bases__}
    assert direct - set(FAILURES) == set(), "say in operations.failures how it leaves"
    for kind in kinds:
        assert failure_of(kind).exit_code in EXIT_CODES
        assert 400 <= failure_of(kind).http_status < 600


def test_needs_grow_with_what_is_asked() -> None:
    doctor, config, forget = VERBS["doctor"], VERBS["config"], VERBS["forget"]
    assert config.needed(config.input()).value == "read"
    assert config.needed(config.input(durability="full")).value == "admin"
    assert forget.needed(forget.input(ids=("x",), permanent=True)).value == "erase"
    assert doctor.needed(doctor.input()).value == "admin"


@pytest.mark.parametrize(
    "line", [example.line for verb in VERBS.values() for example in verb.examples if verb.name != "reembed"]
)
def test_examples_run(line: str, terminal: Terminal) -> None:
    terminal.add("The user prefers a dark theme", "--tag", "ui", "--importance", "0.4")
    id = terminal.add("Lives in Paris", "--title", "Home", "--meta", "sure=true")
    for _ in range(2):  # the examples speak of version 3
        terminal.json("update", id, "--importance", str(0.6 + 0.1 * _))
    terminal.json("put", "style", "Indent with two spaces")
    terminal.configure("[limits]\nentries = 500\n[audit]\nfile = 'audit.jsonl'\n")
    (terminal.folder / "chat.jsonl").write_text('{"role": "user", "content": "I prefer tea."}\n', encoding="utf-8")
    (terminal.folder / "tuesday.jsonl").write_text(ENTRY, encoding="utf-8")
    (terminal.folder / "notes.txt").write_text("Likes tea\nLives in Rome\n", encoding="utf-8")
    terminal.json("sessions", "create", "monday", "--prefer", "theme=dark", "--prefer", "language=en")
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
        assert _in_a_shell(line, id, terminal.folder) in (0, 3)
    elif set(line) & set("|<"):
        assert _in_a_shell(line, id, terminal.folder) == 0
    else:
        done = terminal(*shlex.split(line.replace("$ID", id))[1:])
        assert done.code == 0, done.err


def _in_a_shell(line: str, id: str, folder: Path) -> int:
    program = folder / "wellkept"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wellkept "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    known = {**os.environ, **environment(folder), "ID": id, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", line], cwd=folder, env=known, capture_output=True, check=False).returncode


@pytest.mark.parametrize("days", [0, 0.01, 1, 20, 300, 4_000, 40_000])
def test_the_timeline_holds_both_ends_in_few_equal_periods(days: float) -> None:
    newest = datetime(2150, 6, 1, 9, 30, tzinfo=UTC)
    oldest = newest - timedelta(days=days)
    found = periods(oldest, newest)
    assert 1 <= len(found) <= 30
    assert found[0][0] <= oldest
    assert found[-1][0] <= newest < found[-1][1]
    assert all(end == start for (_, end), (start, _) in pairwise(found))


@pytest.mark.parametrize(
    ("path", "text"), [(verbs_reference.PAGE, verbs_reference.page), (verbs_reference.SCHEMA, verbs_reference.schema)]
)
def test_the_reference_is_what_the_table_says(path: Path, text: Any) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text(), "run make docs"
