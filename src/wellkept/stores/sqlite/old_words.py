"""The tables of words that schemas 2 to 4 kept beside the journal. Frozen: it makes what those releases read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import apsw

from wellkept import codec
from wellkept.stores.sqlite import rows
from wellkept.text import dates, words
from wellkept.types import Layer, Owner

_ASKS, _TELLS_TIME, _SPOKEN = 1, 2, 16
_ROLES = {"user": 4, "human": 4, "assistant": 8, "ai": 8}
_IN_METADATA = ("session", "session_id")
_ACTIVE = (
    "SELECT h.number, h.owner, j.content, j.body FROM heads h JOIN journal j USING (sequence) WHERE h.state = 'active'"
)

Body = Mapping[str, Any]


def fill_terms(connection: apsw.Connection) -> None:
    """The terms of every active memory, as schema 2 kept them."""
    into = rows.Insert("words (number, terms)", 2)
    for number, _, content, body in _active(connection):
        into.rows(
            connection, [(number, words.pack(words.numbered(_folded(words.searchable(content, body.get("title"))))))]
        )


def fill_words(connection: apsw.Connection) -> None:
    """The words of every active memory, as schemas 3 and 4 kept them."""
    into = rows.Insert("words (number, session, marks, terms)", 4)
    for number, owner, content, body in _active(connection):
        said = _folded(content)
        before = _folded(body["title"]) if body.get("title") else ()
        behind = _folded(body["author"]) if body.get("author") else ()
        terms = words.pack(words.numbered((*before, *said, *behind)))
        marks = _marks(content, body) | (_TELLS_TIME if dates.tell_time(said) else 0)
        into.rows(connection, [(number, _session(body, owner), marks, terms)])


def _folded(text: str) -> list[bytes]:
    return [word.encode() for word in words.words(text)]


def _active(connection: apsw.Connection) -> Iterator[tuple[int, Owner, str, Body]]:
    owners = {number: codec.decode_owner(name) for number, name in rows.fetch(connection, "SELECT * FROM owners")}
    for number, owner, content, body in rows.fetch(connection, _ACTIVE):
        yield number, owners[owner], content, codec.decode_json(body)


def _session(body: Body, owner: Owner) -> int:
    named = body.get("session")
    if named is None and owner.layer is Layer.SESSION:
        named = "\0".join(owner.ids)
    fields = body.get("metadata", {})
    for name in _IN_METADATA:
        if named is None and isinstance(fields.get(name), str | int):
            named = str(fields[name])
    if named is None:
        return 0
    digest = hashlib.blake2b(named.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


def _marks(content: str, body: Body) -> int:
    marks = _ASKS if content.rstrip().endswith("?") else 0
    for name in (body.get("role"), body.get("author")):
        if name is not None and (role := _ROLES.get(name.casefold())):
            return marks | role | _SPOKEN
    return marks | _SPOKEN if body.get("author") or body.get("role") else marks
