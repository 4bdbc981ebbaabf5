"""Candidates from the tables of the index: what ranking reads of some memories, and of their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np

from wellkept.recall import candidates as gathered
from wellkept.recall.arrays import Array, packed
from wellkept.recall.candidates import Candidates
from wellkept.recall.conversations import NOBODY
from wellkept.stores.postgres import search_sql as sql
from wellkept.stores.postgres.server import Row, Session
from wellkept.text import words
from wellkept.types import Owner

_NAMES = (
    "no id born_at session run marks author occurred told_from told_to expires importance length passages terms pieces"
    " codes"
).split()
_Links = dict[int, tuple[int | None, int | None]]


def candidates(
    session: Session, owner: Owner, no: int, wanted: AbstractSet[str], beside: AbstractSet[str]
) -> Candidates:
    """The candidates of one owner, of number ``no`` in the tables: memories asked for by id, and the neighbours of
    those ``beside``.
    """
    links, chosen = _linked(session, no, wanted, beside)
    if not chosen:
        return gathered.none()
    around = {one for number in chosen for one in links[number] if one is not None} - set(chosen)
    numbers = [*chosen, *sorted(around)]
    found, authors = session.together([(sql.ROWS, {"owner": no, "numbers": numbers}), (sql.AUTHORS, {"owner": no})])
    by_number = {row[0]: row for row in found}
    # What another process has removed meanwhile is left out.
    numbers = [number for number in numbers if number in by_number]
    count = sum(number in by_number for number in chosen)
    columns = dict(zip(_NAMES, zip(*(by_number[number] for number in numbers), strict=True), strict=True))
    if not count:
        return gathered.none()
    return _made(session, owner, no, columns, links=links, count=count, authors=[name for (name,) in authors])


def _linked(session: Session, no: int, wanted: AbstractSet[str], beside: AbstractSet[str]) -> tuple[_Links, list[int]]:
    """The numbers of the candidates, and the neighbours of each."""
    rows = session.rows(sql.LINKS, {"owner": no, "ids": list(wanted | beside), "numbers": []})
    links: _Links = {number: (before, after) for number, _, before, after in rows}
    chosen = {number for number, one, _, _ in rows if one in wanted}
    chosen |= {near for number, one, *both in rows if one in beside for near in both if near is not None}
    if unknown := chosen - links.keys():
        more = session.rows(sql.LINKS, {"owner": no, "ids": [], "numbers": list(unknown)})
        links |= {number: (before, after) for number, _, before, after in more}
    return links, sorted(chosen & links.keys())


def _made(
    session: Session,
    owner: Owner,
    no: int,
    columns: Mapping[str, Sequence[Any]],
    *,
    links: _Links,
    count: int,
    authors: Sequence[str],
) -> Candidates:
    numbers = columns["no"]
    places = {number: place for place, number in enumerate(numbers)}
    known = [links[number] for number in numbers[:count]] + [(None, None)] * (len(numbers) - count)
    before, after = (
        np.array([NOBODY if one[side] is None else places.get(one[side], NOBODY) for one in known], np.int32)
        for side in (0, 1)
    )
    author_of = {None: 0} | {name: place for place, name in enumerate(authors, 1)}
    conversation, size = _conversations(session, no, columns)
    width = max(
        (len(one) // some for one, some in zip(columns["codes"], columns["passages"], strict=True) if some), default=1
    )
    codes = b"".join(columns["codes"][:count])
    return Candidates(
        count=count,
        owners=(owner,),
        authors=([frozenset[str](), *(frozenset(words.words(name)) for name in authors)],),
        names=packed(columns["id"]),
        owner=np.zeros(len(numbers), np.int32),
        born=np.array(numbers, np.int64),
        born_at=np.array(columns["born_at"], np.int64),
        author=np.array([author_of.get(name, 0) for name in columns["author"]], np.int32),
        marks=np.array(columns["marks"], np.uint16),
        occurred=np.array(columns["occurred"], np.float64),
        told_from=np.array([np.nan if one is None else one for one in columns["told_from"]], np.float64),
        told_to=np.array([np.nan if one is None else one for one in columns["told_to"]], np.float64),
        expires=np.array([np.inf if one is None else one for one in columns["expires"]], np.float64),
        importance=np.array(columns["importance"], np.float32),
        length=np.array(columns["length"], np.int32),
        conversation=conversation,
        size=size,
        before=before,
        after=after,
        passages=np.array(columns["passages"][:count], np.int32),
        codes=np.frombuffer(codes, np.uint8).reshape(-1, width),
        terms=np.array(list(chain.from_iterable(columns["terms"])), np.int32).view(np.uint32),
        pieces=np.frombuffer(b"".join(columns["pieces"]), "<u2"),
    )


def _conversations(session: Session, no: int, columns: Mapping[str, Sequence[Any]]) -> tuple[Array, Array]:
    """A number for the conversation of each row, and how many memories that has."""
    keys = [
        ("session", session_no) if session_no is not None else ("run", run) if run is not None else ("", number)
        for number, session_no, run in zip(columns["no"], columns["session"], columns["run"], strict=True)
    ]
    values = {
        "owner": no,
        "sessions": [number for kind, number in set(keys) if kind == "session"],
        "runs": [number for kind, number in set(keys) if kind == "run"],
    }
    rows: list[Row] = session.rows(sql.SIZES, values) if values["sessions"] or values["runs"] else []
    sizes = {("session" if named else "run", number): count for named, number, count in rows}
    numbered = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return (
        np.array([numbered[key] for key in keys], np.int64),
        np.array([sizes.get(key, 1) for key in keys], np.int32),
    )
