"""A server of embeddings on this machine, for the tests of the embedder behind HTTP."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, cast

import pytest

from wellkept.embedders.http import HttpEmbedder
from wellkept.errors import WellkeptError

KEY = "sk-very-secret-0123"
SECRET = "the launch code is 4711"
NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Answers with the next answer of the script, and with embeddings when it is used up."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = cast("Server", self.server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append((self.path, dict(self.headers), body))
        (server.script.pop(0) if server.script else embeddings)(self, body)

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def finish(self) -> None:
        """The client has closed its connection."""
        super().finish()
        cast("Server", self.server).hung_up.set()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        pass


class Server(ThreadingTCPServer):  # the one of http.server asks for the host's name, which may take seconds
    """Remembers the requests; ``script`` is what it answers first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.script: list[Answer] = []
        self.connections = 0
        self.ended, self.hung_up = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def get_request(self) -> Any:
        accepted = super().get_request()
        self.connections += 1
        return accepted

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""

    def texts(self) -> list[list[str]]:
        return [body["input"] for _, _, body in self.requests]


def vector(text: str, dimension: int = 3) -> list[float]:
    return [float(len(text))] + [0.5] * (dimension - 1)


def embeddings(handler: Handler, body: dict[str, Any]) -> None:
    length = body.get("dimensions", 3)
    rows = [{"index": index, "embedding": vector(text, length)} for index, text in enumerate(body["input"])]
    # In the wrong order: the index counts.
    handler.send(200, json.dumps({"object": "list", "data": rows[::-1]}).encode())


def status(code: int, **headers: str) -> Answer:
    # Servers quote what they were sent; none of it may come back in an error.
    return lambda handler, body: handler.send(code, f"bad: {KEY} {SECRET}".encode(), **headers)


def saying(body: str) -> Answer:
    return lambda handler, _: handler.send(200, body.encode())


@contextmanager
def running() -> Iterator[Server]:
    """A server that answers in a thread of its own."""
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.ended.set()
        one.shutdown()
        thread.join()


class Pauses(list[float]):
    """Takes the place of time.sleep and remembers what it was asked for."""

    __call__ = list.append


def embedder(server: Server, **settings: Any) -> HttpEmbedder:
    standard: dict[str, Any] = {
        "key": KEY,
        "attempts": 3,
        "sleep": Pauses(),
        "chance": lambda: 1.0,
        "clock": lambda: NOW,
    }
    return HttpEmbedder(server.url, "some-model", **(standard | settings))


def fails(kind: type[WellkeptError], one: HttpEmbedder, texts: Sequence[str] = (SECRET,)) -> WellkeptError:
    with pytest.raises(WellkeptError) as caught:
        one.embed(texts)
    error = caught.value
    assert type(error) is kind
    assert error.hint
    assert error.details["embedder"] == one.name
    assert error.details["host"] == "127.0.0.1"
    shown = f"{error} {error!r} {error.details} {error.__cause__!r} {one!r} {vars(one)}"
    for secret in (KEY, SECRET):
        assert secret not in shown
    return error
