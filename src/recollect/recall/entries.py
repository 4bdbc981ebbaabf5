"""What the index knows of one memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from recollect import codec
from recollect.text import dates, words
from recollect.types import Layer, Memory, Owner

ASKS = 1
"""The text is a question: it ends in a question mark."""

TELLS_TIME = 2
"""The text has a word for a time."""

SAID_BY_USER = 4
SAID_BY_ASSISTANT = 8

SPOKEN = 16
"""Somebody said it, so its neighbours in time may belong to the same conversation."""

_IN_METADATA = ("session", "session_id")  # where a session is often kept by those who know no field for it
_ROLES = {"user": SAID_BY_USER, "human": SAID_BY_USER, "assistant": SAID_BY_ASSISTANT, "ai": SAID_BY_ASSISTANT}


class Told(Protocol):
    """What a memory says beside its content that an index looks at."""

    @property
    def title(self) -> str | None:
        """Its title."""

    @property
    def author(self) -> str | None:
        """Who said it."""

    @property
    def role(self) -> str | None:
        """As what."""

    @property
    def session(self) -> str | None:
        """In which conversation."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Where a session is often kept as well."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory as the index takes it in. Times are seconds since 1970; ``session`` is 0 where none is known."""

    number: int
    terms: bytes
    session: int
    marks: int
    author: str | None
    occurred: float
    expires: float | None
    importance: float
    vector: bytes | None
    pieces: bytes | None


def entry_of(number: int, memory: Memory) -> Entry:
    """The entry of a memory that was read whole.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Shall we go tomorrow?", role="user")
    >>> entry_of(1, memory).marks == ASKS | TELLS_TIME | SAID_BY_USER | SPOKEN
    True
    """
    session, marks, terms = described(memory.content, memory, memory.owner)
    return Entry(
        number=number,
        terms=terms,
        session=session,
        marks=marks,
        author=memory.author,
        occurred=codec.to_micros(memory.occurred_at) / 1e6,
        expires=None if memory.expires_at is None else codec.to_micros(memory.expires_at) / 1e6,
        importance=memory.importance,
        vector=None if memory.vector is None else memory.vector.data,
        pieces=None if memory.vector is None else memory.vector.pieces,
    )


def described(content: str, told: Told, owner: Owner) -> tuple[int, int, bytes]:
    """What an index makes of a memory apart from its vector: its session, its marks and its terms.

    The terms are those of title, content and last the author, so that phrases of the content stand.
    """
    said = words.folded(content)
    before = words.folded(told.title) if told.title else ()
    behind = words.folded(told.author) if told.author else ()
    terms = words.pack(words.numbered((*before, *said, *behind)))
    return session_of(told, owner), _marks(content, told, tells_time=dates.tell_time(said)), terms


def session_of(told: Told, owner: Owner) -> int:
    """A number for the conversation that something was said in; 0 if nobody named one."""
    named = told.session
    if named is None and owner.layer is Layer.SESSION:
        named = "\0".join(owner.ids)
    for name in _IN_METADATA:
        if named is None and isinstance(told.metadata.get(name), str | int):
            named = str(told.metadata[name])
    if named is None:
        return 0
    import hashlib  # lazy: brings in OpenSSL, and many memories have no session

    digest = hashlib.blake2b(named.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1


def _marks(content: str, told: Told, *, tells_time: bool) -> int:
    """What is said of the text and its speaker in a few bits."""
    marks = ASKS if content.rstrip().endswith("?") else 0
    if tells_time:
        marks |= TELLS_TIME
    for name in (told.role, told.author):
        if name is not None and (role := _ROLES.get(name.casefold())):
            return marks | role | SPOKEN
    return marks | SPOKEN if told.author or told.role else marks
