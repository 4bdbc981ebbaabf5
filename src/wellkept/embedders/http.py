"""An embedder for servers with an OpenAI-compatible ``POST .../embeddings``; needs the extra ``http`` (httpx).

Texts leave this machine here: the host must be on an allow-list, TLS is required except for loopback addresses, and
redirects are not followed. Connections are kept alive. Proxies come from the environment (``HTTPS_PROXY``,
``NO_PROXY``), and none is used for loopback. Errors name host, model and status; never a text, a key, or the body of
a response.
"""

import ipaddress
import json
import math
import os
import random
import ssl
import threading
import time
import weakref
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from wellkept import extras
from wellkept.errors import ConfigurationError, EmbeddingFailed, RateLimited, WellkeptError
from wellkept.ports import Clock

if TYPE_CHECKING:
    import httpx

WELL_KNOWN_HOSTS = frozenset(
    {
        "api.deepinfra.com",
        "api.fireworks.ai",
        "api.jina.ai",
        "api.mistral.ai",
        "api.openai.com",
        "api.together.xyz",
        "api.voyageai.com",
        "generativelanguage.googleapis.com",
        "openrouter.ai",
    }
)
"""The default of ``allowed_hosts``: public providers with an ``/embeddings`` endpoint."""

FIRST_WAIT_S = 0.5
"""The backoff before the first retry; it doubles with each retry."""

LONGEST_WAIT_S = 30.0
"""The longest backoff, whatever ``Retry-After`` says: a caller is waiting."""

_RETRYABLE = frozenset({408, 409})  # 429 has an error of its own
_BYTES_PER_TEXT = 1 << 20  # more than the longest vectors take as JSON


@dataclass(frozen=True, slots=True)
class _Address:
    """Where requests go. Errors show the host and nothing else of the URL."""

    host: str
    url: str
    local: bool


class _Key:
    """An API key whose ``repr`` is masked."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._value}"}

    def __repr__(self) -> str:
        return "***"


def _now() -> datetime:
    return datetime.now(UTC)


class HttpEmbedder:
    """An embedder behind HTTP: a provider's, or a server of your own.

    ``url`` is the base address, with or without ``/embeddings``. ``dimension`` requests shortened vectors; leave it out
    for models without that feature. The key is given, or read from the environment variable ``key_variable``.
    ``allowed_hosts`` replaces ``WELL_KNOWN_HOSTS``; loopback is always allowed. ``timeout_s`` applies per attempt,
    ``attempts`` per batch of at most ``batch`` texts, with exponential backoff and jitter; one is enough in a database,
    which repeats calls by its ``RetryPolicy``. ``embed`` raises ``EmbeddingFailed`` or ``RateLimited`` after the last
    attempt, ``ConfigurationError`` where a retry cannot help.

    >>> embedder = HttpEmbedder("http://127.0.0.1:8080/v1", "bge-m3", dimension=512)
    >>> embedder.name, embedder.dimension
    ('http:bge-m3@512', 512)
    """

    slow = True

    def __init__(
        self,
        url: str,
        model: str,
        *,
        dimension: int | None = None,
        key: str | None = None,
        key_variable: str | None = None,
        timeout_s: float = 10.0,
        batch: int = 128,
        attempts: int = 1,
        allowed_hosts: Collection[str] = WELL_KNOWN_HOSTS,
        allow_http: bool = False,
        sleep: Callable[[float], object] = time.sleep,
        chance: Callable[[], float] = random.random,
        clock: Clock = _now,
    ) -> None:
        self._address = _address(url, allowed_hosts, allow_http=allow_http)
        self._model = _model(model)
        for field, value in (("timeout_s", timeout_s), ("batch", batch), ("attempts", attempts)):
            _check_positive(field, value)
        if dimension is not None:
            _check_positive("dimension", dimension)
        self._key = _key(key, key_variable)
        self._requested = self._dimension = dimension
        self._timeout_s, self.batch, self._attempts = timeout_s, batch, attempts
        self._sleep, self._chance, self._clock = sleep, chance, clock
        self._client: httpx.Client | None = None
        self._process = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpEmbedder(host={self._address.host!r}, model={self._model!r}, dimension={self._requested!r})"

    @property
    def name(self) -> str:
        """The model and the requested dimension. Not the host: the same model may move to another."""
        return f"http:{self._model}" if self._requested is None else f"http:{self._model}@{self._requested}"

    @property
    def dimension(self) -> int:
        """As requested, or as the server answers: then the first access may send a request."""
        if self._dimension is None:
            self._dimension = len(self.embed(["dimension"])[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> list["array[float]"]:
        """One vector per text, in order, in batches."""
        rows: list[array[float]] = []
        for start in range(0, len(texts), self.batch):
            rows += self._embed(texts[start : start + self.batch])
        return rows

    def _embed(self, texts: Sequence[str]) -> list["array[float]"]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts)}
        if self._requested is not None:
            body["dimensions"] = self._requested
        rows = self._rows(self._request_with_retries(json.dumps(body).encode(), len(texts)), len(texts))
        if self._dimension is None:
            self._dimension = len(rows[0])
        if any(len(row) != self._dimension for row in rows):
            raise self._error(
                ConfigurationError,
                f"returned vectors without {self._dimension} dimensions",
                "the model was replaced, or cannot shorten its vectors: check model and dimension",
            )
        return rows

    # -- requests ---------------------------------------------------------------------------------------------

    def _request_with_retries(self, body: bytes, count: int) -> bytes:
        """Retry with exponential backoff; errors that a retry cannot fix propagate at once."""
        failures = 0
        while True:
            try:
                return self._request(body, count)
            except (EmbeddingFailed, RateLimited) as error:
                failures += 1
                if failures == self._attempts:
                    raise
                retry_after_s = error.details.get("retry_after_ms", 0) / 1000
            # Jitter over half of the backoff, so that many clients do not retry at the same moment.
            backoff_s = FIRST_WAIT_S * 2 ** (failures - 1) * (1 + self._chance()) / 2
            self._sleep(min(LONGEST_WAIT_S, max(backoff_s, retry_after_s)))

    def _request(self, body: bytes, count: int) -> bytes:
        client = self._connected()
        import httpx  # lazy: an extra, and heavy

        try:
            status, headers, answer = self._exchange(client, body, count)
        except (httpx.TimeoutException, TimeoutError) as error:
            raise self._error(
                EmbeddingFailed, f"did not answer within {self._timeout_s:g} s", "try again, or raise timeout_s"
            ) from error
        except httpx.HTTPError as error:
            if _is_untrusted(error):
                raise self._error(
                    ConfigurationError, "has a certificate that cannot be trusted", "check the url and the certificates"
                ) from error
            raise self._error(
                EmbeddingFailed,
                f"could not be reached ({type(error).__name__})",
                "check the network and try again",
            ) from error
        if 200 <= status < 300:
            return answer
        raise self._refusal(status, headers)

    def _exchange(self, client: "httpx.Client", body: bytes, count: int) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request; returns status, headers and body."""
        deadline, most, answer = time.monotonic() + self._timeout_s, (count + 1) * _BYTES_PER_TEXT, bytearray()
        with client.stream("POST", self._address.url, content=body, headers=self._headers()) as response:
            # Streamed: the timeout of httpx applies to each read, and a slow trickle must end as well.
            for part in response.iter_bytes():
                answer += part
                if time.monotonic() > deadline:
                    raise TimeoutError
                if len(answer) > most:
                    raise self._error(
                        ConfigurationError, f"answered with more than {most} bytes", "check that the url is right"
                    )
            return response.status_code, response.headers, bytes(answer)

    def _connected(self) -> "httpx.Client":
        """The client, shared by threads. After a fork, the child process creates its own."""
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client, self._process = self._new_client(), os.getpid()
                weakref.finalize(self, self._client.close)
            return self._client

    def _new_client(self) -> "httpx.Client":
        extras.require("http")
        import httpx  # lazy: an extra, and heavy

        system = ssl.create_default_context()
        with suppress(ImportError, ValueError, httpx.InvalidURL):  # they quote the proxy, maybe a password
            return httpx.Client(verify=system, timeout=self._timeout_s, trust_env=not self._address.local)
        raise self._error(
            ConfigurationError,
            "cannot be reached through the proxy that the environment names",
            "check HTTPS_PROXY and ALL_PROXY, or add the host to NO_PROXY",
        )

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        return headers | (self._key.headers() if self._key else {})

    # -- responses --------------------------------------------------------------------------------------------

    def _rows(self, answer: bytes, count: int) -> list["array[float]"]:
        try:
            found = {item["index"]: array("f", item["embedding"]) for item in json.loads(answer)["data"]}
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            found = None  # the exception would quote the response
        if found is None:
            raise self._error(
                EmbeddingFailed, "answered with something else than embeddings", "check that the url is right"
            )
        if len(found) != count or set(found) != set(range(count)):
            raise self._error(
                EmbeddingFailed, f"answered with {len(found)} vectors for {count} texts", "try a smaller batch"
            )
        rows = [found[index] for index in range(count)]
        if not all(row and all(map(math.isfinite, row)) for row in rows):
            raise self._error(EmbeddingFailed, "answered with a vector that is not finite", "check the model")
        return rows

    def _refusal(self, status: int, headers: Mapping[str, str]) -> WellkeptError:
        """The error for a status other than success."""
        details: dict[str, Any] = {"status": status}
        if (pause_s := _retry_after(headers.get("retry-after", ""), self._clock())) is not None:
            details["retry_after_ms"] = round(1000 * pause_s)
        if status == 429:
            return self._error(RateLimited, "rate-limited the request", "wait, or send smaller batches", details)
        if status in _RETRYABLE or status >= 500:
            return self._error(EmbeddingFailed, f"answered with status {status}", "try again later", details)
        if status in (401, 403):
            return self._error(
                ConfigurationError, "refused the key", "check key, or the variable key_variable", details
            )
        if 300 <= status < 400:
            return self._error(
                ConfigurationError,
                "sent a redirect, which is not followed",
                "pass the final address as url, and allow its host",
                details,
            )
        return self._error(
            ConfigurationError,
            f"refused the request with status {status}",
            "check url, model and dimension, and that the texts are not too long for the model",
            details,
        )

    def _error(
        self, kind: type[WellkeptError], what: str, hint: str, details: Mapping[str, Any] | None = None
    ) -> WellkeptError:
        host = self._address.host
        return kind(
            f"the embedding server {host!r} {what}",
            details={"embedder": self.name, "host": host, **(details or {})},
            hint=hint,
        )


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether the cause is a rejected certificate: httpx and httpcore each wrap that error once."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _retry_after(value: str, now: datetime) -> float | None:
    """The seconds of a Retry-After header, a number or a date; ``None`` if it is neither."""
    try:
        pause_s = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        pause_s = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    return max(0.0, pause_s) if math.isfinite(pause_s) else None


# -- validation of the arguments ------------------------------------------------------------------------------


def _wrong(field: str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{field} {what}", details={"field": field}, hint=hint)


def _address(url: object, allowed_hosts: Collection[str], *, allow_http: bool) -> _Address:
    # No message shows the URL: it may contain a password.
    if isinstance(allowed_hosts, str):
        raise _wrong("allowed_hosts", "must be a list of host names", "pass allowed_hosts=['host']")
    parts, port = _split(url)
    if parts.username is not None or parts.password is not None:
        raise _wrong("url", "must not contain a user or a password", "pass key or key_variable instead")
    host = (parts.hostname or "").rstrip(".")
    local = _is_loopback(host)
    if not local and host not in {name.lower().rstrip(".") for name in allowed_hosts}:
        raise _wrong("url", f"names the host {host!r}, which is not allowed", f"pass allowed_hosts=[{host!r}]")
    if parts.scheme == "http" and not (local or allow_http):
        raise _wrong("url", "would send texts unencrypted", "use https, or pass allow_http=True in a network you trust")
    shown = f"[{host}]" if ":" in host else host
    return _Address(host, f"{parts.scheme}://{shown}:{port}{_target(parts)}", local)


def _split(url: object) -> tuple[SplitResult, int]:
    try:
        if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url:
            parts = urlsplit(url)
            port = parts.port or {"http": 80, "https": 443}[parts.scheme]
            if parts.hostname:
                return parts, port
    except (ValueError, KeyError):
        pass  # the exception would quote the url
    raise _wrong("url", "must be an http or https address", "pass one such as 'https://api.openai.com/v1'")


def _target(parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    path = path if path.endswith("/embeddings") else f"{path}/embeddings"
    return f"{path}?{parts.query}" if parts.query else path


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _model(model: object) -> str:
    if not (isinstance(model, str) and model and model.isprintable()):
        raise _wrong("model", "must be the name of a model", "pass the name that the server knows it by")
    return model


def _check_positive(field: str, value: float) -> None:
    whole = field != "timeout_s"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < math.inf:
        raise _wrong(field, f"must be a {'whole ' if whole else ''}number above 0", "leave it out for the default")


def _key(key: str | None, variable: str | None) -> _Key | None:
    field = "key"
    if key is None and variable is not None:
        field, key = "key_variable", os.environ.get(variable)
        if key is None:
            raise _wrong(field, f"names {variable!r}, which is not set", "set it in the environment, or pass key")
    if key is None:
        return None
    # A trailing line break is common in keys read from files. Any other odd character could inject a header.
    key = key.strip()
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise _wrong(field, "does not hold a usable key", "a key is one word of ASCII characters")
    return _Key(key)
