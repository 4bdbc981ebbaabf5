"""How databases are named: the forms of URLs, their options, and how messages show them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

from wellkept.errors import ConfigurationError
from wellkept.settings.declarations import Section, Setting, members

_SECRETS = re.compile(r"(?<=://)[^/?#]*(?=@)|(?<=password=)[^&\s]*", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # at least two letters: "C:" is a drive

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlForm:
    """How the URLs of a store are read.

    ``sample`` is one of them, for hints. ``names`` says what stands behind the scheme: the path of a file or of a
    folder, or something else. A new store can be given a ``durability``, unless it has none.
    """

    sample: str = ""
    names: Literal["file", "folder"] | None = None
    durability: bool = True


def split_url(url: str) -> tuple[str, str]:
    """The scheme of a URL and what stands behind it; a path has no scheme.

    >>> split_url("RAM:"), split_url("memory.db"), split_url("C:memory.db")
    (('ram', ''), ('', 'memory.db'), ('', 'C:memory.db'))
    """
    match = _SCHEME.match(url)
    return (match[1].lower(), url[match.end() :]) if match else ("", url)


def shown(url: object) -> str:
    """A database as messages may name it: without user and password.

    >>> shown("postgresql://ada:secret@host/db?password=secret&schema=a")
    'postgresql://***@host/db?password=***&schema=a'
    """
    return re.sub(_SECRETS, "***", str(url))[:200]


def with_options(url: str, given: Mapping[str, object]) -> str:
    """The URL with options that it does not have already.

    >>> with_options("postgresql://host/db?schema=a", {"schema": "b", "pool_size": 4})
    'postgresql://host/db?schema=a&pool_size=4'
    """
    known = {name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)}
    added = urlencode([(name, value) for name, value in given.items() if value is not None and name not in known])
    return f"{url}{'&' if '?' in url else '?'}{added}" if added else url


def read_options(url: str, section: type[S]) -> tuple[str, S]:
    """A URL without the options that a section declares, and the section as they say.

    >>> from wellkept.settings.schema import ListSettings
    >>> read_options("shelf:notes?page_size=7&colour=red", ListSettings)
    ('shelf:notes?colour=red', ListSettings(page_size=7))
    """
    place, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    given, known = {}, members(section)
    for name, text in options:
        if isinstance(one := known.get(name), Setting):
            value = one.kind.parse(text)
            if not one.kind.accepts(value):
                raise ConfigurationError(
                    f"{name} must be {one.kind.allowed}", details={"field": name}, hint=f"correct {name}= in the URL"
                )
            given[name] = one.kind.value(value)
    rest = urlencode([(name, text) for name, text in options if name not in known])
    return f"{place}?{rest}" if rest else place, section(**given)
