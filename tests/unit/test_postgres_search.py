"""The two places of the PostgreSQL index find alike, and owners move between them as they grow and shrink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellkept.indexes.ram import RamIndex
from wellkept.ports import Index
from wellkept.recall.candidates import Candidates
from wellkept.recall.conversations import NOBODY
from wellkept.stores.postgres import options, search_schema
from wellkept.stores.postgres.rows import named
from wellkept.stores.postgres.search import PostgresIndex
from wellkept.stores.postgres.search_tables import TableIndex
from wellkept.stores.postgres.server import Server
from wellkept.testing.builders import START_US, vector, where
from wellkept.testing.index import ADA, BOB, BOTH, Drafts, memories
from wellkept.text import words
from wellkept.types import Mark, Owner, Status, Stored

RAM_ROWS = 6
DRAFTS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(("dark mode", "tea tea", "a dark tea", "nothing of it")),
            "vector": st.tuples(*[st.integers(-3, 3).map(float)] * 4).filter(any),
            "occurred_at": st.sampled_from([START_US + minutes * 60_000_000 for minutes in (0, 10, 39, 41, 75, 300)]),
        },
        optional={
            "author": st.sampled_from(("ada", "bob tea")),
            "role": st.sampled_from(("user", "assistant")),
            "session": st.sampled_from(("monday", "tuesday")),
        },
    ),
    max_size=14,
)


@pytest.fixture
def tables(postgres_url: str) -> Iterator[TableIndex]:
    server = Server(options.parse(f"{postgres_url}?schema=public"))
    server.write(lambda session: [session.run(one) for one in search_schema.UP])
    yield TableIndex(server)
    server.close()


def _told(found: Candidates) -> dict[tuple[Owner, str], object]:
    """What candidates say of each memory, whatever the order of their rows and the numbers of conversations."""
    keys = [(found.owners[place], one) for place, one in zip(found.owner.tolist(), found.ids, strict=True)]
    together: dict[int, set[tuple[Owner, str]]] = {}
    for key, conversation in zip(keys, found.conversation.tolist(), strict=True):
        together.setdefault(conversation, set()).add(key)
    told: dict[tuple[Owner, str], object] = {}
    ends = found.length.cumsum().tolist()
    passages = found.passages.cumsum().tolist()
    for row, key in enumerate(keys):
        start = ends[row] - int(found.length[row])
        values = [found.born, found.born_at, found.marks, found.occurred, found.importance, found.length, found.size]
        said = found.authors[found.owner[row]][found.author[row]]
        told[key] = (
            [array[row].item() for array in values],
            found.terms[start : ends[row]].tolist(),
            said,
            together[int(found.conversation[row])],
            row < found.count,
        )
        if row < found.count:
            both = [None if place == NOBODY else keys[place] for place in (found.before[row], found.after[row])]
            codes = found.codes[passages[row] - int(found.passages[row]) : passages[row]].tolist()
            told[key] = (told[key], both, codes)
    return told


def _check_same(index: Index, other: Index, ids: Sequence[str]) -> None:
    keys = [(whose, one) for whose in (ADA, BOB) for one in ids]
    for some, beside in ((keys, []), (keys[::3], []), (keys[::4], keys[::2])):
        assert _told(index.candidates(some, beside=beside)) == _told(other.candidates(some, beside=beside))
    terms = [words.term(word) for word in ("dark", "tea", "unheard")]
    assert index.corpus(BOTH, terms) == other.corpus(BOTH, terms)
    weights = dict(zip(terms, (1.5, 0.5, 2.0), strict=True))
    for ours, theirs in (
        (index.worded(BOTH, where(), weights, 3.0, 99), other.worded(BOTH, where(), weights, 3.0, 99)),
        (
            index.nearest(BOTH, where(), vector(1, 2, -1, 0.5), 99, exact=True).found,
            other.nearest(BOTH, where(), vector(1, 2, -1, 0.5), 99, exact=True).found,
        ),
    ):
        scores = {(one.owner, one.id): one.score for one in theirs}
        assert {(one.owner, one.id): one.score for one in ours} == pytest.approx(scores, abs=2e-3)


def _loaded(index: Index, whose: Owner, stored: Sequence[Stored], mark: Mark) -> None:
    """What the engine does before a search."""
    if index.followed(whose) != mark:
        index.load(whose, stored, 4, mark)


@pytest.mark.req("L14")
@given(
    first=DRAFTS,
    second=DRAFTS,
    steps=st.lists(st.tuples(st.lists(st.integers(0, 13), max_size=3), DRAFTS), max_size=3),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_the_tables_tell_what_the_index_in_ram_tells(
    tables: TableIndex, first: Drafts, second: Drafts, steps: list[tuple[list[int], Drafts]]
) -> None:
    tables.drop()
    ram, known = RamIndex(), {one.id: one for one in memories(first)}
    for index in (ram, tables):
        index.load(ADA, known.values(), 4, Mark(1))
        index.load(BOB, memories(second, BOB), 4, Mark(1))
    for number, (leaving, drafts) in enumerate(steps, 2):
        gone = [str(place) for place in leaving]
        changed = [one for one in memories(drafts) if one.id not in gone][:4]
        for index in (ram, tables):
            index.follow(ADA, changed, gone, Mark(number))
    _check_same(tables, ram, [str(number) for number in range(16)])


@pytest.mark.req("L14")
def test_an_owner_that_grows_moves_to_the_server_and_back_when_it_shrinks(tables: TableIndex) -> None:
    drafts: Drafts = [{"text": f"dark tea {number}", "vector": (1.0, number, 0, 1)} for number in range(10)]
    sizes = {ADA: 0, BOB: 3}
    index, ram = PostgresIndex(tables, sizes.__getitem__, ram_rows=RAM_ROWS), RamIndex()
    other = PostgresIndex(tables, sizes.__getitem__, ram_rows=RAM_ROWS)  # of another process
    for each in (index, ram, other):
        _loaded(each, BOB, memories(drafts[:3], BOB), Mark(3))
    for size in (4, 10, 8, 2, 9):
        sizes[ADA] = size
        mark = Mark(20, size)
        for each in (index, ram, other):
            _loaded(each, ADA, memories(drafts[:size]), mark)
            assert each.followed(ADA) == mark
        in_tables = size > RAM_ROWS
        assert tables.size(ADA) == (size if in_tables else 0)
        for each in (index, other):
            assert each.health().status is (Status.DEGRADED if in_tables else Status.HEALTHY)
            _check_same(each, ram, [str(number) for number in range(10)])


@pytest.mark.req("L14")
def test_followers_that_come_late_change_nothing(tables: TableIndex) -> None:
    old, new = memories([{"text": "dark"}]), memories([{"text": "tea"}])
    tables.load(ADA, old, 4, Mark(5))
    tables.follow(ADA, new, [], Mark(7))
    tables.follow(ADA, old, [], Mark(6))
    tables.load(ADA, old, 4, Mark(6))
    assert tables.followed(ADA) == Mark(7)
    assert tables.corpus({ADA}, [words.term("tea")]).having == {words.term("tea"): 1}
    tables.load(ADA, old, 4, Mark(6, 1))
    assert tables.followed(ADA) == Mark(6, 1)


@pytest.mark.req("L14")
def test_the_tables_say_nothing_of_what_was_erased(tables: TableIndex, postgres_url: str) -> None:
    drafts: Drafts = [
        {"text": f"unheard {number}", "vector": (1.0, 0.0, 0.0, number), "author": "Zoe"} for number in range(3)
    ]
    kept = memories(drafts)
    tables.load(ADA, kept, 4, Mark(3))
    ram = RamIndex()
    ram.load(ADA, kept, 4, Mark(3))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(search_schema.ERASE.encode(), (named(ADA).digest, kept[1].born))
        for table in ("search_postings", "search_vectors"):
            found = connection.execute(f"SELECT count(DISTINCT no) FROM {table}".encode()).fetchone()
            assert found == (2,)
        row = connection.execute("SELECT terms, pieces, codes, author FROM search_entries WHERE id = '1'").fetchone()
        assert row == ([], b"", b"", None)
    for index in (tables, ram):
        index.follow(ADA, [], ["1"], Mark(4))
    _check_same(tables, ram, ["0", "1", "2"])
