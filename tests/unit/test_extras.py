"""Whoever asks for something of an extra that is not installed is told its name, and what to type."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

from wellkept import extras

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
ASKING = [
    ("encryption", "wellkept.open('ram:', keyring='ram:', encrypt='all').view(user='ada').add('Likes tea')"),
    ("http", "wellkept.embedders.http.HttpEmbedder('http://localhost:1/v1/embeddings', 'model').embed(['tea'])"),
    ("local", "wellkept.open('ram:', embedder='bge')"),
    ("local", "wellkept.rerankers.cross_encoder.CrossEncoder()"),
    ("otel", "wellkept.telemetry.instrument(wellkept.open('ram:'))"),
    ("postgres", "wellkept.open('postgresql://localhost/memory')"),
    ("postgres", "wellkept.open('postgres://localhost/memory')"),
    ("postgres", "wellkept.stores.postgres"),
    ("testing", "wellkept.testing"),
    ("tokens", "wellkept.text.tokens.bpe_counter()"),
]
SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))  # importing them fails as if they were not installed
import wellkept
try:
    exec(sys.argv[1])
except wellkept.errors.ConfigurationError as error:
    print(error.message, error.hint, error.details["extra"], error.details["package"], sep="\\n")
"""


@pytest.mark.req("H10")
@pytest.mark.slow
@pytest.mark.parametrize(("extra", "code"), ASKING)
def test_where_an_extra_is_missing_the_error_says_what_to_install(extra: str, code: str) -> None:
    packages = extras.PACKAGES[extra]
    done = subprocess.run([sys.executable, "-c", SCRIPT, code, *packages], capture_output=True, text=True, check=True)
    told = [f"the extra '{extra}' is missing", f"pip install 'wellkept[{extra}]'", extra, packages[0]]
    assert done.stdout.splitlines() == told


def test_whoever_walks_through_the_modules_passes_over_what_lacks_its_extra() -> None:
    script = (
        "import pkgutil, sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); import wellkept\n"
        "print(*[one.name for one in pkgutil.walk_packages(wellkept.__path__, 'wellkept.')])\n"
        "try: import wellkept.testing\n"
        "except ImportError as error: print(error)"
    )
    packages = {name for names in extras.PACKAGES.values() for name in names}
    done = subprocess.run([sys.executable, "-c", script, *packages], capture_output=True, text=True, check=True)
    names, refusal = done.stdout.splitlines()
    assert {"wellkept.stores.sqlite.rows", "wellkept.working.scopes", "wellkept.types"} <= set(names.split())
    assert refusal == "the extra 'testing' is missing (pip install 'wellkept[testing]')"


def test_the_packages_of_an_extra_are_those_that_the_project_declares(absent: Callable[[str], NoReturn]) -> None:
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    distributions = metadata.packages_distributions()
    for extra, packages in extras.PACKAGES.items():
        if not extras.installed(extra):
            absent(f"wellkept[{extra}] is not installed")
        required = {re.split(r"[^\w-]", one)[0] for one in declared[extra]}
        assert all(required & set(distributions[package]) for package in packages), extra
        assert required <= {name for package in packages for name in distributions[package]}, extra
