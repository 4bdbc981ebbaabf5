"""Vectors over HTTP, against a real server on this machine."""

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, cast

import pytest

import recollect
from recollect.embedders import http
from recollect.embedders.http import HttpEmbedder
from recollect.errors import ConfigurationError, EmbeddingFailed, RateLimited, RecollectError, Unauthorized
from recollect.ports import Embedder

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

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        pass


class Server(ThreadingTCPServer):  # the one of http.server asks for the host's name, which may take seconds
    """Remembers the requests; ``script`` is what it answers first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.script: list[Answer] = []
        self.ended = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

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


@pytest.fixture
def server() -> Iterator[Server]:
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
    standard: dict[str, Any] = {"key": KEY, "sleep": Pauses(), "chance": lambda: 1.0, "clock": lambda: NOW}
    return HttpEmbedder(server.url, "some-model", **(standard | settings))


def fails(kind: type[RecollectError], one: HttpEmbedder, texts: Sequence[str] = (SECRET,)) -> RecollectError:
    with pytest.raises(RecollectError) as caught:
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


@pytest.mark.req("L1")
def test_texts_become_vectors(server: Server) -> None:
    one = embedder(server)
    assert [list(row) for row in one.embed(["a", "bb"])] == [vector("a"), vector("bb")]
    assert isinstance(one, Embedder)  # after the first call: Python 3.11 looks at the dimension here
    (path, headers, body), *more = server.requests
    assert more == []
    assert (path, body) == ("/v1/embeddings", {"model": "some-model", "input": ["a", "bb"]})
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    assert one.name == "http:some-model"


@pytest.mark.req("L1", "L2")
def test_a_database_with_a_remote_embedder(server: Server) -> None:
    with recollect.open("ram:", embedder=embedder(server)) as memories:
        view = memories.view(user="ada")
        stored = view.add_many(["one", "three"])
        found = view.get_many([memory.id for memory in stored], include_vector=True)
    vectors = [memory.vector for memory in found.values() if memory.vector is not None]
    assert [list(one.values) for one in vectors] == [vector("one"), vector("three")]
    assert {one.embedder for one in vectors} == {"http:some-model"}
    assert ["one", "three"] in server.texts()


@pytest.mark.req("L2")
def test_large_batches_are_split_and_keep_their_order(server: Server) -> None:
    texts = ["x" * length for length in range(1, 8)]
    rows = embedder(server, batch=3).embed(texts)
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert server.texts() == [texts[:3], texts[3:6], texts[6:]]
    assert embedder(server).embed([]) == []
    assert len(server.requests) == 3


def test_the_dimension_is_asked_for_given_or_learned(server: Server) -> None:
    asking = embedder(server, dimension=5)
    assert (asking.name, asking.dimension, server.requests) == ("http:some-model@5", 5, [])
    assert len(asking.embed(["a"])[0]) == 5
    assert server.requests[0][2]["dimensions"] == 5
    learning = embedder(server)
    assert (learning.dimension, learning.dimension) == (3, 3)
    assert len(server.requests) == 2
    assert "dimensions" not in server.requests[1][2]
    embedded = embedder(server)
    embedded.embed(["a"])
    assert embedded.dimension == 3
    assert len(server.requests) == 3


@pytest.mark.req("H10")
def test_another_dimension_than_before_is_refused(server: Server) -> None:
    one = embedder(server)
    one.embed(["a"])
    server.script = [saying('{"data": [{"index": 0, "embedding": [1, 2]}]}')]
    assert not fails(ConfigurationError, one).retryable


@pytest.mark.parametrize(("path", "target"), [("", "/embeddings"), ("/api/embeddings", "/api/embeddings")])
def test_the_address_may_end_anywhere(server: Server, path: str, target: str) -> None:
    server.url = server.url.removesuffix("/v1") + path
    embedder(server).embed(["a"])
    server.url += "/?version=2"
    embedder(server).embed(["a"])
    assert [path for path, _, _ in server.requests] == [target, f"{target}?version=2"]


@pytest.mark.req("H10")
@pytest.mark.parametrize(
    ("retry_after", "pause_s"),
    [
        ("7", 7),
        ("1.5", 1.5),
        (format_datetime(NOW + timedelta(seconds=9), usegmt=True), 9),
        ("Sat, 01 Mar 2025 14:00:09 +0200", 9),
        ("Sat, 01 Mar 2025 12:00:09 -0000", 9),
        ("0", 0.5),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.5),
        ("86400", http.LONGEST_WAIT_S),
        ("soon", 0.5),
        ("nan", 0.5),
        ("", 0.5),
        ("Mon, 99 Jan 2025 99:99:99 GMT", 0.5),
    ],
)
def test_a_pause_that_the_server_asks_for_is_kept(server: Server, retry_after: str, pause_s: float) -> None:
    pauses = Pauses()
    server.script = [status(429, retry_after=retry_after)]
    assert len(embedder(server, sleep=pauses).embed(["a"])) == 1
    assert list(pauses) == pytest.approx([pause_s])
    assert len(server.requests) == 2


@pytest.mark.req("H10")
def test_too_many_requests_until_the_end(server: Server) -> None:
    pauses = Pauses()
    server.script = [status(429, retry_after="2")] * 9
    error = fails(RateLimited, embedder(server, sleep=pauses))
    assert error.retryable
    assert error.details["retry_after_ms"] == 2000
    assert pauses == [2, 2]
    assert len(server.requests) == 3


@pytest.mark.req("H10")
@pytest.mark.parametrize("code", [408, 409, 500, 502, 503, 504])
def test_failures_of_the_server_are_tried_again_with_growing_pauses(server: Server, code: int) -> None:
    pauses = Pauses()
    server.script = [status(code)] * 9
    error = fails(EmbeddingFailed, embedder(server, sleep=pauses, attempts=5))
    assert error.retryable
    assert error.details["status"] == code
    assert pauses == [0.5, 1, 2, 4]
    assert len(server.requests) == 5


@pytest.mark.req("H10")
def test_each_batch_has_its_own_attempts_and_chance_shortens_the_pauses(server: Server) -> None:
    pauses = Pauses()
    script: list[Answer] = [status(500), status(500), embeddings]
    server.script = script * 2
    assert len(embedder(server, batch=1, sleep=pauses, chance=lambda: 0.0).embed(["a", "b"])) == 2
    assert pauses == [0.25, 0.5] * 2


@pytest.mark.req("H10")
@pytest.mark.parametrize(
    ("code", "kind"),
    [*((code, Unauthorized) for code in (401, 403)), *((code, ConfigurationError) for code in (400, 404, 413, 422))],
)
def test_refusals_are_not_tried_again(server: Server, code: int, kind: type[RecollectError]) -> None:
    pauses = Pauses()
    server.script = [status(code)]
    error = fails(kind, embedder(server, sleep=pauses))
    assert not error.retryable
    assert error.details["status"] == code
    assert pauses == []
    assert len(server.requests) == 1


# -- bad connections -----------------------------------------------------------------------------------------------


@pytest.mark.req("H10")
def test_a_server_that_does_not_answer(server: Server) -> None:
    server.script = [lambda handler, body: cast("None", server.ended.wait(10))] * 2
    started = time.monotonic()
    error = fails(EmbeddingFailed, embedder(server, timeout_s=0.2, attempts=2))
    assert error.retryable
    assert "0.2 s" in str(error)
    assert len(server.requests) == 2
    assert time.monotonic() - started < 5


@pytest.mark.req("H10")
def test_a_server_that_answers_byte_by_byte(server: Server) -> None:
    def trickle(handler: Handler, body: dict[str, Any]) -> None:
        handler.send(200, content_length="1000")
        while not server.ended.wait(0.02):
            handler.wfile.write(b" ")

    server.script = [trickle]
    started = time.monotonic()
    assert "0.3 s" in str(fails(EmbeddingFailed, embedder(server, timeout_s=0.3, attempts=1)))
    assert time.monotonic() - started < 5


@pytest.mark.req("H10")
def test_an_answer_that_is_cut_off_is_tried_again(server: Server) -> None:
    def cut_off(handler: Handler, body: dict[str, Any]) -> None:
        handler.send(200, b'{"data": [', content_length="1000")
        handler.close_connection = True

    def hang_up(handler: Handler, body: dict[str, Any]) -> None:
        handler.close_connection = True

    server.script = [cut_off, hang_up]
    assert len(embedder(server).embed(["a"])) == 1
    assert len(server.requests) == 3


def test_an_answer_without_a_length_is_read_to_its_end(server: Server) -> None:
    def in_chunks(handler: Handler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in (b'{"data": [{"index": 0,', b'"embedding": [1, 2, 3]}]}', b""):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    server.script = [in_chunks]
    assert [list(row) for row in embedder(server).embed(["a"])] == [[1, 2, 3]]


@pytest.mark.req("H10")
def test_an_answer_without_end_is_refused(server: Server) -> None:
    def flood(handler: Handler, body: dict[str, Any]) -> None:
        handler.send(200, content_length=str(1 << 40))
        with suppress(OSError):
            while not server.ended.is_set():
                handler.wfile.write(b" " * (1 << 16))

    server.script = [flood]
    assert "bytes" in str(fails(ConfigurationError, embedder(server)))
    assert len(server.requests) == 1


@pytest.mark.req("H10")
def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    pauses = Pauses()
    one = HttpEmbedder(f"http://127.0.0.1:{port}", "some-model", key=KEY, sleep=pauses, chance=lambda: 1.0)
    error = fails(EmbeddingFailed, one)
    assert error.retryable
    assert pauses == [0.5, 1]


ROW = '{"index": 0, "embedding": [1, 2, 3]}'
MALFORMED = {
    "no json": "<html>",
    "nothing": "",
    "not unicode": "\udcff",
    "half": '{"data": [',
    "no vectors": '{"error": "quota"}',
    "a list": f"[{ROW}]",
    "base64": '{"data": [{"index": 0, "embedding": "AACAPw=="}]}',
    "texts": '{"data": [{"index": 0, "embedding": ["1"]}]}',
    "null": '{"data": [{"index": 0, "embedding": [1, null]}]}',
    "an empty vector": '{"data": [{"index": 0, "embedding": []}]}',
    "no index": '{"data": [{"embedding": [1, 2, 3]}]}',
    "odd index": '{"data": [{"index": [0], "embedding": [1, 2, 3]}]}',
    "another index": '{"data": [{"index": 1, "embedding": [1, 2, 3]}]}',
    "too few": '{"data": []}',
    "too many": f'{{"data": [{ROW}, {ROW.replace("0", "1")}]}}',
    "nan": '{"data": [{"index": 0, "embedding": [NaN, 1]}]}',
    "infinity": '{"data": [{"index": 0, "embedding": [-Infinity, 1]}]}',
    "beyond 32 bits": '{"data": [{"index": 0, "embedding": [1e300, 1]}]}',
    "a huge integer": f'{{"data": [{{"index": 0, "embedding": [{"9" * 400}]}}]}}',
    "deep": "[" * 100_000,
}


@pytest.mark.req("H10", "L1")
@pytest.mark.parametrize("fault", MALFORMED)
def test_what_is_no_vector_is_refused(server: Server, fault: str) -> None:
    body = MALFORMED[fault].encode(errors="surrogateescape")
    server.script = [lambda handler, _: handler.send(200, body)]
    pauses = Pauses()
    assert fails(EmbeddingFailed, embedder(server, sleep=pauses)).retryable
    assert pauses == []


@pytest.mark.req("H10", "L2")
def test_one_text_without_its_vector(server: Server) -> None:
    server.script = [saying(f'{{"data": [{ROW}, {ROW}]}}')]
    assert "for 2 texts" in str(fails(EmbeddingFailed, embedder(server), [SECRET, "b"]))


# -- where texts may go --------------------------------------------------------------------------------------------


@pytest.mark.req("H10")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: Server, code: int) -> None:
    with Server() as other:
        server.script = [status(code, location=f"{other.url}/embeddings")]
        error = fails(ConfigurationError, embedder(server))
        other.timeout = 0.05
        other.handle_request()
        assert other.requests == []
    assert not error.retryable
    assert "redirect" in str(error)
    assert len(server.requests) == 1


def refused(url: Any, **settings: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        HttpEmbedder(url, **{"model": "some-model", "key": KEY, **settings})
    assert caught.value.hint
    assert KEY not in f"{caught.value!r} {caught.value}"
    return caught.value


@pytest.mark.req("H10")
@pytest.mark.parametrize(
    "host",
    "example.com api.openai.com.example.com openai.com xapi.openai.com api.openai.com@example.com localhost.example.com"
    " 192.168.1.2 127.0.0.1.example.com 0x7f.1 0.0.0.0 [fe80::1]".split(),
)
def test_hosts_must_be_allowed(host: str) -> None:
    assert refused(f"https://{host}/v1").details == {"field": "url"}


def test_the_error_says_how_to_allow_a_host() -> None:
    error = refused("https://Models.Example.com/v1", allowed_hosts=["example.com"])
    assert "allowed_hosts=['models.example.com']" in str(error)
    # An own list replaces ours, and a text is not a list of hosts, though it has parts.
    refused("https://api.openai.com/v1", allowed_hosts=["models.example.com"])
    assert refused("https://example.com", allowed_hosts="www.example.com").details["field"] == "allowed_hosts"
    # Texts leave the machine encrypted.
    assert "allow_http" in refused("http://example.com/v1", allowed_hosts=["example.com"]).hint


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("https://api.openai.com/v1", {}),
        ("HTTPS://API.OpenAI.com./v1", {}),
        ("https://models.example.com:8443/v1", {"allowed_hosts": ["Models.Example.COM"]}),
        ("http://models.example.com/v1", {"allowed_hosts": ["models.example.com"], "allow_http": True}),
        ("http://localhost:8080", {"allowed_hosts": []}),
        ("http://127.8.9.10", {}),
        ("http://[::1]:8080/v1", {}),
    ],
)
def test_allowed_hosts(url: str, settings: dict[str, Any]) -> None:
    assert HttpEmbedder(url, "some-model", key=KEY, **settings).name == "http:some-model"


@pytest.mark.req("H10")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("url", url) for url in ("", None, "https://localhost/v1\r\nX: y", "https://localhost/a b")),
        *(
            ("url", url)
            for url in "localhost/v1 file:///etc/passwd https:// https://[::1/v1 https://loc\u00e4l/".split()
        ),
        *(("url", f"https://{host}/") for host in ("localhost:99999", f"user:{KEY}@localhost", f"{KEY}@localhost")),
        *(("model", model) for model in ("", "a\nb", None)),
        *(("dimension", dimension) for dimension in (0, 1.5)),
        ("batch", 0),
        ("attempts", True),
        *(("timeout_s", timeout_s) for timeout_s in (0, float("inf"), "10")),
        *(("key", key) for key in ("", f"{KEY}\r\nX-Other: y", f"{KEY}\u00e4")),
        ("key_variable", "RECOLLECT_TEST_NO_SUCH_VARIABLE"),
    ],
)
def test_settings_are_checked(field: str, value: Any) -> None:
    settings = {"url": "http://localhost/v1", "key": None if field == "key_variable" else KEY, field: value}
    assert refused(**settings).details == {"field": field}


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TEST_KEY", f"{KEY}\n")
    embedder(server, key=None, key_variable="RECOLLECT_TEST_KEY").embed(["a"])
    embedder(server, key="given", key_variable="RECOLLECT_TEST_KEY").embed(["a"])
    embedder(server, key=None).embed(["a"])
    sent = [headers.get("Authorization") for _, headers, _ in server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer given", None]


def test_a_certificate_must_be_trusted(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_tool: Callable[[str], str]
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    wish = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [require_tool("openssl"), *wish.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.url = server.url.replace("http:", "https:")
    pauses = Pauses()
    assert not fails(ConfigurationError, embedder(server, sleep=pauses)).retryable
    assert (pauses, server.requests) == ([], [])
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert len(embedder(server).embed(["a"])) == 1
