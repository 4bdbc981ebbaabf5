"""Bad input: a typed error that names the field, the operation and a way out; and nothing changed."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import (
    ContentTooLong,
    EmbedderMismatch,
    Filter,
    InvalidInput,
    InvalidLayer,
    KnowledgePointer,
    Memories,
    MissingIdentifier,
    NewMemory,
    QueryTooLong,
    RecollectError,
    Source,
    Vector,
    View,
)
from recollect.types import NewFields
from tests.unit.stand_ins import DIMENSION, CountingEmbedder, HandClock, Opener, sequence
from tests.unit.test_filters import BAD_FIELDS
from tests.unit.test_validation import nested

NAIVE = datetime.now(UTC).replace(tzinfo=None)
EARLY = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
LATE = datetime.max.replace(tzinfo=timezone(-timedelta(hours=12)))
ROW = [1.0] * DIMENSION
LARGE = {f"k{n}": {"in": [{"n": n, "text": "x" * 80}]} for n in range(100_000)}
CONTROLS = ("a\nb", "a\x00b", "\x1b[31m", "\x7f", "\u2028", "\ud800", "")
WRONG_TYPES = (5, 1.5, True, b"bytes", ["list"], {"a": 1}, object())


def short(value: object) -> str:
    """A name for a value that may be very long."""
    return ascii(value)[:16] if isinstance(value, str | float) else type(value).__name__


@dataclass(frozen=True)
class Case:
    """A bad value for a field, and what the error must be."""

    field: str
    value: Any
    kind: type[RecollectError] = InvalidInput
    told: str = ""

    @property
    def named(self) -> str:
        return self.told or self.field

    def __str__(self) -> str:
        return f"{self.field} {short(self.value)}"


@dataclass
class Table:
    cases: list[Case] = field(default_factory=list)

    def add(self, name: str, *values: Any, kind: type[RecollectError] = InvalidInput, told: str = "") -> None:
        self.cases += [Case(name, value, kind, told) for value in values]


def fields_of_a_memory() -> list[Case]:
    table = Table()
    table.add("content", "", " \n\t", "a\x00b", "\ud800", None, *WRONG_TYPES)
    table.add("content", "x" * (10 * 1024 * 1024 + 1), "é" * (5 * 1024 * 1024 + 1), kind=ContentTooLong)
    table.add("type", "", "nonsense", "FACT", None, 10**5000, *WRONG_TYPES)
    table.add("importance", -0.0001, 1.0001, math.nan, math.inf, -math.inf, True, "0.5", None, 10**400, [0.5])
    for name in ("confidence", "relevance", "decay_factor"):
        table.add(name, -0.1, 1.1, math.nan, True, "0.5", [0.5], 10**400)
    for name in ("title", "language", "author", "role", "type_name"):
        table.add(name, *CONTROLS, "x" * 1001, *WRONG_TYPES)
    table.add("description", "a\x00b", "\ud800", "x" * 100_001, *WRONG_TYPES)
    table.add("metadata", *(value for value in WRONG_TYPES if not isinstance(value, dict)), "text", [("a", 1)])
    table.add("metadata", LARGE, nested(33), nested(100_000), {"a": "x" * 1024 * 1024})
    table.add("metadata", *({"a": bad} for bad in (math.nan, math.inf, 2**63, -(2**63) - 1, 10**5000, b"x", {1}, 1j)))
    table.add("metadata", {"a": datetime.now(UTC)}, {"a": object()}, {1: 1}, {None: 1}, {"a": "\ud800"}, {"\ud800": 1})
    table.add("references", "text", 5, True, [5], [None], ["a\nb"], [""], ["x" * 257], [str(n) for n in range(1001)])
    table.add("source", "conversation", 5, {"type": "manual"})
    table.add("source", Source(type="moon"), Source(type=None), told="source.type")  # type: ignore[arg-type]  # on purpose
    table.add("source", Source(type="manual", reference="a\nb"), told="source.reference")  # type: ignore[arg-type]  # on purpose
    table.add("pointer", "adr", 5, {"source_id": "adr"})
    fine: dict[str, Any] = {"source_type": "adr", "source_id": "a", "content_hash": "h", "synced_at": datetime.now(UTC)}
    for part, bad in (("source_type", "moon"), ("source_id", "a\nb"), ("content_hash", ""), ("synced_at", NAIVE)):
        table.add("pointer", KnowledgePointer(**fine | {part: bad}), told=f"pointer.{part}")
    for name in ("occurred_at", "expires_at"):
        table.add(name, NAIVE, date(2026, 1, 1), "2026-01-01", 5, True)
    table.add("vector", [], [0.0] * DIMENSION, [math.nan] * DIMENSION, [math.inf] * DIMENSION, [1e39] * DIMENSION)
    table.add("vector", ROW[1:], [*ROW, 1.0], "text", 5, ["1"] * DIMENSION, b"123", object(), [[1.0]] * DIMENSION)
    table.add("vector", Vector.of("hashing-16", ROW[1:]), [1.0] * 65_537)
    table.add("vector", Vector.of("another", ROW), kind=EmbedderMismatch)
    table.add("vector", Vector("", b"\0\0\0\1"), Vector(5, b"\0\0\0\1"), told="vector.embedder")  # type: ignore[arg-type]  # on purpose
    return table.cases


def fields_of_a_new_one() -> list[Case]:
    table = Table()
    table.add("layer", "planet", "", "USER", 5, True, 10**5000, [], {}, object(), kind=InvalidLayer)
    table.add("layer", "agent", kind=MissingIdentifier, told="agent")
    table.add("layer", "session", kind=MissingIdentifier, told="session")
    table.add("layer", "company", kind=MissingIdentifier, told="company")
    table.add("tags", "text", "", 5, True, [5], [None], [""], ["x" * 257], [str(n) for n in range(101)], {"a\nb": 1})
    table.add("tags", *([text] for text in CONTROLS))
    table.add("key", *CONTROLS, "x" * 1001, *WRONG_TYPES)
    return table.cases


def fields_of_an_update() -> list[Case]:
    table = Table()
    for name in ("add_tags", "remove_tags", "remove_metadata"):
        table.add(name, "text", 5, True, [5], [None], [[]])
    table.add("add_tags", ["a\nb"], [""], [str(n) for n in range(101)])
    table.add("if_version", 0, -1, True, "1", 1.0, [1], 10**400)
    table.add("nonsense", 1)
    table.add("layer", "team")
    return table.cases


MEMORY = fields_of_a_memory()
NEW = fields_of_a_new_one()
UPDATE = fields_of_an_update()

Call = tuple[str, dict[str, Any], str]


def each(operations: str, argument: str, values: Iterable[Any], field: str = "", **others: Any) -> Iterator[Call]:
    """Calls of operations with one bad argument: the operation, all its arguments, the field to be named."""
    for operation in operations.split():
        for value in values:
            yield operation, others | {argument: value}, field or argument


def calls() -> Iterator[Call]:
    no_ids: list[Any] = [None, 5, b"x", ["x"], "\ud800"]
    no_counts: list[Any] = [-1, True, "5", None, 1.5, 10**400]
    no_moments: list[Any] = [NAIVE, NAIVE.date(), "now", -1, True, 1.5, 2**63]
    everywhere = "list count stats changes"
    yield from each("add_many", "items", ["text", 5, None, NewMemory(content="x")])
    yield from each(
        "add_many", "items", [["x", bad] for bad in (5, None, b"x", {"content": "x"}, "", "\x00")], "content"
    )
    yield from each("get update forget restore history", "id", no_ids)
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
    yield from each("list", "limit", [0, 101, *no_counts])
    yield from each("list", "offset", no_counts)
    yield from each("list", "sort_by", ["", "age", None, 5, [], 10**5000])
    yield from each("list", "cursor", ["", "x", 5, b"x", ["x"]])
    yield from each("changes", "after", no_counts)
    yield from each("changes", "limit", [0, 10_001, *no_counts])
    yield from each("search", "query", ["", " ", None, 5, b"x", "\ud800", "x" * 32_769])
    yield from each("search", "limit", [0, 1001, *no_counts], query="x")
    yield from each("search", "min_score", [-0.1, 1.1, math.nan, True, "1", None], query="x")
    yield from each("search", "explain", ["no", 1, None], query="x")
    yield from each("search", "filter", [{"tags": bad} for bad in ("x", 5, [5])], "filter.tags", query="x")


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


def check(database: Memories, attempt: Callable[[], object], case: Case, operation: str) -> None:
    """The error is what it should be, and nothing is different from before."""
    view = database.view(user="ada", project="api")
    before = (sequence(database), view.list(), view.stats().active)
    with pytest.raises(RecollectError) as caught:
        attempt()
    error = caught.value
    assert type(error) is case.kind
    if case.kind is not EmbedderMismatch:  # it names the two embedders
        assert error.details["field"] == case.named
    assert error.operation == operation
    assert error.hint
    assert not error.retryable
    assert len(str(error)) < 600
    assert (sequence(database), view.list(), view.stats().active) == before


@pytest.mark.req("L1", "H1", "H10")
@pytest.mark.parametrize("case", [*MEMORY, *NEW], ids=str)
def test_adding(database: Memories, ada: View, case: Case) -> None:
    arguments: dict[str, Any] = {"content": "good", case.field: case.value}
    if not (case.field == "metadata" and case.value is None):
        check(database, lambda: ada.add(**arguments), case, "add")
    check(database, lambda: ada.add_many(["good", NewMemory(**arguments), "good"]), case, "add_many")


@pytest.mark.req("L6", "H10")
@pytest.mark.parametrize("case", [*MEMORY, *UPDATE], ids=str)
def test_updating(database: Memories, ada: View, case: Case) -> None:
    id = ada.list().memories[0].id
    arguments: dict[str, Any] = {case.field: case.value}
    check(database, lambda: ada.update(id, **arguments), case, "update")
    arguments["title"] = "changed as well" if case.field != "title" else case.value
    check(database, lambda: ada.update(id, **arguments), case, "update")


@pytest.mark.req("L3", "L4", "L5", "L7", "H3", "H10")
@pytest.mark.parametrize(("operation", "arguments", "field"), list(calls()), ids=short)
def test_the_other_operations(
    database: Memories, ada: View, operation: str, arguments: dict[str, Any], field: str
) -> None:
    if arguments.get("id") == "ID":
        arguments = arguments | {"id": ada.list().memories[0].id}
    kind: type[RecollectError] = {"layer": InvalidLayer, "team": MissingIdentifier}.get(field, InvalidInput)
    if arguments.get("query") == "x" * 32_769:
        kind = QueryTooLong
    check(database, lambda: getattr(ada, operation)(**arguments), Case(field, None, kind), operation)


@pytest.mark.req("H1", "H10")
@pytest.mark.parametrize("name", ["agent", "user", "session", "project", "team", "org", "company"])
@pytest.mark.parametrize("bad", [*CONTROLS, "x" * 257, *WRONG_TYPES], ids=lambda bad: ascii(bad)[:16])
def test_identities(database: Memories, name: str, bad: Any) -> None:
    ids: dict[str, Any] = {"user": "ada", name: bad}
    check(database, lambda: database.view(**ids), Case(name, bad), "view")


@pytest.mark.req("H1", "H10")
@pytest.mark.parametrize("ids", [{}, {"session": "s"}, {"session": "s", "team": "t"}], ids=str)
def test_nobody(database: Memories, ids: dict[str, str]) -> None:
    check(database, lambda: database.view(**ids), Case("user", None, MissingIdentifier), "view")


def test_the_table_knows_every_field() -> None:
    tried = {case.field for case in [*MEMORY, *NEW]}
    assert tried == set(NewMemory.__dataclass_fields__)
    assert set(NewFields.__annotations__) <= tried


def test_the_first_vector_decides(tmp_path: Path) -> None:
    """Without an embedder and without a vector in the store, the batch must agree with itself."""
    for url in ("ram:", tmp_path / "memory.db"):
        with recollect.open(url) as memories:
            view = memories.view(user="ada")
            with pytest.raises(InvalidInput) as caught:
                view.add_many([NewMemory(content="x", vector=[1.0]), NewMemory(content="y", vector=[1.0, 2.0])])
            assert caught.value.details["field"] == "vector"
            assert sequence(memories) == 0
            assert "embedder" not in memories.settings()
            assert view.add("z", vector=[1.0, 2.0, 3.0]).version == 1


@pytest.mark.parametrize(("name", "moment"), [("occurred_at", EARLY), ("expires_at", LATE)])
def test_times_at_the_ends_of_the_calendar(database: Memories, ada: View, name: str, moment: datetime) -> None:
    arguments: dict[str, Any] = {"content": "x", name: moment}
    check(database, lambda: ada.add(**arguments), Case(name, moment), "add")
