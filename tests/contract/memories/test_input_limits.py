"""Every list, text and nesting that a caller passes has a limit; what has no end is not read to its end."""

from collections.abc import Callable, Iterator
from itertools import count, repeat
from typing import Any

import pytest

import wellkept
from tests.support.refusals import error_of
from wellkept import Memories
from wellkept.errors import InvalidInput
from wellkept.operations import Caller, call
from wellkept.stores.ram import RamStore
from wellkept.types import Identity, Layer, Owner

LONG = "x" * 20_000_000


def deep(levels: int = 100_000) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def endless() -> Iterator[str]:
    return map(str, count())


CALLS: dict[str, Callable[[Memories], Any]] = {
    "content": lambda m: m.view(user="ada").add(LONG),
    "title": lambda m: m.view(user="ada").add("x", title=LONG),
    "description": lambda m: m.view(user="ada").add("x", description=LONG),
    "tags": lambda m: m.view(user="ada").add("x", tags=endless()),
    "one tag again and again": lambda m: m.view(user="ada").add("x", tags=repeat("a")),
    "references": lambda m: m.view(user="ada").add("x", references=endless()),
    "derived_from": lambda m: m.view(user="ada").add("x", derived_from=endless()),
    "supersedes": lambda m: m.view(user="ada").add("x", supersedes=endless()),
    "metadata, deep": lambda m: m.view(user="ada").add("x", metadata=deep()),
    "metadata, large": lambda m: m.view(user="ada").add("x", metadata={"a": LONG}),
    "vector": lambda m: m.view(user="ada").add("x", vector=map(float, count(1))),
    "key": lambda m: m.view(user="ada").put(LONG, "x"),
    "items": lambda m: m.view(user="ada").add_many(endless()),
    "an id": lambda m: m.view(user="ada").get(LONG),
    "ids": lambda m: m.view(user="ada").get_many(endless()),
    "history": lambda m: m.view(user="ada").history(LONG),
    "ids to forget": lambda m: m.view(user="ada").forget_many(endless()),
    "reason": lambda m: m.view(user="ada").forget("x", reason=LONG),
    "query": lambda m: m.view(user="ada").search(LONG),
    "precedence": lambda m: m.view(user="ada").search("x", precedence=repeat("user")),
    "layers": lambda m: m.view(user="ada").count(layers=repeat("user")),
    "layers of a session": lambda m: m.view(user="ada").sessions.create("a").view.count(layers=repeat("session")),
    "cursor": lambda m: m.view(user="ada").list(cursor=LONG),
    "position": lambda m: m.view(user="ada").changes(after=LONG),
    "as_of": lambda m: m.view(user="ada").count(as_of=LONG),
    **{
        f"filter.{name}": lambda m, name=name: m.view(user="ada").count(filter={name: endless()})  # type: ignore[misc]
        for name in ("tags", "any_tags", "no_tags", "authors", "keyed", "references")
    },
    "filter.types": lambda m: m.view(user="ada").count(filter={"types": repeat("fact")}),
    "filter.metadata": lambda m: m.view(user="ada").count(filter={"metadata": deep()}),
    "filter.text": lambda m: m.view(user="ada").count(filter={"text": LONG}),
    "filter.content_contains": lambda m: m.view(user="ada").count(filter={"content_contains": LONG}),
    "filter.within": lambda m: m.view(user="ada").count(filter={"within": LONG}),
    "user": lambda m: m.view(user=LONG),
    "session": lambda m: m.view(user="ada").sessions.create(LONG),
    "metadata of a session": lambda m: m.view(user="ada").sessions.create("a", metadata=deep()),
    "preferences": lambda m: m.view(user="ada").sessions.create("a", preferences={"a": deep()}),
    "working memory, key": lambda m: m.agent("a").working.set(LONG, 1),
    "working memory, value": lambda m: m.agent("a").working.set("a", deep()),
    "context": lambda m: m.agent("a").context.add("user", LONG),
    "hold": lambda m: m.upkeep.hold({"tags": endless()}, reason="x"),
    "name of a key": lambda m: m.keys.create(LONG, owners=None),
    "owners of a key": lambda m: m.keys.create("a", owners=repeat(Owner(Layer.USER, ("ada",)))),
    "verb": lambda m: call(LONG, Caller(memories=m, identity=Identity(user="ada")), {}),
    "payload, deep": lambda m: call(
        "add", Caller(memories=m, identity=Identity(user="ada")), {"content": ["x"], "metadata": deep()}
    ),
    "payload, wide": lambda m: call(
        "add", Caller(memories=m, identity=Identity(user="ada")), {"content": ["x"] * 200_000}
    ),
}


@pytest.mark.req("J12")
@pytest.mark.timeout(120)
def test_what_is_too_much_is_refused_and_changes_nothing() -> None:
    wrong: dict[str, object] = {}
    for name, attempt in CALLS.items():
        store = RamStore()
        with wellkept.open(store=store, embedder=None) as memories:
            error = error_of(attempt, memories)
            if not isinstance(error, InvalidInput) or len(str(error)) >= 2_000:
                wrong[name] = repr(error)[:200]
            if list(store.journal.feed()):
                wrong[f"{name}, stored"] = "something"
    assert wrong == {}
