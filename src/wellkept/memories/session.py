"""One session: its memories, what it is told to do, and what it tells."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from wellkept import logs, validation
from wellkept.engine import run_log
from wellkept.engine.core import Engine, operation
from wellkept.engine.scope import Policies, Scope
from wellkept.engine.sealing import unseal, version_of
from wellkept.errors import InvalidInput, NotFound
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.memories import session_ends
from wellkept.memories.view import View
from wellkept.sessions import compaction, export
from wellkept.sessions import description as descriptions
from wellkept.sessions.description import Description
from wellkept.sessions.export import Contents, Format
from wellkept.sessions.records import SessionRecords
from wellkept.types import (
    CompactionReport,
    ExportFormatName,
    Filter,
    Identity,
    Need,
    Removal,
    SessionConfig,
    SessionStats,
    UpkeepRun,
)


class SessionPreferences:
    """The preferences of a session, as they are in the store now; ``session.preferences`` gives them.

    ``language`` and ``verbosity`` are texts; any other name may hold any JSON. Writers in several processes lose
    nothing: each changes only the names that it gives.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     session = memories.view(user="ada").sessions.create(preferences={"language": "en"})
    ...     session.preferences.set("theme", "dark")
    ...     session.preferences.merge({"language": "de", "units": "metric"})
    ...     session.preferences.all()
    {'language': 'de', 'theme': 'dark', 'units': 'metric'}
    """

    _audited_as = "preferences"

    def __init__(self, engine: Engine, records: SessionRecords, session: str) -> None:
        self._engine = engine
        self._records = records
        self._session = session

    @property
    def language(self) -> str | None:
        """The language, if it is set."""
        return self._records.get(self._session).preferences.language

    @property
    def verbosity(self) -> str | None:
        """How much to say, if it is set."""
        return self._records.get(self._session).preferences.verbosity

    @property
    def custom(self) -> dict[str, Any]:
        """All others, by name; a copy."""
        return self._records.get(self._session).preferences.custom

    @operation(Need.READ)
    def all(self) -> dict[str, Any]:
        """Every preference that is set, by name; a copy."""
        return self._records.get(self._session).preferences.flat()

    @operation(Need.READ)
    def get(self, name: str, default: Any = None) -> Any:
        """One preference, or the default if it is not set."""
        return self.all().get(validation.line("preferences", name), default)

    @operation(Need.WRITE)
    def set(self, name: str, value: Any) -> None:
        """Set one preference."""
        self.merge({name: value})

    @operation(Need.WRITE)
    def merge(self, values: Mapping[str, Any]) -> None:
        """Set several at once; the others stay as they are."""
        given = descriptions.flattened(values)
        self._change(lambda kept: kept | given)

    @operation(Need.WRITE)
    def remove(self, name: str) -> bool:
        """Unset one preference; ``False`` if it was not set."""
        validation.line("preferences", name)
        there = False

        def without(kept: dict[str, Any]) -> dict[str, Any]:
            nonlocal there
            there = name in kept
            return {known: value for known, value in kept.items() if known != name}

        self._change(without)
        return there

    def _change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        def decide(before: Description, now: datetime) -> Description:
            kept = before.preferences.flat()
            changed = change(kept)
            if changed == kept:
                return before
            return replace(before, preferences=descriptions.preferences(changed), last_accessed=now)

        self._records.get(self._session)  # a deleted one is not to be changed
        self._records.change(self._session, decide)


class Session:
    """One session of a user; ``view.sessions`` makes and loads it.

    It is a handle: what it tells is read from the store each time. A ``with`` block opens a closed session again and
    closes it at its end.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     sessions = memories.view(user="ada").sessions
    ...     with sessions.create("monday") as session:
    ...         _ = session.view.add("Use OAuth", type="decision", tags=["security"])
    ...     sessions.load("monday").stats().entries, session.closed_at is None
    (1, False)
    """

    def __init__(self, engine: Engine, records: SessionRecords, id: str) -> None:
        self._engine = engine
        self._records = records
        self.id = id
        self.owner = records.owner_of(id)

    @property
    def view(self) -> View:
        """The memories of this session and no others: what is added goes to the session layer.

        Its relevance follows the decay that the session is configured with. To see the user's other layers as well,
        use ``memories.view(user=..., session=session.id)``.
        """
        identity = Identity(user=self._records.user, session=self.id)
        return View(self._engine, identity, scope=Scope(identity, [self.owner], self._policies))

    def _policies(self) -> Policies:
        return {self.owner: self.config.decay}

    def _described(self) -> Description:
        return self._records.get(self.id)

    @property
    def preferences(self) -> SessionPreferences:
        """What the user prefers in this session."""
        return SessionPreferences(self._engine, self._records, self.id)

    @property
    def config(self) -> SessionConfig:
        """How the session is configured; ``configure`` changes it."""
        return self._described().settings(self._engine.defaults)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the session was created with; a copy."""
        return self._described().metadata

    @property
    def closed_at(self) -> datetime | None:
        """When it was closed; ``None`` while it is open."""
        return self._described().closed_at

    @operation(Need.WRITE)
    def configure(self, config: SessionConfig | Mapping[str, Any]) -> SessionConfig:
        """Configure the session anew. What a mapping leaves out is as it is by default, in this store.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     session = memories.view(user="ada").sessions.create()
        ...     session.configure({"decay": {"half_life_hours": 24}}).decay.half_life_hours
        24
        """
        defaults = self._engine.defaults
        self._described().configured(config, defaults)
        return self._records.change(self.id, lambda before, _: before.configured(config, defaults)).settings(defaults)

    @operation(Need.READ)
    def stats(self) -> SessionStats:
        """What the session holds, and when it was made, used and closed."""
        return stats_of(self._engine, self._records, self._described())

    @operation(Need.WRITE)
    def close(self) -> UpkeepRun | None:
        """Note that the session has ended. It stays readable; closing twice keeps the first time.

        If there is a policy for the end of sessions (``memories.upkeep.set_session_end``), what it says for this moment
        is done: the run can be undone. Without one, everything stays. Closing again does what is left to do, such as
        after a process was killed in the middle.
        """
        closed = self._described().closed_at is not None
        self._records.change(
            self.id,
            lambda before, now: before if before.closed_at else replace(before, closed_at=now, last_accessed=now),
        )
        if not closed:
            logs.session_changed(self.id, "close", "was closed")
        database = run_log.running(self._engine, Need.WRITE, {self.owner})  # as it says, whoever closes
        return session_ends.end(database, self.owner)

    @operation(Need.WRITE)
    def reopen(self) -> None:
        """Go on with a session that was closed."""
        closed = self._described().closed_at is not None
        self._records.change(
            self.id,
            lambda before, now: replace(before, closed_at=None, last_accessed=now) if before.closed_at else before,
        )
        if closed:
            logs.session_changed(self.id, "reopen", "was opened again")

    @operation(Need.WRITE, permanent=Need.ERASE, dry_run=Need.READ)
    def forget(
        self,
        *,
        topic: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        reason: str | None = None,
        permanent: bool = False,
        dry_run: bool = False,
    ) -> Removal:
        """Forget what is about a topic (a tag, and all tags below it), or was recorded in a span of time, or both.

        ``after`` belongs to the span, ``before`` does not. ``dry_run=True`` only tells what would go,
        ``permanent=True`` erases, forgotten ones as well. The whole session goes with ``sessions.delete``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     session = memories.view(user="ada").sessions.create()
        ...     _ = session.view.add("Lives in Rome", tags=["personal.home"])
        ...     session.forget(topic="personal", dry_run=True).count, session.forget(topic="personal").count
        (1, 1)
        """
        if topic is None and after is None and before is None:
            raise InvalidInput(
                "neither a topic nor a time was given",
                details={"field": "topic"},
                hint="say what to forget; sessions.delete(id) takes the whole session",
            )
        if after is not None and before is not None:
            first, last = validation.moment("after", after), validation.moment("before", before)
            if first >= last:
                raise InvalidInput(
                    "after is not earlier than before", details={"field": "after"}, hint="exchange the two times"
                )
        self._described()
        tags = () if topic is None else (topic,)
        wanted = Filter(tags=tags, created_after=after, created_before=before)
        return self.view.forget_many(filter=wanted, reason=reason, permanent=permanent, dry_run=dry_run)

    @operation(Need.WRITE, purge=Need.ERASE, dry_run=Need.READ)
    def compact(self, *, purge: bool = False, dry_run: bool = False, max_share: float = MAX_SHARE) -> CompactionReport:
        """Make room: archive what has expired, and what hardly counts any more if the session is full.

        Memories of a relevance below 0.05 go, the least relevant first, as long as the session is fuller than four
        fifths of what starts an automatic compaction. What is pinned (``metadata={"pinned": True}``) stays. Archived
        memories take no part in recall and count for nothing; ``view.restore(id)`` brings one back. ``purge=True``
        erases what was forgotten, has expired or was archived before, with its history. ``dry_run=True`` changes
        nothing and tells what would go. ``UpkeepRefused`` if more than ten memories and more than ``max_share`` of them
        would be archived. What is held stays. ``memories.upkeep.undo(report.run_id)`` takes the compaction back, except
        for what it erased.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     session = memories.view(user="ada").sessions.create("monday")
        ...     _ = session.view.add("Use OAuth")
        ...     _ = session.view.forget(session.view.add("Use passwords").id)
        ...     session.compact().count, session.compact(purge=True).count, session.compact(purge=True).count
        (0, 1, 0)
        """
        validation.flag("purge", purge)
        validation.flag("dry_run", dry_run)
        share = validation.unit("max_share", max_share)
        return compaction.compact(self._engine, self.owner, self.config, purge=purge, dry_run=dry_run, max_share=share)

    @operation(Need.READ)
    def export(self, format: Format | ExportFormatName = "json", *, history: bool = False) -> str:  # noqa: A002  # everybody's word for it
        """All that is kept of the session as text: its description, and its memories with the forgotten ones.

        ``json`` is one object, ``jsonl`` one for each line, ``entries`` the active memories as lines of a plain
        ``memory.jsonl``. ``history=True`` adds every version to the first two.

        >>> import json, wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     session = memories.view(user="ada").sessions.create("monday")
        ...     _ = session.view.add("Use OAuth", type="decision")
        ...     exported = json.loads(session.export())
        >>> exported["session"]["session_id"], exported["memories"][0]["content"]
        ('monday', 'Use OAuth')
        """
        kind = validation.choice("format", Format, format)
        validation.flag("history", history)
        described = self._described()
        journal, owners = self._engine.journal, {self.owner}
        contents = Contents(
            description=described,
            stats=stats_of(self._engine, self._records, described),
            memories=[unseal(self._engine.accesses.dressed(one)) for one in journal.scan(owners)],
            history=[version_of(one) for one in journal.versions(owners)] if history else None,
        )
        return export.written(contents, kind, self._engine.clock())

    def __enter__(self) -> Self:
        self.reopen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(NotFound):  # deleted within the block: there is nothing left to close
            self.close()


def stats_of(engine: Engine, records: SessionRecords, described: Description) -> SessionStats:
    """What a session holds now, beside what its record says."""
    owners = frozenset({records.owner_of(described.session_id)})
    kept = engine.journal.stats(owners, engine.clock())
    return SessionStats(
        id=described.session_id,
        created_at=described.created_at,
        last_accessed=max(described.last_accessed, kept.newest or described.last_accessed),
        closed_at=described.closed_at,
        deleted_at=described.deleted_at,
        entries=kept.active,
        forgotten=kept.forgotten,
        archived=kept.archived,
        by_type=kept.by_type,
        bytes_used=kept.bytes_used,
        bytes_limit=described.settings(engine.defaults).limit_bytes,
        oldest=kept.oldest,
        newest=kept.newest,
        damaged=engine.store.damaged(owners),
    )
