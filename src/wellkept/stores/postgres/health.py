"""What the server says of itself: who holds the feed back, and how durable a commit is."""

from __future__ import annotations

from collections.abc import Sequence

from wellkept.stores.postgres.server import Row, Server
from wellkept.types import Component, Status

_LONG_S = 1.0
# Committed versions that the feed does not show yet, and the transactions that began before them.
_HELD_BACK = (
    "SELECT count(*) FROM journal WHERE epoch = (SELECT max(number) FROM epochs)"
    " AND xid >= pg_snapshot_xmin(pg_current_snapshot())"
)
_HOLDERS = (
    "SELECT * FROM (SELECT 'process ' || pid, usename::text, datname::text, application_name, state,"
    " extract(epoch FROM clock_timestamp() - xact_start)::double precision AS age"
    " FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
    " UNION ALL SELECT 'prepared transaction ' || gid, owner::text, database::text, '', 'prepared',"
    " extract(epoch FROM clock_timestamp() - prepared)::double precision FROM pg_prepared_xacts) holders"
    " ORDER BY age DESC NULLS LAST LIMIT 1"
)
_COMMITS = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
    " current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication),"
    " current_setting('transaction_read_only')"
)

READ_ONLY = Component(status=Status.DEGRADED, message="the server takes no writes")


def components(server: Server, durability: str) -> dict[str, Component]:
    """Whether the server takes writes, the feed and the durability, each with a few words."""
    held, holders, commits = server.write(  # a replica knows nothing of it
        lambda session: session.together([(_HELD_BACK, ()), (_HOLDERS, ()), (_COMMITS, ())])
    )
    store = READ_ONLY if commits[0][-1] == "on" else Component()
    return {"store": store, "feed": _feed(held[0][0], holders), "durability": _durability(commits[0], durability)}


def _feed(held: int, holders: Sequence[Row]) -> Component:
    if not held or not holders:
        return Component()
    who, user, database, application, state, age = holders[0]
    if age is not None and age < _LONG_S:
        return Component()
    since = "" if age is None else f" for {age:.0f} s"
    named = ", ".join(f"{name} {value}" for name, value in (("user", user), ("program", application)) if value)
    message = f"{held} versions are held back{since} by {who} of database {database} ({named}; {state})"
    return Component(status=Status.DEGRADED, message=message)


def _durability(row: Row, durability: str) -> Component:
    """What was promised and is not kept is degraded; a relaxed store promised nothing."""
    fsync, commit, standbys, replicas, _ = row
    if durability == "relaxed":
        return Component(message="relaxed: a crash of the server may lose the last moments")
    if replicas and not (standbys and commit in ("on", "remote_apply", "remote_write")):
        message = f"{replicas} replicas are asynchronous: a failover can lose acknowledged writes"
        return Component(status=Status.DEGRADED, message=message)
    if fsync == "off":
        message = "fsync is off on the server: a crash of its machine loses writes"
        return Component(status=Status.DEGRADED, message=message)
    return Component(message="replicas are synchronous" if replicas else "ok")
