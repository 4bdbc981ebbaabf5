"""All sessions of a user: making, finding and removing them, and asking across them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import logs, validation
from wellkept.engine import arrivals, writing
from wellkept.engine.core import Engine, operation
from wellkept.engine.reading import Moment
from wellkept.engine.scope import Policies, Scope
from wellkept.errors import Conflict, InvalidInput, MissingIdentifier, StoreCorrupt, StoreError, Unauthorized
from wellkept.filters import Where
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.memories.session import Session, stats_of
from wellkept.memories.view import View
from wellkept.ports import Query
from wellkept.sessions import description as descriptions
from wellkept.sessions import imports
from wellkept.sessions.description import Description
from wellkept.sessions.records import SessionRecords, missing
from wellkept.types import (
    CompactionReport,
    Filter,
    Identity,
    ImportReport,
    Layer,
    Need,
    Page,
    Ranking,
    RankingName,
    Removal,
    Results,
    SessionConfig,
    SessionStats,
    Sort,
    SortName,
    Stored,
    TagUsage,
    UpkeepRun,
)

_RANDOM = 8  # bytes in an id that is made here


class Sessions:
    """The sessions of one user; ``view.sessions`` gives them.

    Nobody else's session is among them, even if it has the same id.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     sessions = memories.view(user="ada").sessions
    ...     for day in ("monday", "tuesday"):
    ...         with sessions.create(day) as session:
    ...             _ = session.view.add(f"Talked about OAuth on {day}", tags=["oauth"])
    ...     [(one.id, one.entries) for one in sessions.list()], len(sessions.search("OAuth"))
    ([('monday', 1), ('tuesday', 1)], 2)
    """

    def __init__(self, engine: Engine, identity: Identity) -> None:
        if identity.user is None:
            raise MissingIdentifier(
                "sessions need a user id",
                operation="sessions",
                details={"field": "user", "layer": Layer.SESSION.value},
                hint="open the view with user=...: a session belongs to a user",
            )
        self._engine = engine
        self._records = SessionRecords(engine, identity.user)

    # -- making and finding -----------------------------------------------------------------------------------

    @operation(Need.WRITE)
    def create(
        self,
        id: str | None = None,
        *,
        preferences: Mapping[str, Any] | None = None,
        config: SessionConfig | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Make a session; without an id it gets one. ``Conflict`` if the user has a session of that id.

        Memories that were added under the id before, with ``memories.view(user=..., session=id)``, belong to it.
        """
        now = self._engine.clock()
        chosen = descriptions.new_id(now, self._engine.entropy(_RANDOM)) if id is None else descriptions.session_id(id)
        described = Description(
            session_id=chosen,
            user_id=self._records.user,
            created_at=now,
            last_accessed=now,
            preferences=descriptions.preferences({} if preferences is None else preferences),
            metadata=validation.metadata({} if metadata is None else metadata),
        ).configured({} if config is None else config, self._engine.defaults)
        try:
            self._records.add(described)
        except Conflict as error:
            raise Conflict(
                f"there is a session {chosen!r} already",
                details={"session_id": chosen},
                hint="load it, restore it if it was deleted, or choose another id",
            ) from error
        logs.session_changed(chosen, "create", "was created")
        return Session(self._engine, self._records, chosen)

    @operation(Need.READ)
    def load(self, id: str) -> Session:
        """A session that was made before, open or closed; ``NotFound`` if there is none. Counts as a use of it."""
        self._records.get(descriptions.session_id(id))
        with suppress(StoreError, Conflict, Unauthorized):  # bookkeeping: it must not keep anybody from reading
            self._records.change(id, lambda before, now: replace(before, last_accessed=now))
        return Session(self._engine, self._records, id)

    @operation(Need.READ)
    def list(self, *, include_deleted: bool = False) -> tuple[SessionStats, ...]:
        """Every session with what it holds, open or closed, in the order of their ids."""
        deleted = validation.flag("include_deleted", include_deleted)
        return tuple(stats_of(self._engine, self._records, one) for one in self._records.all(deleted=deleted))

    @operation(Need.WRITE, dry_run=Need.READ)
    def import_session(self, text: str, id: str | None = None, *, dry_run: bool = False) -> ImportReport:
        """Read what :meth:`Session.export` wrote, in any of its formats, here or on another machine and store.

        The memories keep their ids, times and states, and become those of the session ``id``, or of the id that the
        text tells; it is made if it is not there. All are stored or none. What is here already is left as it is, so an
        import can be repeated. ``Conflict`` if another memory has one of the ids; what was erased here stays erased.
        They are trusted no more than what is imported is. ``dry_run=True`` checks everything and changes nothing.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     session = memories.view(user="ada").sessions.create("monday")
        ...     _ = session.view.add("Use OAuth", type="decision")
        ...     exported = session.export("jsonl")
        >>> with wellkept.open("ram:", embedder=None) as elsewhere:
        ...     sessions = elsewhere.view(user="ada").sessions
        ...     sessions.import_session(exported).added, sessions.import_session(exported).known
        (1, 1)
        """
        validation.flag("dry_run", dry_run)
        read = imports.read(text)
        if id is None and read.session_id is None:
            raise InvalidInput(
                "the entries do not tell their session", details={"field": "id"}, hint="say which session they are for"
            )
        chosen = descriptions.session_id(read.session_id if id is None else id)
        found, owner = self._records.find(chosen), self._records.owner_of(chosen)
        if found is not None and found.deleted_at is not None:
            raise Conflict(
                f"session {chosen!r} was deleted",
                details={"session_id": chosen},
                hint="restore it first, or import into another session",
            )
        memories = arrivals.drafted(self._engine, owner, read.arrivals)
        done = arrivals.add(self._engine, owner, memories, dry_run=dry_run)
        if found is None and not dry_run:
            # Last: a refused import leaves nothing behind, and one that was interrupted here is completed by the next.
            with suppress(Conflict):  # somebody made it meanwhile
                self._records.add(self._imported(chosen, read.description))
        if not dry_run:
            logs.session_changed(chosen, "import", "was imported")
        return ImportReport(
            session_id=chosen,
            form=read.form.value,
            created=found is None,
            added=len(done.added),
            known=len(done.known),
            erased=len(done.erased),
            omitted=read.omitted,
            dry_run=dry_run,
        )

    def _imported(self, id: str, told: Description | None) -> Description:
        now = self._engine.clock()
        if told is None:
            return Description(session_id=id, user_id=self._records.user, created_at=now, last_accessed=now)
        return replace(
            told,
            session_id=id,
            user_id=self._records.user,
            created_at=min(told.created_at, now),
            last_accessed=min(told.last_accessed, now),
        )

    @operation(Need.WRITE)
    def close(self, id: str) -> UpkeepRun | None:
        """Note that a session has ended; see :meth:`Session.close`. One that was never created is one from now on."""
        return Session(self._engine, self._records, descriptions.session_id(id)).close()

    @operation(Need.WRITE, purge=Need.ERASE, dry_run=Need.READ)
    def compact(
        self, id: str, *, purge: bool = False, dry_run: bool = False, max_share: float = MAX_SHARE
    ) -> CompactionReport:
        """Make room in a session; see :meth:`Session.compact`."""
        session = Session(self._engine, self._records, descriptions.session_id(id))
        return session.compact(purge=purge, dry_run=dry_run, max_share=max_share)

    # -- removing ---------------------------------------------------------------------------------------------

    @operation(Need.WRITE, permanent=Need.ERASE, dry_run=Need.READ)
    def delete(self, id: str, *, permanent: bool = False, reason: str | None = None, dry_run: bool = False) -> Removal:
        """Delete a session and forget all its memories; ``restore`` brings both back. One that was never created, but
        has memories, is deleted as well.

        ``permanent=True`` erases the memories and what is known of the session, also after it was deleted.
        ``dry_run=True`` changes nothing and tells which memories would go.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     sessions = memories.view(user="ada").sessions
        ...     _ = sessions.create("monday").view.add("Use OAuth")
        ...     sessions.delete("monday", reason="asked to").count, sessions.list()
        (1, ())
        """
        for name, value in (("permanent", permanent), ("dry_run", dry_run)):
            validation.flag(name, value)
        validation.optional_line("reason", reason)
        chosen = descriptions.session_id(id)
        self._check_deletable(chosen, permanent=permanent)
        if not (permanent or dry_run):
            # First: if what follows is interrupted, the session is gone from the list, and deleting it again goes on.
            self._records.change(id, lambda before, now: _deleted(before, now, reason))
        query = Query(owners=frozenset({self._records.owner_of(id)}), where=Where(now=self._engine.clock()))
        removal = writing.forget_many(self._engine, query, permanent=permanent, reason=reason, dry_run=dry_run)
        if permanent and not dry_run:
            self._records.drop(id)
        if not dry_run:
            logs.session_changed(id, "delete", "was erased" if permanent else "was deleted")
        return removal

    def _check_deletable(self, id: str, *, permanent: bool) -> None:
        try:
            known = self._records.find(id) or self._records.implied(id)
        except StoreCorrupt:
            if permanent:
                return  # for what is erased, nobody need know what it said
            raise
        if known is None:
            raise missing(id, "it may be another user's, or was deleted for good")

    @operation(Need.WRITE)
    def restore(self, id: str) -> Session:
        """Bring a deleted session back, with the memories that were forgotten when it was deleted and since."""
        found = self._records.find(descriptions.session_id(id))
        if found is None:
            raise missing(id, "what was deleted with permanent=True cannot be restored")
        session = Session(self._engine, self._records, id)
        if found.deleted_at is not None:
            where = Where(now=self._engine.clock(), states=None)
            query = Query(owners=frozenset({session.owner}), where=where)
            writing.restore_many(self._engine, query, since=found.deleted_at)
            self._records.change(id, lambda before, _: replace(before, deleted_at=None, deleted_reason=None))
            logs.session_changed(id, "restore", "was restored")
        return session

    # -- across sessions --------------------------------------------------------------------------------------

    def _across(self) -> View:
        """The memories of all sessions that there are, each fading as its session says."""
        described = self._records.all()
        defaults = self._engine.defaults
        policies: Policies = {self._records.owner_of(one.session_id): one.settings(defaults).decay for one in described}
        identity = Identity(user=self._records.user)
        return View(self._engine, identity, scope=Scope(identity, policies, lambda: policies))

    @operation(Need.READ)
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        min_score: float | None = None,
        ranking: Ranking | RankingName = Ranking.BEST,
        filter: Filter | Mapping[str, Any] | None = None,
        as_of: Moment | None = None,
        asked_at: datetime | None = None,
        explain: bool = False,
    ) -> Results:
        """The memories of all sessions that answer a query best; see :meth:`View.search`."""
        return self._across().search(
            query,
            limit=limit,
            min_score=min_score,
            ranking=ranking,
            filter=filter,
            as_of=as_of,
            asked_at=asked_at,
            explain=explain,
        )

    @operation(Need.READ)
    def list_memories(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        offset: int = 0,
        filter: Filter | Mapping[str, Any] | None = None,
        sort_by: Sort | SortName = Sort.NEWEST,
        as_of: Moment | None = None,
    ) -> Page:
        """One page of the memories of all sessions; see :meth:`View.list`.

        A cursor belongs to the sessions that there were: start anew when one was made or deleted.
        """
        return self._across().list(
            limit=limit, cursor=cursor, offset=offset, filter=filter, sort_by=sort_by, as_of=as_of
        )

    @operation(Need.READ)
    def topics(self) -> tuple[TagUsage, ...]:
        """The tags of all sessions with the number of memories that carry them, the most used first."""
        counted = Counter(tag for one in self._memories() for tag in one.facets.get("tags", ()))
        ranked = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
        return tuple(TagUsage(tag=tag, count=count) for tag, count in ranked)

    @operation(Need.READ)
    def sessions_about(self, topic: str) -> tuple[SessionStats, ...]:
        """The sessions with memories about a topic (a tag, or one below it), the one with the most of them first.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     sessions = memories.view(user="ada").sessions
        ...     _ = sessions.create("monday").view.add("Use OAuth", tags=["security.oauth"])
        ...     _ = sessions.create("tuesday").view.add("Use tabs", tags=["style"])
        ...     [one.id for one in sessions.sessions_about("security")]
        ['monday']
        """
        found = Counter(one.owner.ids[1] for one in self._memories(validation.tags((topic,), "topic")))
        about = [one for one in self._records.all() if one.session_id in found]
        about.sort(key=lambda one: (-found[one.session_id], one.session_id))
        return tuple(stats_of(self._engine, self._records, one) for one in about)

    def _memories(self, tags: tuple[str, ...] = ()) -> Sequence[Stored]:
        owners = frozenset(self._records.owner_of(one.session_id) for one in self._records.all())
        query = Query(owners=owners, where=Where(now=self._engine.clock(), tags=tags))
        return self._engine.journal.select(query)


def _deleted(before: Description, now: datetime, reason: str | None) -> Description:
    if before.deleted_at is not None:
        return before
    return replace(before, deleted_at=now, deleted_reason=reason)
