"""Vectors over HTTP, against a real server on this machine."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, cast

import pytest

import wellkept
from tests.support.embedding_server import (
    KEY,
    NOW,
    SECRET,
    Answer,
    Handler,
    Pauses,
    Server,
    embedder,
    embeddings,
    fails,
    running,
    saying,
    status,
    vector,
)
from wellkept.embedders import http
from wellkept.embedders.http import HttpEmbedder
from wellkept.errors import ConfigurationError, EmbeddingFailed, RateLimited
from wellkept.ports import Embedder
from wellkept.testing.cases import Cases


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as one:
        yield one


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
    with wellkept.open("ram:", embedder=embedder(server)) as memories:
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


def test_connections_are_kept_alive_and_closed_with_the_embedder(server: Server) -> None:
    one = embedder(server, batch=1)
    one.embed(["a", "b"])
    server.script = [status(500)]
    one.embed(["c"])
    assert (len(server.requests), server.connections) == (4, 1)
    assert not server.hung_up.is_set()
    del one
    assert server.hung_up.wait(10)


FORKED = """
import os, sys
from wellkept.embedders.http import HttpEmbedder
one = HttpEmbedder(sys.argv[1], "some-model")
one.embed(["before"])
child = os.fork()
assert len(one.embed(["child" if child == 0 else "parent"])[0]) == 3
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_processes_do_not_share_a_connection(server: Server) -> None:
    subprocess.run([sys.executable, "-c", FORKED, server.url], check=True, timeout=60)
    assert sorted(server.texts()) == [["before"], ["child"], ["parent"]]
    assert server.connections == 2


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


PAUSES: tuple[tuple[str, float], ...] = (
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
)


@pytest.mark.req("H10")
def test_a_pause_that_the_server_asks_for_is_kept(server: Server) -> None:
    with Cases() as cases:
        for retry_after, pause_s in PAUSES:
            with cases.case(retry_after):
                pauses = Pauses()
                server.requests.clear()
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
def test_failures_of_the_server_are_tried_again_with_growing_pauses(server: Server) -> None:
    with Cases() as cases:
        for code in (408, 409, 500, 502, 503, 504):
            with cases.case(code):
                pauses = Pauses()
                server.requests.clear()
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
def test_refusals_are_not_tried_again(server: Server) -> None:
    with Cases() as cases:
        for code in (400, 401, 403, 404, 413, 422):
            with cases.case(code):
                pauses = Pauses()
                server.requests.clear()
                server.script = [status(code)]
                error = fails(ConfigurationError, embedder(server, sleep=pauses))
                assert not error.retryable
                assert error.details["status"] == code
                assert pauses == []
                assert len(server.requests) == 1


# -- bad connections -----------------------------------------------------------------------------------------------


@pytest.mark.req("H10")
def test_a_server_that_does_not_answer(server: Server) -> None:
    server.script = [lambda handler, body: cast("None", server.ended.wait(10))] * 2
    error = fails(EmbeddingFailed, embedder(server, timeout_s=0.2, attempts=2))
    assert error.retryable
    assert "0.2 s" in str(error)
    assert len(server.requests) == 2


@pytest.mark.req("H10")
def test_a_server_that_answers_byte_by_byte(server: Server) -> None:
    def trickle(handler: Handler, body: dict[str, Any]) -> None:
        handler.send(200, content_length="1000")
        while not server.ended.wait(0.02):
            handler.wfile.write(b" ")

    server.script = [trickle]
    assert "0.3 s" in str(fails(EmbeddingFailed, embedder(server, timeout_s=0.3, attempts=1)))


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
    one = HttpEmbedder(f"http://127.0.0.1:{port}", "some-model", key=KEY, attempts=3, sleep=pauses, chance=lambda: 1.0)
    error = fails(EmbeddingFailed, one)
    assert error.retryable
    assert pauses == [0.5, 1]


def sending(body: bytes) -> Answer:
    return lambda handler, _: handler.send(200, body)


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
def test_what_is_no_vector_is_refused(server: Server) -> None:
    with Cases() as cases:
        for fault, body in MALFORMED.items():
            with cases.case(fault):
                server.script = [sending(body.encode(errors="surrogateescape"))]
                pauses = Pauses()
                assert fails(EmbeddingFailed, embedder(server, sleep=pauses)).retryable
                assert pauses == []


@pytest.mark.req("H10", "L2")
def test_one_text_without_its_vector(server: Server) -> None:
    server.script = [saying(f'{{"data": [{ROW}, {ROW}]}}')]
    assert "for 2 texts" in str(fails(EmbeddingFailed, embedder(server), [SECRET, "b"]))
