"""The public surface: pinned, documented by examples that run, and cheap to import."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import recollect
import recollect.events
import recollect.ports
import recollect.types

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


@pytest.mark.parametrize("module", [recollect, recollect.events, recollect.ports, recollect.types])
def test_names_that_are_imported_on_demand_are_those_that_type_checkers_see(module: ModuleType) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert set(module.__all__) <= set(seen) & set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is getattr(importlib.import_module(seen[name] or ""), name)
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018  # asking is what is tested


@pytest.mark.parametrize("name", [name for name, _ in public_methods(recollect.View) if name != "sessions"])
def test_whoever_makes_tools_of_the_verbs_of_a_view_can_read_their_types(name: str) -> None:
    method = getattr(recollect.View, name)
    if not isinstance(method, property):
        assert "return" in typing.get_type_hints(method)


def test_reading_a_memory_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    script = (
        "import sys, recollect\n"
        "with recollect.open(sys.argv[1], embedder=None) as memories:\n"
        "    found = memories.view(user='ada').get(sys.argv[2])\n"
        "    print(found.content, *sys.modules, sep='\\n')\n"
    )
    with recollect.open(tmp_path / "a.db", embedder=None) as memories:
        id = memories.view(user="ada").add("Likes tea").id
    command = [sys.executable, "-c", script, str(tmp_path / "a.db"), id]
    content, *loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert content == "Likes tea"
    # What makes a start slow is making classes: those of others stay out.
    others = {"events.kinds", "types.query", "types.reports", "memories.adding", "watching"}
    assert {f"recollect.{one}" for one in others} & set(loaded) == set()


def test_import_stays_cheap() -> None:
    script = "import sys, recollect; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Each of them costs more than all of recollect; they come in when a database is opened.
    assert {"apsw", "msgspec", "numpy"} & set(done.stdout.split()) == set()
