"""What an index knows of one memory."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from wellkept import codec
from wellkept.text import answer_types, dates, languages, periods, tense, words
from wellkept.types import Facets, Layer, Owner, Stored

ASKS = 1
"""The text is a question: it ends in a question mark."""

TELLS_TIME = 2
"""The text has a word for a time."""

SAID_BY_USER = 4
SAID_BY_ASSISTANT = 8

SPOKEN = 16
"""Somebody said it, so its neighbours in time may belong to the same conversation."""

TELLS_CHANGE = 32
"""The text has a word for a change, such as "moved" or "instead": it may update what was stored before."""

SAYS_NOTHING = 64
"""The text has no word of its own: "OK.", "Great, thanks!"."""

STATED = 128
"""A fact, an event, a decision or the like, kept by itself: nobody just said it."""

HAS_NUMBER = 256
HAS_NAME = 512

ONLY_ASKS = 1024
"""The text is a question and states nothing beside it."""

ANNOUNCES = 2048
"""The text tells of a time that was still to come when it was stored, and of nothing that was done."""

_FIELD_CHARACTERS = 2_000  # of metadata that are searched
_LEAST_NUMBER = 100  # in metadata that is searched, as that of an invoice is; smaller ones count and measure
_CHANGES = frozenset(
    """moved switched changed replaced upgraded downgraded migrated traded swapped instead longer anymore now nowadays
    stopped renamed cancelled canceled postponed rescheduled delayed updated corrected correction sold quit retired
    dropped raised lowered increased reduced doubled halved left gone became ended closed resigned abandoned extended
    shortened shifted transferred relocated converted discontinued superseded expired stolen died
    jetzt gewechselt wechselte verkauft umgezogen stattdessen kunftig geandert ersetzt gekundigt
    maintenant desormais demenage vendu remplace
    ahora cambiamos cambio cambiado mudo vendio vendimos vendido subio dejo
    теперь продали продал переехал переехала сменил сменила стал стала ушел ушла перешел перешла
    现在 不再 改成 换成 卖掉 涨到 搬到 改为 换了 改用""".encode().split()
)
_CHANGES_IN_TWO = frozenset(
    tuple(pair.encode().split())
    for pair in (
        *("took over", "taken over", "takes over", "gave up", "given up", "put off", "put up", "put down", "went up"),
        *("went down", "took back", "gave back", "nicht mehr", "ya no", "ne plus", "больше не"),
    )
)
_BRIEF_CHANGE = 40  # words: in a longer text, a word for a change says little
_ACKNOWLEDGES = frozenset(
    b"""ok okay k thanks thank thx great cool nice good fine sure perfect alright right welcome hi hello hey bye goodbye
    wow oh ah hm hmm haha lol well very much got see""".split()
)
_PIECE_BYTES = 2  # tags and fields are found by their words alone, so their pieces are zeros
_BRIEF = 8  # words: longer texts say something
_IN_FIELDS = ("session", "session_id")  # where a session is often kept by callers who know no facet for it
_ROLES = {"user": SAID_BY_USER, "human": SAID_BY_USER, "assistant": SAID_BY_ASSISTANT, "ai": SAID_BY_ASSISTANT}


@dataclass(slots=True)
class Entry:
    """A memory as an index takes it in. Times are seconds since 1970; ``session`` is 0 where none is known, and
    ``told`` the stretch of time that the text tells of.

    ``born`` orders the memories of one owner by their recording, ``born_at`` (microseconds) those of several owners.
    Nobody changes one; a frozen one would take three times as long to make, and loading makes one for every memory.
    """

    id: str
    born: int
    born_at: int
    terms: bytes
    session: int
    marks: int
    author: str | None
    occurred: float
    expires: float | None
    importance: float
    told: tuple[float, float] | None = None
    vector: bytes | None = None
    dimension: int = 0
    pieces: bytes | None = None


def entries_of(memories: Iterable[Stored]) -> list[Entry]:
    """The entries of stored memories. Damaged ones are left out: one of them must not keep the others from being
    found, and the doctor names them.
    """
    found = []
    for stored in memories:
        with suppress(*codec.UNREADABLE):
            found.append(entry_of(stored))
    return found


def entry_of(stored: Stored) -> Entry:
    """The entry of a stored memory. Its terms are those of title, content, author, and last the tags and the texts in
    its metadata, so that phrases of the content stand.
    """
    facets, vector = stored.facets, stored.vector
    content, author, title = facets.get("text") or "", facets.get("author"), facets.get("title")
    said = words.folded(content)
    before = words.folded(title) if title else ()
    behind = words.folded(author) if author else ()
    tagged = words.folded("\n".join((*(facets.get("tags") or ()), *_in_fields(facets.get("fields")))))
    expires_at = facets.get("expires_at")
    marks = _marks(content, facets, said)
    told = periods.told(content, at=codec.from_micros(facets["occurred_at"])) if marks & TELLS_TIME else None
    language = words.language_of(said)
    if told is not None and told[0] > facets["occurred_at"] / 1e6 and _announces(content, language):
        marks |= ANNOUNCES
    return Entry(
        id=stored.id,
        born=stored.born,
        born_at=stored.born_at,
        terms=words.pack(words.numbered((*before, *said, *behind, *tagged), language)),
        session=session_of(facets, stored.owner),
        marks=marks,
        author=author,
        occurred=facets["occurred_at"] / 1e6,
        expires=None if expires_at is None else expires_at / 1e6,
        importance=facets["importance"],
        told=told,
        vector=None if vector is None else vector.data,
        dimension=0 if vector is None else vector.dimension,
        pieces=None if vector is None or not vector.pieces else vector.pieces + bytes(_PIECE_BYTES * len(tagged)),
    )


def session_of(facets: Facets, owner: Owner) -> int:
    """A number for the conversation that something was said in; 0 if nobody named one.

    >>> session_of({}, Owner(Layer.USER, ("ada",)))
    0
    >>> session_of({"session": "a"}, Owner(Layer.USER, ("ada",))) == session_of(
    ...     {"fields": {"session_id": "a"}}, Owner(Layer.USER, ("ada",))
    ... )
    True
    """
    named = facets.get("session")
    if named is None and owner.layer is Layer.SESSION:
        named = "\0".join(owner.ids)
    if named is None and (fields := facets.get("fields")):
        named = next((str(fields[name]) for name in _IN_FIELDS if isinstance(fields.get(name), str | int)), None)
    if named is None:
        return 0
    digest = hashlib.blake2b(named.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


def _marks(content: str, facets: Facets, said: Sequence[bytes]) -> int:
    """What is said of the text and its speaker in a few bits. ``said`` are its words, folded."""
    marks = ASKS if content.rstrip().endswith("?") else 0
    if answer_types.only_asks(content):
        marks |= ONLY_ASKS
    if dates.tell_time(said):
        marks |= TELLS_TIME
    if len(said) <= _BRIEF_CHANGE and (not _CHANGES.isdisjoint(said) or not _CHANGES_IN_TWO.isdisjoint(pairwise(said))):
        marks |= TELLS_CHANGE
    if len(said) <= _BRIEF and said and all(word in _ACKNOWLEDGES or words.is_stop(word.decode()) for word in said):
        marks |= SAYS_NOTHING
    if any(map(_ends_in_digits, said)):
        marks |= HAS_NUMBER
    if answer_types.has_name(content):
        marks |= HAS_NAME
    role, author = facets.get("role"), facets.get("author")
    for name in (role, author):
        if name is not None and (known := _ROLES.get(name.casefold())):
            return marks | known | SPOKEN
    if author or role:
        return marks | SPOKEN
    return marks | STATED if facets["type"] != "conversation" and facets.get("session") is None else marks


def _announces(content: str, language: str) -> bool:
    """Whether a text that names a time to come tells of nothing done. The verbs of other languages are not known."""
    return language == languages.ENGLISH and not tense.tells_of_deeds(content)


def _ends_in_digits(word: bytes) -> bool:
    return word[-1:].isdigit()


def _in_fields(fields: Mapping[str, Any] | None) -> list[str]:
    """The texts of custom fields, at any depth; not the names of sessions, which are no words."""
    if not fields:
        return []
    found = list(chain.from_iterable(_texts(value) for name, value in fields.items() if name not in _IN_FIELDS))
    return ["\n".join(found)[:_FIELD_CHARACTERS]]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, int) and value >= _LEAST_NUMBER:
        yield str(value)
