"""The server that tests of the PostgreSQL store run on."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from tools.postgres_server import PostgresServer

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30
_DYING = """
import os
from tools.postgres_server import PostgresServer
server = PostgresServer()
print(server.url(), server.folder, flush=True)
os.kill(os.getpid(), 9)
"""


def test_each_test_has_a_database_with_vectors(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT '[1,2]'::vector <-> '[1,2]'").fetchone() == (0.0,)
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_a_server_ends_with_the_process_that_started_it(postgres_server: PostgresServer) -> None:
    done = subprocess.run([sys.executable, "-c", _DYING], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -9
    url, folder = done.stdout.split()
    deadline = time.monotonic() + PATIENCE_S
    while _answers(url) or (Path(folder) / "data" / "postmaster.pid").exists():
        assert time.monotonic() < deadline
    shutil.rmtree(folder)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_server_that_was_killed_keeps_what_it_acknowledged() -> None:
    server = PostgresServer()
    try:
        server.execute("CREATE TABLE kept (number integer)")
        server.execute("INSERT INTO kept VALUES (7)")
        server.kill()
        server.start()
        assert server.execute("SELECT number FROM kept") == [(7,)]
        copy = server.create("template0")
        server.restore(server.dump(server.url()), copy)
        assert server.execute("SELECT number FROM kept", copy.rpartition("/")[2]) == [(7,)]
    finally:
        server.close()
    assert not server.folder.exists()
