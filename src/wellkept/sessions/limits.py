"""The limit of a session: a write that may grow it must fit, if need be after a compaction."""

from collections.abc import Sequence
from typing import NamedTuple

from wellkept import logs
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.errors import Conflict, QuotaExceeded
from wellkept.sessions import compaction
from wellkept.sessions import description as descriptions
from wellkept.sessions.records import KIND
from wellkept.types import Guard, Layer, Owner, Quota, SessionConfig, Write

_KNOWN = 10_000  # sessions whose configuration is kept in RAM


class _Known(NamedTuple):
    """How a session was configured at a version of its record; one without a record goes by the defaults."""

    version: int
    config: SessionConfig


class SessionLimits:
    """Appends to sessions within their limits.

    The configuration of a session is read once; each append is guarded by the version of its record, so that a change
    made by another process is noticed by the write itself.
    """

    def __init__(self) -> None:
        self._known: dict[Owner, _Known] = {}
        self._crowded: dict[Owner, int] = {}  # sessions that compaction cannot help until they hold more

    def append(self, engine: Engine, writes: Sequence[Write], session: Owner, quotas: Sequence[Quota]) -> None:
        """Append within the limit of a session, after making room where that is needed and allowed."""
        known = self._known.get(session)
        for _ in range(ATTEMPTS):  # its record changes with every use of the session
            known = known or self._read(engine, session)
            try:
                self._append(engine, known, writes, session, quotas)
            except Conflict as error:
                if error.details.get("kind") != KIND:
                    raise
                known = None
            else:
                return
        raise Conflict(
            f"session {session.ids[-1]!r} kept changing while it was written to",
            details={"session_id": session.ids[-1]},
            hint="try again when there are fewer writers",
        )

    def forget(self, session: Owner) -> None:
        """Read the configuration of a session anew: one that was dropped and made again begins at the same version."""
        self._known.pop(session, None)
        self._crowded.pop(session, None)

    def _read(self, engine: Engine, session: Owner) -> _Known:
        user, name = session.ids
        record = engine.records.get(Owner(Layer.USER, (user,)), KIND, name)
        if record is None:
            known = _Known(0, engine.defaults)
        else:
            known = _Known(record.version, descriptions.decode(record.body).settings(engine.defaults))
        if len(self._known) >= _KNOWN:
            self._known.clear()
            self._crowded.clear()
        self._known[session] = known
        return known

    def _append(
        self, engine: Engine, known: _Known, writes: Sequence[Write], session: Owner, quotas: Sequence[Quota]
    ) -> None:
        """Within what starts a compaction, or after one, or at least within the limit."""
        config = known.config
        guard = _guard(session, known.version)
        limit = config.limit_bytes
        if limit is None or not config.auto_compact:
            own = [] if limit is None else [_quota(session, limit)]
            engine.journal.append(writes, quotas=[*quotas, *own], guards=[guard])
            return
        threshold = int(limit * config.compaction_threshold)
        try:
            engine.journal.append(writes, quotas=[*quotas, _quota(session, threshold)], guards=[guard])
        except QuotaExceeded as error:
            if error.details["limit"] != threshold:
                raise  # it is the plan's limit, about which a session can do nothing
            usage, needed = error.details["usage"], error.details["needed"]
        else:
            return
        if usage + needed > limit or usage >= self._crowded.get(session, 0):
            logs.session_nearly_full(session.ids[-1], usage + needed, limit)
            report = compaction.make_room(engine, session, config, needed, frozenset(write.id for write in writes))
            self._note_room(session, report.bytes_after, needed, config)
        engine.journal.append(writes, quotas=[*quotas, _quota(session, limit)], guards=[guard])

    def _note_room(self, session: Owner, left: int, needed: int, config: SessionConfig) -> None:
        """If a compaction left a session nearly full, do not try again before half of the rest is full as well."""
        limit = config.limit_bytes or 0
        if left + needed > limit * config.compaction_threshold:
            self._crowded[session] = left + (limit - left) // 2
        else:
            self._crowded.pop(session, None)


def _quota(session: Owner, limit: int) -> Quota:
    return Quota(owners=frozenset({session}), limit_bytes=limit)


def _guard(session: Owner, version: int) -> Guard:
    user, name = session.ids
    return Guard(owner=Owner(Layer.USER, (user,)), kind=KIND, name=name, version=version)
