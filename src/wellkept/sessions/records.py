"""The records of a user's sessions in the store: read, and changed only by who saw the newest version."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.encrypted_records import is_encrypted
from wellkept.errors import Conflict, NotFound, StoreCorrupt
from wellkept.ports import Record, Records, sound
from wellkept.sessions import description as descriptions
from wellkept.sessions.description import Description
from wellkept.types import Finding, Layer, Owner

KIND = "session"
Decide = Callable[[Description, datetime], Description]
"""What becomes of a description, at a time."""


class SessionRecords:
    """The sessions of one user, by id."""

    def __init__(self, engine: Engine, user: str) -> None:
        self._engine = engine
        self.user = user
        self._owner = Owner(Layer.USER, (user,))

    def owner_of(self, id: str) -> Owner:
        """Whose the memories of a session are."""
        return Owner(Layer.SESSION, (self.user, id))

    def find(self, id: str) -> Description | None:
        """What is known of a session."""
        record = self._engine.records.get(self._owner, KIND, id)
        return None if record is None else descriptions.decode(record.body, id)

    def get(self, id: str) -> Description:
        """What is known of a session; ``NotFound`` if there is none, or it was deleted."""
        found = self.find(id) or self.implied(id)
        if found is None or found.deleted_at is not None:
            raise missing(id, "restore it with sessions.restore(id)" if found else "make it with sessions.create(id)")
        return found

    def implied(self, id: str) -> Description | None:
        """A session that nobody created, if it has memories: it behaves like one that was."""
        owner, now = self.owner_of(id), self._engine.clock()
        used = self._engine.journal.usage({owner}).get(owner)
        if used is None or not used.memories:
            return None
        kept = self._engine.journal.stats({owner}, now)
        return Description(
            session_id=id, user_id=self.user, created_at=kept.oldest or now, last_accessed=kept.newest or now
        )

    def all(self, *, deleted: bool = False) -> list[Description]:
        """The sessions that there are, in the order of their ids; the deleted ones only if asked for. One that cannot
        be read is an error where it is asked for itself; doctor names it.
        """
        found = _readable(self._engine.records.list({self._owner}, KIND))
        return [one for one in found if deleted or one.deleted_at is None]

    def add(self, description: Description) -> None:
        """Keep a new session; ``Conflict`` if there is one of that id."""
        if self._engine.session_limits is not None:
            self._engine.session_limits.forget(self.owner_of(description.session_id))
        self._engine.records.put(
            Record(
                owner=self._owner,
                kind=KIND,
                name=description.session_id,
                body=descriptions.encode(description),
                version=1,
                updated_at=description.created_at,
            )
        )

    def change(self, id: str, decide: Decide) -> Description:
        """Write what ``decide`` makes of a session as it is now; decide anew if another writer was faster."""
        for _ in range(ATTEMPTS):
            record = self._engine.records.get(self._owner, KIND, id)
            implied = self.implied(id) if record is None else None
            if record is None and implied is None:
                raise missing(id, "it was deleted for good")
            before = implied or descriptions.decode(record.body if record else b"{}", id)
            now = self._engine.clock()
            after = decide(before, now)
            if after == before:
                return before
            body = descriptions.encode(after, record.body if record else b"{}")
            version = record.version + 1 if record else 1
            try:
                self._engine.records.put(
                    Record(owner=self._owner, kind=KIND, name=id, body=body, version=version, updated_at=now)
                )
            except Conflict:
                continue
            return after
        raise Conflict(
            f"session {id!r} kept changing while it was written",
            details={"session_id": id},
            hint="try again when there are fewer writers",
        )

    def drop(self, id: str) -> bool:
        """Remove what is known of a session, for good."""
        return self._engine.records.drop(self._owner, KIND, id)


def _readable(records: Iterable[Record]) -> Iterator[Description]:
    for record in sound(records):
        with suppress(StoreCorrupt):
            yield descriptions.decode(record.body, record.name)


def count_active(records: Records) -> int:
    """How many sessions are open, of all users: neither closed nor deleted."""
    described = _readable(records.list(None, KIND))
    return sum(one.closed_at is None and one.deleted_at is None for one in described)


def findings(engine: Engine) -> list[Finding]:
    """The sessions whose description was edited to what none can be."""
    wrong = []
    for record in sound(engine.records.list(None, KIND, opened=False)):
        if is_encrypted(record):
            continue  # nobody can edit it
        try:
            descriptions.decode(record.body, record.name)
        except StoreCorrupt:
            wrong.append(f"{record.name[:64]!r}")
    message = f"the descriptions of sessions cannot be read: {', '.join(wrong[:5])}"
    return [Finding(check="sessions", message=message, repair="correct what was edited by hand")] if wrong else []


def missing(id: str, hint: str) -> NotFound:
    """The error for a session that is not there."""
    return NotFound(f"there is no session {id[:64]!r}", details={"session_id": id[:64]}, hint=hint)
