"""The connections to the server: made on demand, used again, replaced when they break."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from wellkept.errors import StoreBusy, StoreClosed, WellkeptError
from wellkept.stores.postgres import failures
from wellkept.stores.postgres.options import Options

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any] | Mapping[str, Any]]
"""A text of SQL and what is bound to it."""

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_CONFIGURE = (
    "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, false),"
    " set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false),"
    " set_config('jit', 'off', false)"
)
_REPLAYED = "SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %s::pg_lsn"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Session:
    """A connection while one caller uses it. ``committing`` tells that a commit was sent: its answer may get lost."""

    __slots__ = ("committing", "connection")

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection
        self.committing = False

    def rows(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """All rows of one statement."""
        return self.connection.execute(_sql(statement), values or None, binary=True).fetchall()

    def run(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        return self.connection.execute(_sql(statement), values or None).rowcount

    def together(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent in one round trip."""
        with self.connection.pipeline():
            cursors = [self.connection.execute(_sql(text), values or None, binary=True) for text, values in statements]
        # A result with rows has a current one; asking for its `description` would make one of every column.
        return [[] if cursor.rownumber is None else cursor.fetchall() for cursor in cursors]

    def snapshot(self, *statements: Statement) -> list[list[Row]]:
        """The rows of several statements that see one state, in one round trip."""
        return self.together([(_SNAPSHOT, ()), *statements, ("COMMIT", ())])[1:-1]

    @contextmanager
    def transaction(self, *, unhurried: bool = False) -> Iterator[None]:
        """A transaction that is committed at the end, and rolled back by an error. An unhurried one may take as long
        as it takes: it goes through everything.
        """
        self.run("BEGIN")
        if unhurried:
            self.run("SET LOCAL statement_timeout = 0")
        try:
            yield
        except WellkeptError:
            self.run("ROLLBACK")
            raise
        self.commit()

    def commit(self) -> None:
        """End the transaction."""
        self.committing = True
        self.run("COMMIT")
        self.committing = False


def _sql(text: str) -> bytes:
    return text.encode()  # every text is a constant of ours; values are bound


class Pool:
    """At most so many connections of one kind; the one used last is used next."""

    def __init__(self, options: Options, *, writes: bool, made: Callable[[Session], None]) -> None:
        self._options = options
        self._parameters = options.connecting(writes=writes)
        self._made = made
        self._slots = threading.Semaphore(options.pool_size)
        self._idle: list[psycopg.Connection[Row]] = []
        self._closed = False

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A connection for one caller. What it leaves broken or inside a transaction is not used again."""
        self._check_open()
        if not self._slots.acquire(timeout=self._options.lock_timeout_ms / 1000):
            raise StoreBusy(
                f"all {self._options.pool_size} connections of this process are in use",
                details={"pool_size": self._options.pool_size},
                hint="raise pool_size in the URL, or use fewer threads",
            )
        try:
            connection = self._idle.pop() if self._idle else self.connect()
            try:
                yield Session(connection)
            finally:
                self._give(connection)
        finally:
            self._slots.release()

    def connect(self) -> psycopg.Connection[Row]:
        """A new connection, with our settings."""
        import psycopg  # lazy: without the extra, the store still declares its settings

        self._check_open()
        options = self._options
        connection: psycopg.Connection[Row] = psycopg.connect(**self._parameters, autocommit=True)  # type: ignore[arg-type]  # parameters of libpq are texts
        path = f'"{options.schema}", public'
        timeouts = (options.statement_timeout_ms, options.lock_timeout_ms, options.idle_timeout_ms)
        try:
            connection.execute(_CONFIGURE, (path, *(f"{one}ms" for one in timeouts)))
            self._made(Session(connection))
        except BaseException:  # reason: nobody else could close it
            connection.close()
            raise
        return connection

    def _give(self, connection: psycopg.Connection[Row]) -> None:
        sound = not connection.closed and connection.info.transaction_status.name == "IDLE"
        if sound and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()

    def drop_idle(self) -> None:
        """Close what nobody uses: the server went away, and none of it will work."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return  # another thread was faster

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed", hint="open it again")

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back."""
        self._closed = True
        self.drop_idle()


def _nothing(_: Session) -> None:
    """Most connections need nothing more."""


class Server:
    """A database on a server, as one store uses it. ``made`` is told of each new connection that may write."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.made: Callable[[Session], None] = _nothing
        self._written = ""  # up to where this process wrote, if there are replicas
        self._replayed: WeakKeyDictionary[psycopg.Connection[Row], str] = WeakKeyDictionary()
        self._make_pools()

    def _make_pools(self) -> None:
        self.writers = Pool(self.options, writes=True, made=self._connected)
        self.readers = self.writers
        if self.options.reads_replicas:
            self.readers = Pool(self.options, writes=False, made=_nothing)

    def _connected(self, session: Session) -> None:
        self.made(session)

    def read(self, work: Callable[[Session], T]) -> T:
        """Read, on another connection if the first one breaks. A replica is asked if it has what this process wrote."""
        if self.readers is not self.writers:
            found = self._run(self.readers, lambda one: [work(one)] if self._follows(one) else [], repeatable=True)
            if found:
                return found[0]
        return self._run(self.writers, work, repeatable=True)

    def _follows(self, session: Session) -> bool:
        """Whether a replica has replayed what this process wrote last; the primary always has."""
        written = self._written
        if written and self._replayed.get(session.connection) != written:
            if session.rows(_REPLAYED, (written,)) != [(True,)]:
                return False
            self._replayed[session.connection] = written
        return True

    def write(self, work: Callable[[Session], T], *, repeatable: bool = False, once: bool = False) -> T:
        """Write. ``repeatable`` work may be done twice: it is repeated even if the answer to its commit was lost. What
        is to be done ``once`` at most does not wait for a server that is away.
        """

        def noting(session: Session) -> T:
            done = work(session)
            self.wrote(session)
            return done

        return self._run(self.writers, noting, repeatable=repeatable, once=once)

    def wrote(self, session: Session) -> None:
        """Note up to where this process wrote: a replica that is not there yet is not read."""
        if self.readers is not self.writers:
            [(self._written,)] = session.rows("SELECT pg_current_wal_insert_lsn()::text")

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A connection for a caller that reads piece by piece."""
        try:
            with self.readers.session() as session:
                if self._follows(session):
                    yield session
                    return
            with self.writers.session() as session:
                yield session
        except failures.driver_error() as error:
            raise failures.translate(error) from error

    def _run(self, pool: Pool, work: Callable[[Session], T], *, repeatable: bool, once: bool = False) -> T:
        deadline = time.monotonic() + (0 if once else self.options.reconnect_ms / 1000)
        pause_s = _FIRST_PAUSE_S
        while True:
            session: Session | None = None
            try:
                with pool.session() as session:
                    return work(session)
            except failures.driver_error() as error:
                safe = session is None or repeatable or not session.committing
                lost = failures.is_loss(error)
                if not (lost and safe) or time.monotonic() >= deadline or _is_final(error):
                    told = failures.translate(error)
                    if lost and not safe:
                        told.details = {**told.details, "outcome": "unknown"}
                    raise told from error
            pool.drop_idle()
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  # spreads the processes out
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def renew(self) -> None:
        """After a fork: the connections are the parent's."""
        self._make_pools()

    def close(self) -> None:
        """Close all connections."""
        self.writers.close()
        self.readers.close()


def _is_final(error: psycopg.Error) -> bool:
    """Whether connecting again would fail again."""
    return error.sqlstate is None and not isinstance(failures.translate(error), OSError)
