"""One scenario through every surface: the answers are the same, but for ids and times."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

import wellkept
from tests.support.json_schemas import misfits
from tests.support.stand_ins import HandClock
from tests.support.terminal import Terminal, light_database
from wellkept import operations
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.operations import VERBS, Caller, Parameter, Takes, parameter_of
from wellkept.types import Identity, Layer

WHO = {"agent": "debugger", "user": "ada", "project": "api"}
Step = tuple[str, dict[str, Any]]
Say = Callable[[str, dict[str, Any]], Any]
"""A verb and the fields of its input, as JSON has them, to what JSON has of the answer."""

ENTRY = '{"id":"e1","session_id":"friday","timestamp":"2026-01-10T10:00:00Z","type":"fact","content":"Likes tea"}'

# Ids are those of the memories added so far: the first is $0.
STEPS: list[Step] = [
    ("add", {"content": ["Prefers dark mode"], "type": "preference", "tags": ["ui"], "importance": 0.8}),
    ("add", {"content": ["Use tabs"], "layer": "project", "type": "decision", "references": ["$0"], "key": "style"}),
    ("add", {"content": ["Lives in Paris"], "layer": "user", "metadata": {"sure": True, "since": 2020}}),
    ("add", {"content": ["Too important"], "importance": 7}),
    ("add", {"content": ["Not tabs"], "layer": "project", "key": "style"}),
    ("search", {"query": "dark mode", "explain": True, "min_score": 0}),
    ("search", {"query": "tabs", "layers": ["project"], "filter": {"types": ["decision"]}, "limit": 1}),
    ("list", {"sort_by": "important"}),
    ("list", {"filter": {"tags": ["ui"], "min_importance": 0.5}}),
    ("list", {"limit": 1000}),
    ("count", {"filter": {"metadata": {"sure": True}}}),
    ("update", {"id": "$2", "content": "Lives in Rome", "add_tags": ["home"], "metadata": {"since": 2026}}),
    ("update", {"id": "$2", "importance": 1.0, "if_version": 1}),
    ("update", {"id": "nobody", "importance": 1.0}),
    ("put", {"key": "home", "content": "Lives in Oslo", "layer": "user", "tags": ["home.now"]}),
    ("put", {"key": "home", "content": "Lives in Bergen", "layer": "user"}),
    ("put", {"key": "home", "content": "Lives in Bergen", "layer": "team"}),
    ("show", {"key": "home"}),
    ("show", {"key": "nothing"}),
    ("facts.add", {"subject": "Ada", "predicate": "lives in", "object": "Rome", "confidence": 0.5, "layer": "user"}),
    ("facts.add", {"subject": "Ada", "predicate": "lives in", "object": "Oslo", "confidence": 0.9, "layer": "user"}),
    ("facts.add", {"subject": " ", "predicate": "lives in", "object": "Oslo"}),
    ("facts", {"subject": "ada"}),
    ("facts", {"object": "Rome", "include_superseded": True}),
    ("lineage", {"id": "$4"}),
    ("lineage", {"id": "nobody"}),
    ("show", {"id": "$2"}),
    ("show", {"id": "nobody"}),
    ("history", {"id": "$2"}),
    ("forget", {"ids": ["$0", "nobody"], "dry_run": True}),
    ("forget", {"ids": ["$0"], "reason": "changed her mind"}),
    ("show", {"id": "$0"}),
    ("restore", {"ids": ["$0"]}),
    ("context", {"query": "Where does she live?", "budget_tokens": 300}),
    ("stats", {}),
    ("graph", {"ids": ["$1"]}),
    ("watch", {"limit": 1}),
    ("forget", {"ids": ["$0"], "permanent": True}),
    ("history", {"id": "$0"}),
    ("forget", {"filter": {"tags": ["home"]}, "dry_run": True}),
    ("forget", {"filter": {"tags": ["home"], "created_before": "2020-01-01T00:00:00Z"}}),
    ("forget", {}),
    ("forget", {"ids": ["$2"], "filter": {"tags": ["home"]}}),
    ("sessions", {}),
    ("sessions.create", {"id": "monday", "preferences": {"language": "en"}, "limit_bytes": 100_000, "decay": False}),
    ("sessions.create", {"id": "monday"}),
    ("sessions.create", {"id": "not/an id"}),
    ("sessions.show", {"id": "monday"}),
    ("sessions.show", {"id": "nobody"}),
    ("sessions.configure", {"id": "monday", "half_life_hours": 24, "clear": ["limit_bytes"]}),
    ("sessions.preferences", {"id": "monday", "set": {"theme": "dark"}, "unset": ["language"]}),
    ("sessions.preferences", {"id": "monday", "names": ["theme", "nothing"]}),
    ("sessions.close", {"id": "monday"}),
    ("sessions.reopen", {"id": "monday"}),
    ("sessions.topics", {}),
    ("sessions.about", {"topic": "security"}),
    ("sessions.search", {"query": "tabs", "limit": 3}),
    ("sessions.memories", {"limit": 3}),
    ("compact", {"id": "monday", "dry_run": True}),
    ("compact", {"id": "nobody"}),
    ("sessions.export", {"id": "monday", "form": "jsonl", "history": True}),
    ("sessions.import", {"text": ENTRY, "id": "friday"}),
    ("sessions.import", {"text": ENTRY, "dry_run": True}),
    ("sessions.import", {"text": "nonsense"}),
    ("sessions.delete", {"id": "monday", "dry_run": True}),
    ("sessions.delete", {"id": "monday", "reason": "asked to"}),
    ("sessions", {"include_deleted": True}),
    ("sessions.restore", {"id": "monday"}),
    ("sessions.delete", {"id": "monday", "permanent": True}),
    ("sessions.restore", {"id": "monday"}),
    ("convert", {"source": "nowhere.db", "target": "copy.db"}),
    ("migrate", {"file": "nowhere.db", "to": 1}),
    ("decay", {"days": 30}),
    ("retention", {}),
    ("retention.set", {"layer": "user", "long_term_age": "365d", "exempt_tags": ["keep"]}),
    ("retention.set", {"layer": "user", "long_term_age": "soon"}),
    ("retention", {}),
    ("owners", {}),
    ("owners", {"everybody": True, "limit": 2}),
    ("owners.export", {"path": "nowhere/person.zip"}),
    ("erase", {"dry_run": True}),
    ("erase", {"everywhere": True}),
    ("erase", {"ids": ["nobody"], "dry_run": True}),
    ("erase.receipts", {}),
    ("erase.verify", {"receipt": "nobody"}),
    ("erase.ledger", {"path": "nowhere/ledger.jsonl"}),
    ("erase.replay", {"path": "nowhere.jsonl"}),
    ("audit", {}),
    ("audit.verify", {"anchor": "nonsense"}),
    ("audit.prune", {"before": "2030-01-07T00:00:00Z"}),
    ("hold", {"filter": {"tags": ["home"]}, "reason": "asked for by a court"}),
    ("hold.list", {}),
    ("hold.release", {"id": "nobody"}),
    ("move", {"id": "$0", "layer": "user"}),
    ("undo", {"id": "nobody"}),
    ("refresh", {"paths": ["nowhere"]}),
    ("messages", {"messages": ['{"role": "user", "content": "I prefer tea.", "id": "1"}']}),
    ("quarantine.plan", {"source": "web"}),
    ("quarantine", {"author": "nobody"}),
    ("quarantine.release", {"id": "nobody"}),
    ("quarantine.erase", {"id": "nobody"}),
    ("upkeep", {}),
    ("upkeep.plan", {"layer": "user"}),
    ("upkeep.run", {}),
    ("upkeep.runs", {}),
    ("upkeep.undo", {"id": "nobody"}),
    ("retention.clear", {"layer": "user"}),
    ("keys.create", {"name": "ci", "owners": ["project:api", "user:*"], "need": "write"}),
    ("keys.create", {"name": "nobody"}),
    ("keys", {}),
    ("keys.list", {}),
    ("keys.revoke", {"id": "nobody"}),
    ("consolidation.set", {"layer": "user", "trigger": 2, "layers": ["user"]}),
    ("consolidation.set", {"threshold": 0.1}),
    ("consolidation", {}),
    ("upkeep.plan", {"job": "consolidation"}),
    ("upkeep.run", {"job": "consolidation"}),
    ("consolidation.clear", {"layer": "user"}),
    ("endings.set", {"promote_importance": 0.8, "delete_after": "7d"}),
    ("endings.set", {"permanent": True}),
    ("endings", {}),
    ("endings.clear", {}),
    ("keys.init", {"recover": "nowhere.txt"}),
    ("keys.check", {}),
    ("keys.rotate", {"data": True}),
    ("encrypt", {}),
    ("config", {}),
    ("config", {"durability": "vague"}),
    ("config.check", {"file": "nowhere.toml"}),
    ("health", {}),
    ("doctor", {}),
    ("rebuild", {}),
    ("scrub", {}),
    ("reembed", {"embedder": "hashing-16"}),
    ("count", {}),
]


def through_the_table(memories: wellkept.Memories) -> Say:
    """The library, by the dispatcher."""

    def say(name: str, fields: dict[str, Any]) -> Any:
        try:
            answer = operations.call(name, Caller(memories=memories, identity=Identity(**WHO)), fields)
        except wellkept.WellkeptError as error:
            return {"error": error.code, "message": error.message}
        assert answer is None or [*misfits(answer, operations.schema(name)["output"], name)] == []
        return answer

    return say


def through_the_command_line(terminal: Terminal) -> Say:
    def say(name: str, fields: dict[str, Any]) -> Any:
        words = [f"--{id}={value}" for id, value in WHO.items()]
        for one in VERBS[name].fields:
            parameter = parameter_of(one)
            value: Any = fields.get(one.name)
            if one.name in fields and parameter.takes is Takes.GROUP:
                [group] = [kind for kind in (one.type, *get_args(one.type)) if is_dataclass(kind)]
                inner = {field.name: parameter_of(field) for field in dataclass_fields(group)}
                words += [word for name in inner if name in value for word in _typed(value[name], name, inner[name])]
            elif one.name in fields:
                words += _typed(value, one.name, parameter)
        more = ["--once"] if VERBS[name].live else ["--yes"] if VERBS[name].may_ask else []
        answer = terminal(*name.split("."), "--json", *more, *words).answer
        if answer["ok"]:
            return answer["result"]
        return {"error": answer["error"]["code"], "message": answer["error"]["message"]}

    return say


def _typed(value: Any, name: str, parameter: Parameter) -> list[str]:
    many = value if isinstance(value, list) else [value]
    if parameter.takes is Takes.FILE:
        Path("given.txt").write_text(value, encoding="utf-8")
        return ["given.txt"]
    if parameter.takes is not Takes.OPTION:
        return [str(one) for one in many]
    flag = f"--{parameter.flag or name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    pairs = [f"{key}={json.dumps(one)}" for key, one in value.items()] if isinstance(value, dict) else many
    return [word for one in pairs for word in (flag, str(one))]


def told(say: Say) -> list[Any]:
    """What a surface answers to the scenario, with ids and times replaced by what does not differ between runs."""
    ids: list[str] = []
    answers = []
    for name, fields in STEPS:
        answer = say(name, json.loads(_with_ids(json.dumps(fields), ids)))
        if name == "add" and "memories" in answer:
            ids += [memory["id"] for memory in answer["memories"]]
        if name in ("put", "facts.add") and answer.get("version") == 1:
            ids.append(answer["id"])
        shown = json.dumps(answer)
        for number, id in enumerate(ids):
            shown = shown.replace(id, f"${number}")
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", shown).replace(today, "TODAY")
        shown = re.sub(r'"(stamp|replaced|write_id|next|position)": "[^"]+"', r'"\1": "PLACE"', shown)
        shown = shown.replace('"message": "not used yet"', '"message": "ok"')  # each surface has its own index
        shown = re.sub(r'"(latency_ms|average_embedding_ms|embeddings_made)": [\d.e-]+', r'"\1": 0', shown)
        shown = re.sub(r'(?<=")(hold|plan|run)?[0-9a-f]{8}-[0-9a-f-]{27}', "ID", shown)
        shown = re.sub(r'"wk_[\w-]+"|"[0-9a-f]{16}"', '"KEY"', shown)
        answers.append((name, json.loads(shown, parse_float=lambda number: round(float(number), 3))))
    return answers


def _with_ids(text: str, ids: list[str]) -> str:
    return re.sub(r"\$(\d+)", lambda found: ids[int(found[1])], text)


SURFACES = {"command line": through_the_command_line}


@pytest.mark.req("H3", "H10")
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_answers_as_the_library_does(
    surface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with wellkept.open(light_database(tmp_path / "library.db")) as memories:
        expected = told(through_the_table(memories))
    light_database(tmp_path / "memory.db")
    found = told(SURFACES[surface](Terminal(tmp_path, monkeypatch, capsys)))
    for step, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        assert given == wanted, STEPS[step]


def test_the_scenario_has_every_verb_and_goes_wrong_too() -> None:
    assert {name for name, _ in STEPS} == set(VERBS)


@pytest.mark.req("H3")
def test_the_table_answers_as_the_views_do(tmp_path: Path) -> None:
    """What the verbs of memories answer is what the methods of a view return."""
    with wellkept.open(tmp_path / "memory.db", embedder=HashingEmbedder(32)) as memories:
        view = memories.view(user="ada")
        caller = Caller(memories=memories, identity=Identity(user="ada"))

        def run(name: str, **fields: Any) -> Any:
            return operations.request(name, caller, fields).run()

        [memory] = run("add", content=("Prefers dark mode",), tags=("ui",)).memories
        assert run("list").memories == view.list().memories == (memory,)
        assert run("count", filter={"tags": ("ui",)}).count == view.count(filter=wellkept.Filter(tags=["ui"])) == 1
        assert run("search", query="dark mode").hits == view.search("dark mode").hits
        assert run("history", id=memory.id).versions == tuple(view.history(memory.id))
        assert run("watch").versions == tuple(view.changes())
        assert run("show", id=memory.id).content == memory.content
        assert run("stats").stats.active == view.stats().active
        assert run("update", id=memory.id, content="Prefers light mode").version == 2
        assert run("forget", ids=(memory.id,)).ids == (memory.id,)
        assert view.get(memory.id) is None
        assert run("restore", ids=(memory.id,)).ids == (memory.id,)
        assert run("context", query="light mode", budget_tokens=100).included == (memory.id,)


def caller_of(memories: wellkept.Memories) -> Caller:
    return Caller(memories=memories, identity=Identity(user="ada", project="api"))


@pytest.mark.req("H3")
@pytest.mark.parametrize("ranking", wellkept.types.Ranking)
def test_every_option_of_a_search_reaches_the_engine(ranking: wellkept.types.Ranking, tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=HashingEmbedder(32), clock=HandClock()) as memories:
        view = memories.view(user="ada", project="api")
        for number in range(6):
            layer = Layer.USER if number % 2 else Layer.PROJECT
            view.add(f"Fact {number} about tea", layer=layer, tags=[f"t{number % 3}"], importance=number / 6)
        for options in (
            {},
            {"limit": 2},
            {"min_score": 0.5},
            {"explain": True},
            {"as_of": datetime(2100, 1, 1, tzinfo=UTC)},
            {"asked_at": datetime(2030, 1, 7, tzinfo=UTC)},
            {"layers": ("user",)},
        ):
            wanted = view.search("facts about tea", ranking=ranking, **options)
            given = {"query": "facts about tea", "ranking": ranking, **options}
            assert operations.request("search", caller_of(memories), given).run() == wanted, options


FILTERS: list[dict[str, Any]] = [
    {"types": ("decision",)},
    {"tags": ("t1",)},
    {"any_tags": ("t1", "t2")},
    {"no_tags": ("t1",)},
    {"min_importance": 0.5},
    {"created_after": datetime(2100, 1, 1, tzinfo=UTC)},
    {"created_before": datetime(2000, 1, 1, tzinfo=UTC)},
    {"occurred_after": datetime(2020, 6, 1, tzinfo=UTC)},
    {"occurred_before": datetime(2020, 6, 1, tzinfo=UTC)},
    {"within": "1h"},
    {"content_contains": "FACT 3"},
    {"text": "3 fact"},
    {"authors": ("bob",)},
    {"source_type": wellkept.types.SourceType.MANUAL},
    {"has_pointer": True},
    {"has_pointer": False},
    {"metadata": {"n": 2}},
    {"include_forgotten": True},
]


@pytest.mark.req("L5")
def test_every_condition_reaches_the_engine(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        added = [
            view.add(
                f"Fact {number}",
                layer="user" if number % 2 else "project",
                type="decision" if number == 1 else "fact",
                tags=[f"t{number % 3}"],
                importance=number / 6,
                metadata={"n": number},
                author="bob" if number == 4 else None,
                occurred_at=datetime(2020, 1 + 2 * number, 1, tzinfo=UTC),
                source=wellkept.types.Source(type=wellkept.types.SourceType.MANUAL) if number == 5 else None,
                references=[],
            )
            for number in range(6)
        ]
        first = view.add("Start", references=[added[2].id])
        view.forget(added[0].id)
        every = [*FILTERS, {"references": (first.id,), "max_depth": 2}]
        for options in every:
            wanted = view.list(filter=wellkept.Filter(**options)).memories
            found = operations.request("list", caller_of(memories), {"filter": options}).run()
            assert found.memories == wanted, options
        for options in (
            {"sort_by": wellkept.types.Sort.OLDEST},
            {"limit": 2},
            {"offset": 2},
            {"layers": ("user",)},
            {"as_of": datetime(2100, 1, 1, tzinfo=UTC)},
        ):
            wanted = view.list(**options).memories
            assert operations.request("list", caller_of(memories), options).run().memories == wanted, options


FIELDS: dict[str, Any] = {
    "type": wellkept.MemoryType.DECISION,
    "tier": wellkept.types.Tier.PROCEDURAL,
    "importance": 0.9,
    "tags": ("style",),
    "metadata": {"pages": 3},
    "title": "Style",
    "description": "How we write",
    "author": "bob",
    "role": "user",
    "language": "en",
    "type_name": "rule",
    "references": ("other",),
    "derived_from": ("another",),
    "trust": 0.1,
    "occurred_at": datetime(2030, 1, 7, tzinfo=UTC),
    "expires_at": datetime(2100, 1, 7, tzinfo=UTC),
    "confidence": 0.8,
    "relevance": 0.7,
    "decay_factor": 0.6,
    "access_policy": wellkept.types.AccessPolicy.SHARED,
}
NESTED: dict[str, Any] = {
    "pointer": {"source_type": "adr", "source_id": "7", "content_hash": "h", "synced_at": "2030-01-07T00:00:00Z"},
    "source": {"type": "manual", "reference": "note 7"},
}
POINTER = wellkept.types.KnowledgePointer(
    source_type=wellkept.types.PointerType.ADR,
    source_id="7",
    content_hash="h",
    synced_at=datetime(2030, 1, 7, tzinfo=UTC),
)


@pytest.mark.req("H2")
def test_every_field_is_kept_when_adding_and_when_updating(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        caller = caller_of(memories)
        own = {"layer": wellkept.Layer.USER, "key": "k"}
        other = {"content", "dangling", "duplicates", "fact", "supersedes", "sensitive"}  # what is sensitive needs keys
        assert {*FIELDS, *NESTED, *own, *other} == {one.name for one in VERBS["add"].fields}

        def run(name: str, **fields: Any) -> Any:
            return operations.request(name, caller, fields).run()

        [added] = run("add", content=["Use tabs"], dangling=True, **FIELDS, **NESTED, **own).memories
        [plain] = run("add", content=["Use spaces"]).memories
        changed = run("update", id=plain.id, dangling=True, **FIELDS, **NESTED)
        for memory in (added, changed):
            assert {name: getattr(memory, name) for name in FIELDS} == FIELDS
            assert memory.source == wellkept.types.Source(type=wellkept.types.SourceType.MANUAL, reference="note 7")
            assert memory.pointer == POINTER
        assert (added.layer, added.key) == (own["layer"], own["key"])
        cleared = run("update", id=plain.id, clear=["title", "expires_at", "source"], tags=[])
        assert (cleared.title, cleared.expires_at, cleared.source, cleared.tags) == (None, None, None, ())
