"""Where the embedder behind HTTP may send texts: hosts, redirects, proxies, keys and certificates."""

import ssl
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.embedding_server import KEY, Pauses, Server, embedder, fails, running, status
from wellkept.embedders.http import HttpEmbedder
from wellkept.errors import ConfigurationError
from wellkept.testing.cases import Cases


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as one:
        yield one


@pytest.mark.req("H10")
def test_redirects_are_not_followed(server: Server) -> None:
    with Cases() as cases:
        for code in (301, 302, 303, 307, 308):
            with cases.case(code):
                server.requests.clear()
                with Server() as other:
                    server.script = [status(code, location=f"{other.url}/embeddings")]
                    error = fails(ConfigurationError, embedder(server))
                    other.timeout = 0.05
                    other.handle_request()
                    assert other.requests == []
                assert not error.retryable
                assert "redirect" in str(error)
                assert len(server.requests) == 1


def test_a_proxy_of_the_environment_is_used_for_other_machines_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with running() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        settings: dict[str, Any] = {"allowed_hosts": ["models.example.com"], "allow_http": True}
        assert len(HttpEmbedder("http://models.example.com/v1", "some-model", **settings).embed(["a"])) == 1
        assert [path for path, _, _ in proxy.requests] == ["http://models.example.com/v1/embeddings"]
        assert len(embedder(server).embed(["b"])) == 1
        assert (len(proxy.requests), len(server.requests)) == (1, 1)


@pytest.mark.req("H10")
@pytest.mark.parametrize("proxy", [f"gopher://user:{KEY}@localhost:1", f"http://user:{KEY}@localhost:no"])
def test_a_proxy_that_makes_no_sense_is_refused(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(ConfigurationError, match="proxy") as caught:
        HttpEmbedder("https://api.openai.com/v1", "some-model", key=KEY).embed(["a"])
    assert KEY not in "".join(traceback.format_exception(caught.value))


def refused(url: Any, **settings: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        HttpEmbedder(url, **{"model": "some-model", "key": KEY, **settings})
    assert caught.value.hint
    assert KEY not in f"{caught.value!r} {caught.value}"
    return caught.value


FOREIGN_HOSTS = (
    "example.com api.openai.com.example.com openai.com xapi.openai.com api.openai.com@example.com localhost.example.com"
    " 192.168.1.2 127.0.0.1.example.com 0x7f.1 0.0.0.0 [fe80::1]"
).split()


@pytest.mark.req("H10")
def test_hosts_must_be_allowed() -> None:
    with Cases() as cases:
        for host in FOREIGN_HOSTS:
            with cases.case(host):
                assert refused(f"https://{host}/v1").details == {"field": "url"}


def test_the_error_says_how_to_allow_a_host() -> None:
    error = refused("https://Models.Example.com/v1", allowed_hosts=["example.com"])
    assert "allowed_hosts=['models.example.com']" in str(error)
    # An own list replaces ours, and a text is not a list of hosts, though it has parts.
    refused("https://api.openai.com/v1", allowed_hosts=["models.example.com"])
    assert refused("https://example.com", allowed_hosts="www.example.com").details["field"] == "allowed_hosts"
    # Texts leave the machine encrypted.
    assert "allow_http" in refused("http://example.com/v1", allowed_hosts=["example.com"]).hint


ALLOWED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("https://api.openai.com/v1", {}),
    ("HTTPS://API.OpenAI.com./v1", {}),
    ("https://models.example.com:8443/v1", {"allowed_hosts": ["Models.Example.COM"]}),
    ("http://models.example.com/v1", {"allowed_hosts": ["models.example.com"], "allow_http": True}),
    ("http://localhost:8080", {"allowed_hosts": []}),
    ("http://127.8.9.10", {}),
    ("http://[::1]:8080/v1", {}),
)


def test_allowed_hosts() -> None:
    with Cases() as cases:
        for url, settings in ALLOWED:
            with cases.case(url):
                assert HttpEmbedder(url, "some-model", key=KEY, **settings).name == "http:some-model"


BAD_SETTINGS: tuple[tuple[str, Any], ...] = (
    *(("url", url) for url in ("", None, "https://localhost/v1\r\nX: y", "https://localhost/a b")),
    *(("url", url) for url in "localhost/v1 file:///etc/passwd https:// https://[::1/v1 https://loc\u00e4l/".split()),
    *(("url", f"https://{host}/") for host in ("localhost:99999", f"user:{KEY}@localhost", f"{KEY}@localhost")),
    *(("model", model) for model in ("", "a\nb", None)),
    *(("dimension", dimension) for dimension in (0, 1.5)),
    ("batch", 0),
    ("attempts", True),
    *(("timeout_s", timeout_s) for timeout_s in (0, float("inf"), "10")),
    *(("key", key) for key in ("", f"{KEY}\r\nX-Other: y", f"{KEY}\u00e4")),
    ("key_variable", "WELLKEPT_TEST_NO_SUCH_VARIABLE"),
)


@pytest.mark.req("H10")
def test_settings_are_checked() -> None:
    with Cases() as cases:
        for field, value in BAD_SETTINGS:
            with cases.case(field, value):
                settings = {"url": "http://localhost/v1", "key": None if field == "key_variable" else KEY, field: value}
                assert refused(**settings).details == {"field": field}


def test_the_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WELLKEPT_TEST_KEY", f"{KEY}\n")
    embedder(server, key=None, key_variable="WELLKEPT_TEST_KEY").embed(["a"])
    embedder(server, key="given", key_variable="WELLKEPT_TEST_KEY").embed(["a"])
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
