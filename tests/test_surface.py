"""The public surface: pinned, documented by examples that run, and cheap to import."""

from __future__ import annotations

import doctest
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Whoever adds a name here promises to keep it.
PUBLIC = [
    "AgentMemory",
    "AgentSnapshot",
    "AgentStats",
    "CompactionReport",
    "ConfigurationError",
    "Conflict",
    "ContentTooLong",
    "ConversionReport",
    "DecayPolicy",
    "Diagnosis",
    "DroppedMemory",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "Filter",
    "Finding",
    "Health",
    "Hit",
    "Identity",
    "InvalidInput",
    "InvalidLayer",
    "KnowledgePointer",
    "Layer",
    "LayerSize",
    "LimitReached",
    "LockTimeout",
    "Memories",
    "Memory",
    "MemoryType",
    "MissingIdentifier",
    "NewMemory",
    "NotACopy",
    "NotAStore",
    "NotFound",
    "Operation",
    "OperationCompleted",
    "Owner",
    "Page",
    "Plan",
    "PlanRestriction",
    "PointerType",
    "QueryTooLong",
    "QuotaExceeded",
    "Ranking",
    "RateLimited",
    "RecollectError",
    "Removal",
    "Results",
    "SchemaTooNew",
    "ScopeDisposed",
    "Session",
    "SessionConfig",
    "SessionPreferences",
    "SessionStats",
    "Sessions",
    "Sort",
    "Source",
    "SourceType",
    "State",
    "Stats",
    "Status",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "TagUsage",
    "Unauthorized",
    "Vector",
    "Version",
    "View",
    "convert",
    "open",
]
# Plain strings cannot carry a docstring.
DOCUMENTED = [name for name in PUBLIC if not name.startswith("__")]


def modules() -> list[str]:
    """All modules of the package by name, found without importing them."""
    files = sorted((ROOT / "src" / "recollect").rglob("*.py"))
    paths = [file.relative_to(ROOT / "src").with_suffix("").parts for file in files]
    return [".".join(path[:-1] if path[-1] == "__init__" else path) for path in paths]


def public_methods(kind: type) -> Iterator[tuple[str, object]]:
    """Methods and properties that the package itself gives to a class."""
    for name, member in inspect.getmembers(kind):
        owner = getattr(inspect.unwrap(getattr(member, "fget", None) or member), "__module__", "")
        is_ours = isinstance(owner, str) and owner.partition(".")[0] == "recollect"
        if is_ours and not name.startswith("_") and (callable(member) or hasattr(member, "fget")):
            yield name, member


def test_public_names_are_pinned() -> None:
    assert sorted(recollect.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_public_name_has_an_example(name: str) -> None:
    documentation = inspect.getdoc(getattr(recollect, name)) or ""
    assert ">>>" in documentation, f"the docstring of recollect.{name} shows no example"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_public_methods_are_documented(name: str) -> None:
    thing = getattr(recollect, name)
    if inspect.isclass(thing):
        # getdoc looks at base classes too: an override need not repeat what it fulfils.
        bare = [method for method, member in public_methods(thing) if not inspect.getdoc(member)]
        assert bare == []


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    report: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        example.globs["recollect"] = recollect
        runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)


def test_import_stays_cheap() -> None:
    script = "import sys, recollect; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Each of them costs more than all of recollect; they come in when a database is opened.
    assert {"apsw", "msgspec", "numpy"} & set(done.stdout.split()) == set()
