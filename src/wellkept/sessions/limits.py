"""The limit of a session: a write that may grow it must fit, if need be after a compaction."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wellkept import codec, logs
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

    def append(self, engine: Engine, writes: Sequence[Write], quotas: Sequence[Quota]) -> None:
        """Append within the limit of every session, after making room where that is needed and allowed."""
        sessions = dict.fromkeys(write.owner for write in writes if write.owner.layer is Layer.SESSION)
        changed = next(iter(sessions)).ids[-1]
        for _ in range(ATTEMPTS):  # a record changes with every use of its session
            known = {one: self._known.get(one) or self._read(engine, one) for one in sessions}
            try:
                self._append(engine, known, writes, quotas)
            except Conflict as error:
                if error.details.get("kind") != KIND:
                    raise
                changed = error.details.get("name", changed)
                for session in sessions:
                    self._known.pop(session, None)
            else:
                return
        raise Conflict(
            f"session {changed!r} kept changing while it was written to",
            details={"session_id": changed},
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
            known = _Known(record.version, descriptions.decode(record.body, name).settings(engine.defaults))
        if len(self._known) >= _KNOWN:
            self._known.clear()
            self._crowded.clear()
        self._known[session] = known
        return known

    def _append(
        self, engine: Engine, known: Mapping[Owner, _Known], writes: Sequence[Write], quotas: Sequence[Quota]
    ) -> None:
        """Within what starts a compaction of each session, or after one, or at least within the limit."""
        guards = [_guard(session, one.version) for session, one in known.items()]
        configs = {session: one.config for session, one in known.items()}
        limits = {one: config.limit_bytes for one, config in configs.items() if config.limit_bytes is not None}
        waiting = {codec.encode_owner(session): session for session in limits if configs[session].auto_compact}
        while True:
            within = limits | {one: int(limits[one] * configs[one].compaction_threshold) for one in waiting.values()}
            own = [Quota(owners=frozenset({session}), limit_bytes=limit) for session, limit in within.items()]
            try:
                engine.journal.append(writes, quotas=[*quotas, *own], guards=guards)
            except QuotaExceeded as error:
                session = waiting.pop(error.details.get("owner", ""), None)
                if session is None:
                    raise  # its room was made, or it is the plan's limit, about which a session can do nothing
                usage, needed, spared = error.details["usage"], error.details["needed"], {write.id for write in writes}
            else:
                return
            if usage + needed > limits[session] or usage >= self._crowded.get(session, 0):
                logs.session_nearly_full(session.ids[-1], usage + needed, limits[session])
                report = compaction.make_room(engine, session, configs[session], needed, frozenset(spared))
                self._note_room(session, report.bytes_after, needed, configs[session])

    def _note_room(self, session: Owner, left: int, needed: int, config: SessionConfig) -> None:
        """If a compaction left a session nearly full, do not try again before half of the rest is full as well."""
        limit = config.limit_bytes or 0
        if left + needed > limit * config.compaction_threshold:
            self._crowded[session] = left + (limit - left) // 2
        else:
            self._crowded.pop(session, None)


def _guard(session: Owner, version: int) -> Guard:
    user, name = session.ids
    return Guard(owner=Owner(Layer.USER, (user,)), kind=KIND, name=name, version=version)
