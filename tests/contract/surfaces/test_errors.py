"""The errors: their tree, what they carry, and what they never say."""

import copy
import logging
import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from tests.support.stand_ins import BrokenEmbedder, HandClock, Opener
from wellkept import Filter, Memories, NewMemory, View, WellkeptError, errors
from wellkept.types import KnowledgePointer, PointerType, Source, SourceType, Vector

LINE = re.compile(
    r" {4}(?P<bars>[│├└─ ]*)(?P<name>\w+)( \((?P<builtin>\w+)\))?( +(?P<code>[A-Z_]+))?( +(?P<again>retryable))?"
)
TEN_CODES = {
    *("INVALID_LAYER", "MISSING_IDENTIFIER", "MEMORY_NOT_FOUND", "CONTENT_TOO_LONG", "QUERY_TOO_LONG"),
    *("EMBEDDING_FAILED", "PROVIDER_ERROR", "RATE_LIMITED", "UNAUTHORIZED", "CONFIGURATION_ERROR"),
}


@dataclass(frozen=True)
class Drawn:
    name: str
    parent: str
    builtin: str
    code: str
    retryable: bool


def drawn() -> list[Drawn]:
    """The tree as the docstring draws it."""
    found: list[Drawn] = []
    path: list[str] = []
    for text in (errors.__doc__ or "").splitlines():
        match = LINE.fullmatch(text)
        if match and (match["bars"] or match["name"] == "WellkeptError"):
            depth = len(match["bars"]) // 4
            path[depth:] = [match["name"]]
            parent = path[depth - 1] if depth else ""
            code = match["code"] or "INTERNAL"
            found.append(Drawn(match["name"], parent, match["builtin"] or "", code, bool(match["again"])))
    return found


def kinds(root: type[WellkeptError] = WellkeptError) -> list[type[WellkeptError]]:
    ours = [kind for kind in root.__subclasses__() if kind.__module__ == errors.__name__]
    return [root, *(kind for below in ours for kind in kinds(below))]


@pytest.mark.req("H10")
def test_the_tree_is_the_one_that_the_docstring_draws() -> None:
    found = [
        Drawn(
            kind.__name__,
            kind.__bases__[0].__name__ if kind is not WellkeptError else "",
            kind.__bases__[1].__name__ if len(kind.__bases__) > 1 else "",
            kind.code,
            kind.retryable,
        )
        for kind in kinds()
    ]
    assert found == drawn()
    assert len(found) > 20


@pytest.mark.req("H10")
def test_codes_name_their_errors() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(set(codes)) == len(codes)
    assert set(codes) >= TEN_CODES
    again = {kind.code for kind in kinds() if kind.retryable}
    assert again == {
        *("EMBEDDING_FAILED", "RATE_LIMITED"),
        *("PROVIDER_ERROR", "STORE_BUSY", "CONCURRENCY", "STORE_FULL"),
    }


def test_errors_travel_between_processes() -> None:
    carriers: list[Callable[[Any], Any]] = [lambda error: pickle.loads(pickle.dumps(error)), copy.copy]
    given = {"message": "it broke", "operation": "add", "details": {"field": "title", "n": [1]}, "hint": "mend it"}
    wrong: dict[str, object] = {}
    for kind, carry in product(kinds(), carriers):
        error = kind("it broke", operation="add", details={"field": "title", "n": [1]}, hint="mend it")
        again = carry(error)
        if type(again) is not kind or not vars(again) == vars(error) == given:
            wrong[f"{kind.__name__} by {carry.__name__}"] = (type(again), vars(again))
        if (again.code, again.retryable, str(again)) != (kind.code, kind.retryable, str(error)):
            wrong[f"{kind.__name__} by {carry.__name__}, told"] = (again.code, again.retryable, str(again))
    assert wrong == {}


def test_errors_say_what_happened_and_what_to_do() -> None:
    texts = {}
    for kind in kinds():
        given = {"a": 1}
        error = kind("it broke", details=given)
        given["a"] = 2
        texts[kind.__name__] = (str(kind("it broke", hint="mend it")), str(error), error.operation, error.details)
    assert texts == dict.fromkeys(texts, ("it broke (mend it)", "it broke", "", {"a": 1}))


CANARY = "CANARY-5ebe2294"
LATER = datetime(2026, 1, 1, tzinfo=UTC)
NAIVE = datetime.now(UTC).replace(tzinfo=None)


class Secret:
    """Something that is not JSON and says too much about itself."""

    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__


def secret_text(tail: str = "\n") -> str:
    return f"{CANARY}{tail}"


NEW_FIELDS: list[dict[str, Any]] = [
    {"content": secret_text("\x00")},
    {"content": secret_text("\ud800")},
    {"content": CANARY * (10 * 1024 * 1024 // len(CANARY) + 1)},
    {"content": [CANARY]},
    {"content": Secret()},
    {"content": CANARY, "importance": CANARY},
    {"content": CANARY, "importance": 7},
    {"content": CANARY, "layer": "x" * 40 + CANARY},
    {"content": CANARY, "layer": Secret()},
    {"content": CANARY, "layer": "team"},
    {"content": CANARY, "type": "x" * 40 + CANARY},
    {"content": CANARY, "type": Secret()},
    {"content": CANARY, "tags": CANARY},
    {"content": CANARY, "tags": [secret_text()]},
    {"content": CANARY, "tags": [CANARY * 300]},
    {"content": CANARY, "metadata": {"a": Secret()}},
    {"content": CANARY, "metadata": {Secret(): 1}},
    {"content": CANARY, "metadata": {CANARY: float("nan")}},
    {"content": CANARY, "metadata": {"a": secret_text("\ud800")}},
    {"content": CANARY, "metadata": {"a": CANARY * 100_000}},
    {"content": CANARY, "metadata": [CANARY]},
    {"content": CANARY, "key": secret_text()},
    {"content": CANARY, "key": CANARY * 100},
    {"content": CANARY, "description": secret_text("\x00")},
    {"content": CANARY, "description": CANARY * 10_000},
    *({"content": CANARY, name: secret_text()} for name in ("title", "language", "author", "role", "type_name")),
    *({"content": CANARY, name: [CANARY]} for name in ("title", "author", "description", "key")),
    {"content": CANARY, "tags": [Secret()]},
    {"content": CANARY, "references": [Secret()]},
    *({"content": CANARY, name: CANARY} for name in ("confidence", "relevance", "decay_factor")),
    {"content": CANARY, "source": CANARY},
    {"content": CANARY, "source": Source(type=SourceType.MANUAL, reference=secret_text())},
    {"content": CANARY, "pointer": Secret()},
    {
        "content": CANARY,
        "pointer": KnowledgePointer(
            source_type=PointerType.ADR, source_id=secret_text(), content_hash="h", synced_at=LATER
        ),
    },
    {"content": CANARY, "references": [secret_text()]},
    {"content": CANARY, "occurred_at": NAIVE},
    {"content": CANARY, "expires_at": CANARY},
    {"content": CANARY, "vector": [CANARY]},
    {"content": CANARY, "vector": CANARY},
    {"content": CANARY, "vector": Vector(secret_text(), b"\0\0\0\1")},
    {"content": CANARY, "vector": [float("nan")]},
]


def adding(fields: dict[str, Any]) -> Callable[[View, str], object]:
    return lambda view, _: view.add(**fields)


def adding_many(fields: dict[str, Any]) -> Callable[[View, str], object]:
    return lambda view, _: view.add_many([CANARY, NewMemory(**fields)])


def updating(fields: dict[str, Any]) -> Callable[[View, str], object]:
    return lambda view, id: view.update(id, **fields)


def attempts() -> dict[str, Callable[[View, str], object]]:
    """Calls that fail; each gets a view and the id of a memory that holds the canary, too."""
    found: dict[str, Callable[[View, str], object]] = {}
    for number, fields in enumerate(NEW_FIELDS):
        name = f"{number} {list(fields)[-1]}"
        found[f"add {name}"] = adding(fields)
        found[f"add_many {name}"] = adding_many(fields)
        if not set(fields) & {"layer", "key", "tags"}:
            found[f"update {name}"] = updating(fields)
    return found | {
        "add key taken": lambda view, _: view.add(f"other than {CANARY}", key=f"key {CANARY}"),
        "add_many one twice": lambda view, _: view.add_many(
            [NewMemory(content=f"{CANARY}{n}", key=f"new {CANARY}") for n in (1, 2)]
        ),
        "update version": lambda view, id: view.update(id, content=f"{CANARY}!", if_version=9),
        "update missing": lambda view, id: view.update("missing", content=CANARY),
        "update tags": lambda view, id: view.update(id, add_tags=[secret_text()]),
        "update metadata": lambda view, id: view.update(id, remove_metadata=[secret_text()]),
        "forget reason": lambda view, id: view.forget(id, reason=secret_text()),
        "search long": lambda view, _: view.search(CANARY * 3_000),
        "search surrogate": lambda view, _: view.search(secret_text("\ud800")),
        "search filter": lambda view, _: view.search(CANARY, filter=Filter(within=CANARY)),
        "list text": lambda view, _: view.list(filter=Filter(content_contains=secret_text("\x00"))),
        "list tags": lambda view, _: view.list(filter=Filter(tags=[secret_text()])),
        "list authors": lambda view, _: view.list(filter=Filter(authors=CANARY)),
        "list metadata": lambda view, _: view.list(filter=Filter(metadata={"a": Secret()})),
        "list field": lambda view, _: view.list(filter={"x" * 40 + CANARY: 1}),
        "list cursor": lambda view, _: view.list(cursor=CANARY),
        "list sort": lambda view, _: view.list(sort_by="x" * 40 + CANARY),
        "list references": lambda view, _: view.list(filter=Filter(references=[secret_text()])),
        "list moment": lambda view, _: view.list(as_of=Secret()),
        "changes": lambda view, _: view.changes(after=Secret()),
    }


ATTEMPTS = attempts()


def told(error: BaseException) -> str:
    assert isinstance(error, WellkeptError)
    return f"{error} {error.args} {error.message} {error.hint} {error.details!r} {error.operation}"


@pytest.mark.req("H10")
def test_errors_and_logs_never_hold_content(opener: Opener, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    memories = opener(clock=clock)
    view = memories.view(user="ada")
    memory = view.add(f"holds {CANARY}", key=f"key {CANARY}", tags=[CANARY], metadata={CANARY: CANARY}, title=CANARY)
    clock.forward(seconds=1)
    leaks: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for name, attempt in ATTEMPTS.items():
            try:
                leaks.append(f"{name}: answered {attempt(view, memory.id)}")
            except WellkeptError as error:
                if CANARY in told(error):
                    leaks.append(f"{name}: {error}")
                if not error.hint or error.operation != name.split()[0]:
                    leaks.append(f"{name}: hint {error.hint!r}, operation {error.operation!r}")
    assert leaks == []
    assert CANARY not in caplog.text
    assert len(view.changes()) == 1


def refusing(texts: Sequence[str]) -> list[Any]:
    raise TypeError(f"cannot embed {texts}")


@pytest.mark.req("H10")
@pytest.mark.parametrize("answer", [refusing, lambda texts: texts, lambda texts: [{"text": texts}], lambda texts: []])
def test_errors_of_embedders_do_not_hold_what_they_embed(
    opener: Opener, answer: Callable[[Sequence[str]], list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    view = opener(embedder=BrokenEmbedder(answer)).view(user="ada")
    for attempt in (lambda: view.add(CANARY), lambda: view.search(CANARY), lambda: view.add_many([CANARY])):
        with caplog.at_level(logging.DEBUG), pytest.raises(WellkeptError) as caught:
            attempt()
        assert CANARY not in told(caught.value)
    assert CANARY not in caplog.text


@pytest.mark.req("H10")
def test_an_embedder_that_is_down_tells_nothing_of_what_it_should_embed(
    opener: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(texts: Sequence[str]) -> list[Any]:
        raise ValueError(f"cannot embed {texts}")

    memories = opener(embedder=BrokenEmbedder(failing))
    view = memories.view(user="ada")
    with caplog.at_level(logging.DEBUG):
        view.add(CANARY)
        assert [hit.memory.content for hit in view.search(CANARY)] == [CANARY]
        with pytest.raises(WellkeptError) as caught:
            memories.reembed()
        findings = memories.doctor().findings
    assert CANARY not in told(caught.value)
    assert CANARY not in caplog.text + str(findings)


@pytest.mark.req("H10")
def test_errors_after_closing_do_not_hold_content(memories: Memories) -> None:
    view = memories.view(user="ada")
    memory = view.add(CANARY)
    memories.close()
    memories.close()
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: view.add(CANARY),
        "get": lambda: view.get(memory.id),
        "search": lambda: view.search(CANARY),
        "list": lambda: view.list(filter=Filter(content_contains=CANARY)),
        "update": lambda: view.update(memory.id, content=f"{CANARY}!"),
        "forget": lambda: view.forget(memory.id),
        "stats": view.stats,
        "changes": view.changes,
        "settings": memories.settings,
    }
    for name, call in calls.items():
        with pytest.raises(errors.StoreClosed) as caught:
            call()
        assert CANARY not in told(caught.value)
        assert caught.value.operation == name
        assert not caught.value.retryable
