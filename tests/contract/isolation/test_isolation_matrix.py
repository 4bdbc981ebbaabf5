"""Every operation, with every foreign id, from every look-alike of an owner: the same answer as for a missing id."""

import inspect
import re
import unicodedata
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, sequence
from wellkept import Filter, Memories, Memory, NewMemory, View, WellkeptError
from wellkept.errors import InvalidInput
from wellkept.types import LayerName, Stats

HOSTILE_IDS = [
    *("acme", "acme-corp", "acme ", " acme", "Acme", "ACME", "acmé", unicodedata.normalize("NFD", "acmé")),
    *("a_b", "axb", "a%b", "%", "_", "*", "?", "[a]", ".", "..", "/", ":", "a:b", "a", "b", "a/b", "a,b", "|", "a|b"),
    *("'", '"', "a'b", 'a"b', "\\", "a\\b", '"]', '","', "' OR '1'='1", "; DROP TABLE journal; --", "$", "{}", "null"),
    *(
        "0",
        "00",
        "1",
        "1.0",
        "-1",
        "Default",
        "user",
        "ß",
        "ss",
        "SS",
        "ı",
        "i",
        "İ",
        "ﬁ",
        "fi",
        "\u00c5",
        "\u212b",
        "🙂",
        "🙂️",
    ),
    *("\u200b", "a\u200bb", "\u202e", "\ufeff", "a\xa0b", "x" * 256, "x" * 255),
]
BROKEN_IDS = [
    *("", "a\nb", "a\rb", "a\tb", "a\x00", "\x00", "\x1b[0m", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", "x" * 257),
]
NAMES = ("agent", "user", "session", "project", "team", "org", "company")

# Each takes a view and an id, and answers something that can be compared.
OPERATIONS: dict[str, Callable[[View, str], Any]] = {
    "get": lambda view, id: view.get(id),
    "get forgotten": lambda view, id: view.get(id, include_forgotten=True),
    "get vector": lambda view, id: view.get(id, include_vector=True),
    "get then": lambda view, id: view.get(id, as_of=view.position()),
    "get_many": lambda view, id: view.get_many([id, id], include_forgotten=True),
    "get_many then": lambda view, id: view.get_many([id], as_of=view.position()),
    "update": lambda view, id: view.update(id, content="taken over"),
    "update nothing": lambda view, id: view.update(id),
    "update version": lambda view, id: view.update(id, title="taken over", if_version=1),
    "update vector": lambda view, id: view.update(id, vector=[1.0] * 16),
    "update wrong vector": lambda view, id: view.update(id, vector=[1.0] * 3),
    "update bad": lambda view, id: view.update(id, importance=7.0),
    "forget": lambda view, id: view.forget(id),
    "forget for good": lambda view, id: view.forget(id, permanent=True, reason="mine now"),
    "forget_many": lambda view, id: view.forget_many(filter={"references": [id]}, permanent=True),
    "restore": lambda view, id: view.restore(id),
    "history": lambda view, id: view.history(id),
    "lineage": lambda view, id: view.lineage(id),
    "move": lambda view, id: view.move(id, layer=view.layers[0]),
    "plan_quarantine": lambda view, id: view.plan_quarantine(ids=[id]).steps,
    "quarantine": lambda view, id: view.quarantine(ids=[id]).quarantined,
    "release": lambda view, id: view.release(id),
    "erase_quarantined": lambda view, id: view.erase_quarantined(id),
    "undo": lambda view, id: view.undo(id),
    "references": lambda view, id: view.list(filter=Filter(references=[id], max_depth=10)).memories,
    "count references": lambda view, id: view.count(filter={"references": id}),
    "search references": lambda view, id: view.search("secret tea", filter={"references": [id]}).hits,
}
LISTS = {"references", "count references", "search references", "forget_many", "plan_quarantine", "quarantine"}
"""The operations that take lists of ids."""


def answer(operation: Callable[[View, str], Any], view: View, id: str) -> tuple[Any, ...]:
    """What a caller can learn: the value, or all that the error says apart from the id itself."""
    try:
        return ("value", operation(view, id))
    except WellkeptError as error:
        told = (str(error), error.message, error.hint, error.operation, repr(dict(error.details)))
        return (type(error), error.code, *(text.replace(id, "ID") for text in told))


def found(view: View) -> dict[str, Any]:
    """Everything that a view shows without naming an id."""
    everything = Filter(include_forgotten=True)
    return {
        "list": view.list(filter=everything).memories,
        "list then": view.list(filter=everything, as_of=view.position()).memories,
        "count": view.count(filter=everything),
        "changes": view.changes().versions,
        "search": view.search("secret tea").hits,
        "search then": view.search("secret tea", as_of=view.position()).hits,
        "stats": view.stats(),
    }


EMPTY = {
    "list": (),
    "list then": (),
    "count": 0,
    "changes": (),
    "search": (),
    "search then": (),
    "stats": Stats(),
}


@pytest.fixture
def database(opener: Opener, clock: HandClock) -> Memories:
    return opener(clock=clock, embedder=CountingEmbedder())


def fill(view: View, layer: LayerName) -> list[Memory]:
    """An active, an updated, a forgotten and an erased memory; references among them; a key."""
    first = view.add("secret tea", layer=layer, tags=["t"], key="k", author="ada")
    changed = view.add("secret cake", layer=layer, references=[first.id])
    view.update(first.id, metadata={"a": "secret"}, references=[changed.id])
    view.update(changed.id, title="secret")
    gone = view.add("secret coffee", layer=layer)
    view.forget(gone.id)
    erased = view.add("secret milk", layer=layer)
    view.forget(erased.id, permanent=True)
    return [first, changed, gone, erased]


def reached(owner: View, stranger: View, ids: list[str], memories: Memories) -> dict[str, Any]:
    """What the stranger finds or changes with the owner's ids, by the operation that did it. It should be nothing."""
    wrong = {name: value for name, value in found(stranger).items() if value != EMPTY[name]}
    if count := stranger.forget_many(filter=Filter(), permanent=True).count:
        wrong["forget_many of everything"] = count
    before, last = found(owner), sequence(memories)
    for name, operation in OPERATIONS.items():
        missing = answer(operation, stranger, "01a00000-0000-7000-8000-000000000000")
        answers = [answer(operation, stranger, id) for id in ids]
        if differing := [told for told in answers if told != missing]:
            wrong[name] = f"of a missing id: {missing}, of foreign ones: {differing}"
    after = found(owner)
    wrong |= {f"{name} of the owner": value for name, value in after.items() if value != before[name]}
    if (written := sequence(memories) - last) != 0:
        wrong["versions written"] = written
    return wrong


LAYERS: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    # A layer, the ids of its owner, and those of somebody who has all but one of them.
    ("agent", {"agent": "x", "user": "ada"}, {"agent": "y", "user": "ada"}),
    ("agent", {"agent": "x", "user": "ada"}, {"agent": "x", "user": "bob"}),
    ("agent", {"agent": "x", "user": "ada"}, {"agent": "ada", "user": "x"}),
    ("agent", {"agent": "x"}, {"agent": "x", "user": "ada"}),
    ("user", {"user": "ada"}, {"user": "bob"}),
    ("session", {"user": "ada", "session": "s"}, {"user": "ada", "session": "t"}),
    ("session", {"user": "ada", "session": "s"}, {"user": "bob", "session": "s"}),
    ("session", {"user": "ada", "session": "s"}, {"user": "s", "session": "ada"}),
    ("session", {"user": "ada", "session": "s"}, {"user": "ada", "agent": "s"}),
    *((layer, {layer: "x"}, {layer: "y"}) for layer in ("project", "team", "org", "company")),
    *((layer, {layer: "x"}, {other: "x"}) for layer in ("user", "project") for other in ("team", "org", "company")),
]


@pytest.mark.req("H1", "H6", "L11")
def test_no_operation_reaches_another_owner(opener: Opener, clock: HandClock) -> None:
    wrong = {}
    for number, (layer, mine, other) in enumerate(LAYERS):
        database = opener(clock=clock, embedder=CountingEmbedder(), name=f"layer-{number}")
        owner, stranger = database.view(**mine), database.view(**other)
        made = fill(owner, layer)
        if complaints := reached(owner, stranger, [memory.id for memory in made], database):
            wrong[f"{other}, who is not the {layer} {mine}"] = complaints
    assert wrong == {}


@pytest.mark.req("H1", "H6", "L11")
def test_look_alikes_are_strangers(database: Memories) -> None:
    """Each hostile id owns two memories, and sees those two only."""
    views = {id: database.view(user=id) for id in HOSTILE_IDS}
    assert len(views) == len(set(HOSTILE_IDS)) == len(HOSTILE_IDS)
    news = [NewMemory(content=f"secret {n}", tags=["t"], key=f"k{n}") for n in (1, 2)]
    made = {id: view.add_many(news) for id, view in views.items()}
    assert len({memory.id for pair in made.values() for memory in pair}) == 2 * len(views)
    everything = [memory.id for pair in made.values() for memory in pair]
    for id, view in views.items():
        mine = {memory.id for memory in made[id]}
        assert {memory.id for memory in view.list(limit=100)} == mine
        assert {memory.id for memory in view.list(limit=100, filter=Filter(tags=["t"]), as_of=view.position())} == mine
        assert set(view.get_many(everything)) == mine
        assert {hit.memory.id for hit in view.search("secret", limit=100)} == mine
        assert {version.memory_id for version in view.changes()} == mine
        assert view.count() == view.stats().active == 2


@pytest.mark.req("H1", "H6", "L11")
@pytest.mark.parametrize("layer", ["project", "session"])
def test_look_alikes_change_nothing_of_each_other(database: Memories, layer: LayerName) -> None:
    ids = HOSTILE_IDS[:24]
    views = [database.view(**{"user": "ada", layer: id}) for id in ids]  # type: ignore[arg-type]  # only ids
    made = [view.add(f"secret of {number}", layer=layer) for number, view in enumerate(views)]
    before = [view.list(layers=[layer]).memories for view in views]
    last = sequence(database)
    for view, own in zip(views, made, strict=True):
        for memory in made:
            if memory is not own:
                assert answer(OPERATIONS["update"], view, memory.id) == answer(OPERATIONS["update"], view, "missing")
                assert not view.forget(memory.id, permanent=True)
                assert not view.restore(memory.id)
    assert [view.list(layers=[layer]).memories for view in views] == before
    assert sequence(database) == last


PAIRS = [
    *(("acme", "acme-corp"), ("a_b", "axb"), ("a%b", "axb"), ("%", "acme"), ("*", "acme"), ("?", "a"), ("[a]", "a")),
    *((".", ".."), (":", "a:b"), ("a:b", "a"), ("'", '"'), ("\\", "\\\\"), ("acme", "acme "), ("acme", "ACME")),
    *(("acm\u00e9", "acme\u0301"), ("🙂", "🙂\ufe0f"), ("ß", "ss"), ('","', ",")),
]


@pytest.mark.req("H1", "H6", "L11")
def test_every_operation_of_look_alikes(opener: Opener, clock: HandClock) -> None:
    wrong = {}
    for number, (mine, other) in enumerate([*PAIRS, *((two, one) for one, two in PAIRS)]):
        database = opener(clock=clock, embedder=CountingEmbedder(), name=f"pair-{number}")
        owner, stranger = database.view(team=mine), database.view(team=other)
        made = fill(owner, "team")
        if complaints := reached(owner, stranger, [memory.id for memory in made], database):
            wrong[ascii(f"{other!r}, who is not {mine!r}")] = complaints
    assert wrong == {}


def test_every_operation_is_tried() -> None:
    tried = {name.split()[0] for name in OPERATIONS} | {name.split()[0] for name in EMPTY}
    # They take no id of a memory; see the tests of keys, of the feed, and of provenance.
    adding = {"add", "add_many", "add_messages", "put", "position", "point_to", "refresh", "undoable"}
    public = {name for name, _ in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    assert public <= tried | adding


@pytest.mark.req("H6", "L11")
def test_hostile_ids_of_memories_find_nothing(database: Memories) -> None:
    view = database.view(user="ada")
    made = fill(view, "user")
    before, last = found(view), sequence(database)
    missing = {name: answer(operation, view, "missing") for name, operation in OPERATIONS.items()}
    tricks = [*HOSTILE_IDS, *BROKEN_IDS, made[0].id.upper(), made[0].id[:-1], made[0].id + " ", f"{made[0].id}%"]
    for id in tricks:
        if id == "\ud800":
            continue  # no text at all: refused, see the tests of validation
        for name, operation in OPERATIONS.items():
            if name in LISTS and id in BROKEN_IDS:
                continue  # they are checked like any other list of lines
            told = answer(operation, view, id)
            assert told[:2] == missing[name][:2], (name, id)
    assert found(view) == before
    assert sequence(database) == last


@pytest.mark.req("H1")
def test_broken_ids_open_no_view() -> None:
    wrong = {}
    with wellkept.open("ram:") as memories:
        for name, broken in product(NAMES, BROKEN_IDS):
            ids: dict[str, Any] = {"user": "ada", name: broken}
            try:
                wrong[name, broken] = repr(memories.view(**ids))
            except InvalidInput as error:
                named = (error.details["field"], error.operation) == (name, "view")
                if not named or not error.hint or re.search(r"[\x00-\x1f\ud800]", str(error)):
                    wrong[name, broken] = f"{error!r}, field {error.details['field']}, operation {error.operation}"
    assert wrong == {}


@pytest.mark.req("L11", "H6")
def test_keys_tell_nothing_of_other_owners(database: Memories) -> None:
    ada, bob = database.view(user="ada"), database.view(user="bob")
    secret = ada.add("secret tea", key="k")
    mine = bob.add("anything", key="k")
    assert mine.id != secret.id
    assert bob.add("anything", key="k").id == mine.id
    ada.forget(secret.id)
    assert bob.add("anything", key="k").id == mine.id


@pytest.mark.req("L11", "H6")
def test_foreign_memories_do_not_move_scores(database: Memories) -> None:
    ada, bob = database.view(user="ada"), database.view(user="bob")
    ada.add_many(["green tea", "black tea and milk", "cake"])
    before = [(hit.memory.id, hit.score) for hit in ada.search("tea with milk")]
    bob.add_many([f"tea {n} with milk" for n in range(30)])
    assert [(hit.memory.id, hit.score) for hit in ada.search("tea with milk")] == before


@pytest.mark.req("L11", "H6")
def test_reads_of_strangers_are_not_counted(database: Memories) -> None:
    ada, bob = database.view(user="ada"), database.view(user="bob")
    memory = ada.add("secret tea")
    for _ in range(3):
        assert bob.get(memory.id) is None
        assert bob.get_many([memory.id]) == {}
    own = ada.get(memory.id)
    assert own is not None
    assert (own.access_count, own.last_accessed_at) == (0, None)
