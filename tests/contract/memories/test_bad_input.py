"""Bad input: a typed error that names the field, the operation and a way out; and nothing changed."""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.bad_values import BAD_FIELDS, nested
from tests.support.stand_ins import DIMENSION, CountingEmbedder, HandClock, Opener, sequence
from wellkept import Filter, Memories, NewMemory, View, WellkeptError
from wellkept.errors import (
    ContentTooLong,
    EmbedderMismatch,
    InvalidInput,
    InvalidLayer,
    MissingIdentifier,
    QueryTooLong,
)
from wellkept.types import ChangedFields, KnowledgePointer, Layer, NewFields, Source, Vector

NAIVE = datetime.now(UTC).replace(tzinfo=None)
EARLY = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
LATE = datetime.max.replace(tzinfo=timezone(-timedelta(hours=12)))
ROW = [1.0] * DIMENSION
CONTROLS = ("a\nb", "a\x00b", "\x1b[31m", "\x7f", "\u2028", "\ud800", "")
WRONG_TYPES = (5, 1.5, True, b"bytes", ["list"], {"a": 1}, object())
NO_OBJECTS = tuple(value for value in WRONG_TYPES if not isinstance(value, dict))


def short(value: object) -> str:
    """A name for a value that may be very long."""
    return ascii(value)[:16] if isinstance(value, str | float) else type(value).__name__


@dataclass(frozen=True)
class Case:
    """A bad value for a field, and what the error must be."""

    field: str
    value: Any
    kind: type[WellkeptError] = InvalidInput
    told: str = ""

    @property
    def named(self) -> str:
        return self.told or self.field

    def __str__(self) -> str:
        return f"{self.field} {short(self.value)}"


@dataclass
class Table:
    cases: list[Case] = field(default_factory=list)

    def add(self, name: str, *values: Any, kind: type[WellkeptError] = InvalidInput, told: str = "") -> None:
        self.cases += [Case(name, value, kind, told) for value in values]


def large() -> dict[str, Any]:
    """About ten megabytes of JSON, none of it long or deep."""
    return {f"k{n}": {"in": [{"n": n, "text": "x" * 80}]} for n in range(100_000)}


@cache
def fields_of_a_memory() -> list[Case]:
    table = Table()
    table.add("content", "", " \n\t", "a\x00b", "\ud800", None, {"a": math.nan}, *NO_OBJECTS)
    table.add("sensitive", "yes", "", 0, 1, 1.5, b"x", [True], {"a": True}, object())
    table.add("content", "x" * (10 * 1024 * 1024 + 1), "é" * (5 * 1024 * 1024 + 1), kind=ContentTooLong)
    table.add("type", "", "nonsense", "FACT", None, 10**5000, *WRONG_TYPES)
    table.add("tier", "", "nonsense", "working", "SEMANTIC", 10**5000, *WRONG_TYPES)
    table.add("importance", -0.0001, 1.0001, math.nan, math.inf, -math.inf, True, "0.5", None, 10**400, [0.5])
    for name in ("confidence", "relevance", "decay_factor", "trust"):
        table.add(name, -0.1, 1.1, math.nan, True, "0.5", [0.5], 10**400)
    for name in ("title", "language", "author", "role", "session", "type_name"):
        table.add(name, *CONTROLS, "x" * 1001, *WRONG_TYPES)
    table.add("description", "a\x00b", "\ud800", "x" * 100_001, *WRONG_TYPES)
    table.add("metadata", *NO_OBJECTS, "text", [("a", 1)])
    table.add("metadata", large(), nested(33), nested(100_000), {"a": "x" * 1024 * 1024})
    table.add("metadata", *({"a": bad} for bad in (math.nan, math.inf, 2**63, -(2**63) - 1, 10**5000, b"x", {1}, 1j)))
    table.add("metadata", {"a": datetime.now(UTC)}, {"a": object()}, {1: 1}, {None: 1}, {"a": "\ud800"}, {"\ud800": 1})
    for name in ("references", "derived_from"):
        table.add(name, "text", 5, True, [5], [None], ["a\nb"], [""], ["x" * 257], [str(n) for n in range(1001)])
    table.add("access_policy", "", "secret", "PRIVATE", 10**5000, *WRONG_TYPES)
    table.add("source", "conversation", 5, {"type": "manual"})
    table.add("source", Source(type="moon"), Source(type=None), told="source.type")  # type: ignore[arg-type]  # on purpose
    table.add("source", Source(type="manual", reference="a\nb"), told="source.reference")  # type: ignore[arg-type]  # on purpose
    table.add("pointer", "adr", 5, {"source_id": "adr"})
    fine: dict[str, Any] = {"source_type": "adr", "source_id": "a", "content_hash": "h", "synced_at": datetime.now(UTC)}
    for part, bad in (("source_type", "moon"), ("source_id", "a\nb"), ("content_hash", ""), ("synced_at", NAIVE)):
        table.add("pointer", KnowledgePointer(**fine | {part: bad}), told=f"pointer.{part}")
    for name in ("occurred_at", "expires_at"):
        table.add(name, NAIVE, EARLY, LATE, date(2026, 1, 1), "2026-01-01", 5, True)
    table.add("vector", [], [0.0] * DIMENSION, [math.nan] * DIMENSION, [math.inf] * DIMENSION, [1e39] * DIMENSION)
    table.add("vector", ROW[1:], [*ROW, 1.0], "text", 5, ["1"] * DIMENSION, b"123", object(), [[1.0]] * DIMENSION)
    table.add("vector", Vector.of("hashing-16", ROW[1:]), [1.0] * 65_537)
    table.add("vector", Vector.of("another", ROW), kind=EmbedderMismatch)
    table.add("vector", Vector("", b"\0\0\0\1"), Vector(5, b"\0\0\0\1"), told="vector.embedder")  # type: ignore[arg-type]  # on purpose
    return table.cases


@cache
def fields_of_a_new_one() -> list[Case]:
    table = Table()
    table.add("layer", "planet", "", "USER", 5, True, 10**5000, [], {}, object(), kind=InvalidLayer)
    table.add("layer", "agent", kind=MissingIdentifier, told="agent")
    table.add("layer", "session", kind=MissingIdentifier, told="session")
    table.add("layer", "company", kind=MissingIdentifier, told="company")
    table.add("tags", "text", "", 5, True, [5], [None], [""], ["x" * 257], [str(n) for n in range(101)], {"a\nb": 1})
    table.add("tags", *([text] for text in CONTROLS))
    table.add("key", *CONTROLS, "x" * 1001, *WRONG_TYPES)
    table.add("fact", "text", 5, True, [], {"subject": "Ada"})
    table.add("supersedes", 5, True, [5], [None], ["a\nb"])
    return table.cases


@cache
def fields_of_an_update() -> list[Case]:
    table = Table()
    for name in ("add_tags", "remove_tags", "remove_metadata"):
        table.add(name, "text", 5, True, [5], [None], [[]])
    table.add("add_tags", ["a\nb"], [""], [str(n) for n in range(101)])
    table.add("if_version", 0, -1, True, "1", 1.0, [1], 10**400)
    table.add("nonsense", 1)
    table.add("layer", "team")
    table.add("tags", "text", "", 5, True, [5], ["a\nb"], [str(n) for n in range(101)])
    return table.cases


Call = tuple[str, dict[str, Any], str]


def each(operations: str, argument: str, values: Iterable[Any], field: str = "", **others: Any) -> Iterator[Call]:
    """Calls of operations with one bad argument: the operation, all its arguments, the field to be named."""
    for operation in operations.split():
        for value in values:
            yield operation, others | {argument: value}, field or argument


def calls() -> Iterator[Call]:
    no_ids: list[Any] = [None, 5, b"x", ["x"], "\ud800"]
    no_counts: list[Any] = [-1, True, "5", None, 1.5, 10**400]
    no_moments: list[Any] = [NAIVE, NAIVE.date(), "now", "W10", -1, 0, True, 1.5, 2**63]
    everywhere = "list count stats changes"
    yield from each("add_many", "items", ["text", 5, None, NewMemory(content="x")])
    yield from each("add_many", "items", [["x", bad] for bad in (5, None, b"x", ["x"], "", "\x00")], "content")
    yield from each("get update forget restore history lineage", "id", no_ids)
    yield from each("put", "key", [*CONTROLS, "x" * 1001, *WRONG_TYPES], content="x")
    yield from each("get_many", "ids", [None, 5, True])
    yield from each("get_many", "ids", [[bad] for bad in no_ids], "id")
    for flag in ("include_forgotten", "include_vector"):
        yield from each("get", flag, ["no", 1, None], id="ID")
    yield from each("forget", "permanent", ["no", 0, 1, None], id="ID")
    yield from each("forget", "reason", [*CONTROLS, "x" * 1001, 5, ["x"]], id="ID")
    yield from each("list count", "as_of", no_moments)
    yield from each("get", "as_of", no_moments, id="ID")
    yield from each(everywhere, "layers", [5, True, 1.5])
    yield from each(everywhere, "layers", [["planet"], [None], [5], [[]], "planet"], "layer")
    yield from each(everywhere, "layers", [["user", "team"]], "team")
    yield from each("list count", "filter", [5, "text", ["x"], True])
    for name, values in BAD_FIELDS.items():
        yield from each("list", "filter", [{name: bad} for bad in values], f"filter.{name}")
    references: list[Any] = [5, [5], [""], ["a\nb"], True]
    yield from each("list count", "filter", [Filter(references=bad) for bad in references], "filter.references")
    yield from each("list", "limit", [0, 101, *(one for one in no_counts if one is not None)])
    yield from each("list", "offset", no_counts)
    yield from each("list", "sort_by", ["", "age", None, 5, [], 10**5000])
    yield from each("list", "cursor", ["", "x", 5, b"x", ["x"]])
    yield from each("forget_many", "filter", [None, 5, "text", ["x"], True])
    yield from each("forget_many", "filter", [{"tags": bad} for bad in ("x", 5, [5])], "filter.tags")
    for name in ("permanent", "dry_run"):
        yield from each("forget_many", name, ["no", 1, None], filter={})
    yield from each("forget_many", "reason", ["", "a\nb", 5, "x" * 1001], filter={})
    yield from each("forget_many", "layers", [["planet"]], "layer", filter={})
    yield from each("changes", "after", [count for count in no_counts if count is not None])
    yield from each("changes", "limit", [0, 10_001, *no_counts])
    yield from each("search", "query", ["", " ", None, 5, b"x", "\ud800", "x" * 32_769])
    yield from each("search", "limit", [0, 1001, *no_counts], query="x")
    yield from each("search", "min_score", [-0.1, 1.1, math.nan, True, "1", [0.5]], query="x")
    yield from each("search", "ranking", ["", "BEST", "worst", None, 5, True, [], 10**5000], query="x")
    yield from each("search", "asked_at", [NAIVE, NAIVE.date(), EARLY, LATE, "now", 5, True], query="x")
    yield from each("search", "explain", ["no", 1, None], query="x")
    yield from each("search", "filter", [{"tags": bad} for bad in ("x", 5, [5])], "filter.tags", query="x")
    yield from calls_of_provenance(no_ids)


def calls_of_provenance(no_ids: list[Any]) -> Iterator[Call]:
    yield from each("move", "id", no_ids, layer="user")
    yield from each("move", "layer", ["planet", "", 5, True, []], id="ID")
    yield from each("add_messages", "messages", ["text", 5, None])
    for operation in ("quarantine", "plan_quarantine"):
        yield from each(operation, "source", ["moon", "", 5, True])
        for name in ("reference", "author", "session"):
            yield from each(operation, name, ["a\nb", "", 5, True])
        for name in ("since", "until"):
            yield from each(operation, name, [NAIVE, "now", 5, True])
        yield from each(operation, "ids", [5, True])
    yield from each("quarantine", "plan", [5, "text", True])
    yield from each("release erase_quarantined", "run_id", [5, True, b"x", ["x"], "\ud800"])
    yield from each("undo", "id", [5, True, b"x", ["x"]])
    yield from each("undo undoable", "layers", [["planet"]], "layer")
    yield from each("undoable", "limit", [0, -1, True, "5", None, 1.5])
    yield from each("point_to", "path", [None, 5, True, b"x", "a\x00b"])
    yield from each("point_to", "type", ["moon", "", 5, None], path=__file__)
    yield from each("refresh", "paths", [None, 5, True])
    yield from each("refresh", "dry_run", ["no", 1, None], paths=[])


@pytest.fixture(scope="module", params=["ram", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memories]:
    """One for all cases: none of them may change it."""
    opener = Opener(request.param, tmp_path_factory.mktemp("bad"))
    memories = opener(clock=HandClock(), embedder=CountingEmbedder())
    memories.view(user="ada", project="api").add("good", tags=["t"], metadata={"a": 1}, key="k")
    yield memories
    opener.close()


@pytest.fixture
def ada(database: Memories) -> View:
    return database.view(user="ada", project="api")


class Judge:
    """Collects what is wrong with the errors of many calls, so that one test can try them all."""

    def __init__(self, database: Memories) -> None:
        self._database = database
        self._view = database.view(user="ada", project="api")
        self._before = self._state()
        self.wrong: list[str] = []

    def _state(self) -> tuple[Any, ...]:
        return sequence(self._database), self._view.list(), self._view.stats().active

    def judge(self, attempt: Callable[[], object], case: Case, operation: str) -> None:
        """The error is what it should be; whether nothing changed, is looked at in the end."""
        try:
            attempt()
        except WellkeptError as error:
            told = {"kind": type(error), "operation": error.operation, "field": error.details.get("field")}
            expected = {"kind": case.kind, "operation": operation, "field": case.named}
            if case.kind is EmbedderMismatch:  # it names the two embedders
                expected["field"] = None
            if told != expected or not error.hint or error.retryable or len(str(error)) > 600:
                self.wrong.append(f"{operation} {case}: {told} {str(error)[:600]}")
        except Exception as error:  # noqa: BLE001  # reason: any other error is what this looks for
            self.wrong.append(f"{operation} {case}: {type(error).__name__} {str(error)[:100]}")
        else:
            self.wrong.append(f"{operation} {case}: no error")

    def check(self) -> None:
        assert self.wrong == []
        assert self._state() == self._before


@pytest.fixture
def judge(database: Memories) -> Judge:
    return Judge(database)


@pytest.mark.slow
@pytest.mark.req("L1", "H1", "H10")
def test_adding(ada: View, judge: Judge) -> None:
    cases = [*fields_of_a_memory(), *fields_of_a_new_one()]
    assert {case.field for case in cases} == set(NewMemory.__dataclass_fields__)
    for case in cases:
        arguments: dict[str, Any] = {"content": "good", case.field: case.value}
        judge.judge(partial(ada.add, **arguments), case, "add")
        judge.judge(partial(ada.add_many, ["good", NewMemory(**arguments), "good"]), case, "add_many")
    judge.check()


@pytest.mark.req("L6", "H10")
def test_updating(ada: View, judge: Judge) -> None:
    id = ada.list().memories[0].id
    names = {*ChangedFields.__annotations__, "vector", "if_version", "layer", "nonsense"}
    cases = [case for case in (*fields_of_a_memory(), *fields_of_an_update()) if case.field in names]
    assert {case.field for case in cases} == names
    for case in cases:
        arguments: dict[str, Any] = {"title": "changed as well", case.field: case.value}
        judge.judge(partial(ada.update, id, **arguments), case, "update")
    judge.check()


@pytest.mark.req("H10")
def test_the_other_operations(ada: View, judge: Judge) -> None:
    id = ada.list().memories[0].id
    kinds: dict[str, type[WellkeptError]] = {"layer": InvalidLayer, "team": MissingIdentifier}
    for operation, arguments, told in calls():
        given = arguments | {"id": id} if arguments.get("id") == "ID" else arguments
        kind = QueryTooLong if given.get("query") == "x" * 32_769 else kinds.get(told, InvalidInput)
        case = Case(told, list(given.values())[-1], kind)
        judge.judge(partial(getattr(ada, operation), **given), case, operation)
    judge.check()


@pytest.mark.req("H10")
def test_an_id_of_something_else_is_not_called_that_of_a_memory(database: Memories) -> None:
    view = database.view(user="ada")
    every: list[tuple[Callable[[Any], object], str, str]] = [
        (view.release, "run_id", "view.quarantine"),
        (view.erase_quarantined, "run_id", "view.quarantine"),
        (view.undo, "id", "view.undoable"),
        (database.upkeep.undo, "run_id", "memories.upkeep.runs"),
        (database.upkeep.release, "hold_id", "memories.upkeep.holds"),
        (database.agent("debugger", user="ada").context.pin, "id", "window.items"),
    ]
    for call, named, hint in every:
        with pytest.raises(InvalidInput) as caught:
            call(5)
        assert (caught.value.details["field"], hint in caught.value.hint) == (named, True), call
        assert "memory.id" not in caught.value.hint


def test_every_operation_is_tried() -> None:
    public = {name for name, _ in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    assert public == {*(operation for operation, _, _ in calls()), "add", "position"}


@pytest.mark.req("H1", "H10")
def test_identities(database: Memories, judge: Judge) -> None:
    for layer in Layer:
        for bad in (*CONTROLS, "x" * 257, *WRONG_TYPES):
            ids: dict[str, Any] = {"user": "ada", layer.value: bad}
            judge.judge(partial(database.view, **ids), Case(layer.value, bad), "view")
    judge.check()


@pytest.mark.req("H1", "H10")
def test_nobody(database: Memories, judge: Judge) -> None:
    for ids in ({}, {"session": "s"}, {"session": "s", "team": "t"}):
        judge.judge(partial(database.view, **ids), Case("user", None, MissingIdentifier), "view")  # type: ignore[arg-type]  # only ids
    judge.check()


def test_the_table_knows_every_field() -> None:
    tried = {case.field for case in (*fields_of_a_memory(), *fields_of_a_new_one())}
    assert tried == set(NewMemory.__dataclass_fields__)
    assert set(NewFields.__annotations__) <= tried


def test_the_first_vector_decides(tmp_path: Path) -> None:
    """Without an embedder and without a vector in the store, the batch must agree with itself."""
    for url in ("ram:", tmp_path / "memory.db"):
        with wellkept.open(url, embedder=None) as memories:
            view = memories.view(user="ada")
            with pytest.raises(InvalidInput) as caught:
                view.add_many([NewMemory(content="x", vector=[1.0]), NewMemory(content="y", vector=[1.0, 2.0])])
            assert caught.value.details["field"] == "vector"
            assert sequence(memories) == 0
            assert "embedder" not in memories.settings()
            assert view.add("z", vector=[1.0, 2.0, 3.0]).version == 1
