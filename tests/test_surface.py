"""The public surface: pinned, documented by examples that run, and cheap to import."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import pytest

import wellkept
from wellkept import entitlements, extras, types, window
from wellkept.sessions.export import Format

ROOT = Path(__file__).resolve().parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# What a program needs on its first day, and no more than 20: whoever adds a name promises to keep it.
PUBLIC = [
    "AgentMemory",
    "Filter",
    "Hit",
    "Identity",
    "Layer",
    "Memories",
    "Memory",
    "MemoryType",
    "NewMemory",
    "WellkeptError",
    "Results",
    "View",
    "__version__",
    "aio",
    "convert",
    "errors",
    "events",
    "open",
    "ports",
    "types",
]
HOMES = [wellkept, wellkept.types, wellkept.errors, wellkept.entitlements, wellkept.memories]


def offered(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The classes and functions that a module offers, with their full names. Other values cannot carry a docstring."""
    names = getattr(module, "__all__", None) or [name for name, _ in inspect.getmembers(module, inspect.isclass)]
    for name in names:
        thing = getattr(module, name)
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("wellkept"):
            yield f"{module.__name__}.{name}", thing


# What takes long to import, and is needed by some calls only.
HEAVY = {"asyncio", "httpx", "onnxruntime", "rich", "tokenizers"}
OFFERED = dict(one for home in HOMES for one in offered(home))
# A type checker reads the words on the left, the engine the values on the right.
WORDS: list[tuple[object, type[StrEnum]]] = [
    (types.LayerName, types.Layer),
    (types.MemoryTypeName, types.MemoryType),
    (types.SourceTypeName, types.SourceType),
    (types.SortName, types.Sort),
    (types.RankingName, types.Ranking),
    (types.ExportFormatName, Format),
    (entitlements.FeatureName, entitlements.Feature),
    (window.RoleName, window.Role),
    (window.StrategyName, window.Strategy),
]


# Looks at every module that can be seen from the package, from the top down, in an installation without extras.
WITHOUT_EXTRAS = """
import inspect, rlcompleter, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # importing them fails as if they were not installed
import wellkept

def visit(module):
    {way}
    names.append(module.__name__)
    for name in dir(module):
        part = getattr(module, name)
        if inspect.ismodule(part) and part.__name__ == f"{{module.__name__}}.{{name}}":
            visit(part)

names = []
visit(wellkept)
print(*names)
"""
WAYS = {
    "help": "help(module)",
    "members": "inspect.getmembers(module)",
    "completion": "rlcompleter.Completer(dict(module=module)).attr_matches('module.')",
}


def modules() -> dict[str, Path]:
    """All modules of the package by name, found without importing them."""
    files = sorted((ROOT / "src" / "wellkept").rglob("*.py"))
    paths = [file.relative_to(ROOT / "src").with_suffix("").parts for file in files]
    names = [".".join(path[:-1] if path[-1] == "__init__" else path) for path in paths]
    return dict(zip(names, files, strict=True))


def public_methods(kind: type) -> Iterator[tuple[str, object]]:
    """Methods and properties that the package itself gives to a class."""
    for name, member in inspect.getmembers(kind):
        owner = getattr(inspect.unwrap(getattr(member, "fget", None) or member), "__module__", "")
        is_ours = isinstance(owner, str) and owner.partition(".")[0] == "wellkept"
        if is_ours and not name.startswith("_") and (callable(member) or hasattr(member, "fget")):
            yield name, member


def test_public_names_are_pinned() -> None:
    assert sorted(wellkept.__all__) == sorted(PUBLIC)
    assert len(PUBLIC) <= 20


def test_importing_the_package_is_enough() -> None:
    """Each name in an interpreter of its own, where no other name has loaded what it needs."""
    errors: dict[str, str] = {}
    for name in (*PUBLIC, "entitlements", "memories", "testing"):
        script = f"import wellkept; wellkept.{name}; assert {name!r} in dir(wellkept)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if done.returncode:
            errors[name] = done.stderr
    assert errors == {}


def test_the_words_of_a_type_are_the_values_of_its_enumeration() -> None:
    words = {values.__name__: typing.get_args(names) for names, values in WORDS}
    assert words == {values.__name__: tuple(one.value for one in values) for _, values in WORDS}


def test_the_words_of_durability_are_those_that_open_takes(tmp_path: Path) -> None:
    for word in typing.get_args(types.DurabilityName):
        with wellkept.open(tmp_path / f"{word}.db", durability=word) as memories:
            assert memories.settings()["durability"] == word
    with pytest.raises(wellkept.errors.ConfigurationError):
        wellkept.open(tmp_path / "other.db", durability="other")  # type: ignore[arg-type]


def test_reprs_can_be_read_and_hide_contents(tmp_path: Path) -> None:
    with wellkept.open(f"sqlite:{tmp_path / 'memory.db'}", embedder=None) as memories:
        view = memories.view(user="ada", project="api")
        assert repr(memories) == f"<Memories sqlite:{tmp_path / 'memory.db'}>"
        assert repr(view) == "<View user=ada project=api>"
        assert repr(memories.agent("helper", user="ada")) == "<AgentMemory agent=helper user=ada>"
        assert repr(view.search("tea")) == "<Results 0 of 0>"
        memory = view.add("Prefers dark mode in secret places", type="preference", tags=["quiet"])
        assert repr(memory) == f"<Memory {memory.id} preference, 34 characters>"
        results = view.search("dark mode")
        assert repr(results) == f"<Results 1 of 1: {results.hits[0].score:.2f}>"
        for value in (results, results.hits[0], view.list(), view.history(memory.id)):
            assert "secret" not in repr(value)
        view.add("x" * 10_000)
        assert len(repr(view.search("x" * 10_000))) < 100


def called() -> set[object]:
    """What a user calls: functions, and the classes of the surface, by their methods."""
    surface = {kind for _, kind in offered(wellkept.memories) if inspect.isclass(kind) and not is_dataclass(kind)}
    return {thing for thing in OFFERED.values() if inspect.isfunction(thing)} | surface


def constructed() -> set[object]:
    """The values that a user makes: what is called takes them, or they are part of one that is taken."""
    methods = [method for kind in called() if isinstance(kind, type) for _, method in public_methods(kind)]
    calls: list[Callable[..., object]] = [one for one in (*called(), *methods) if inspect.isroutine(one)]
    values: set[object] = set()
    for call in calls:
        hints = {}
        with suppress(NameError):  # some types are imported for type checkers only
            hints = typing.get_type_hints(inspect.unwrap(call))
        waiting = [hint for name, hint in hints.items() if name != "return"]
        while waiting:
            hint = waiting.pop()
            waiting += typing.get_args(hint)
            if isinstance(hint, type) and is_dataclass(hint) and hint not in values:
                values.add(hint)
                waiting += typing.get_type_hints(hint).values()
    return values


def test_what_a_user_constructs_or_calls_has_an_example() -> None:
    asked = called() | constructed()
    bare = [name for name, thing in OFFERED.items() if thing in asked and ">>>" not in (inspect.getdoc(thing) or "")]
    assert bare == []
    assert {wellkept.View, wellkept.convert, wellkept.Filter, wellkept.types.Source} <= asked
    assert not {wellkept.types.Mark, wellkept.types.Page, wellkept.errors.Held} & asked


def test_public_methods_are_documented() -> None:
    classes = {name: thing for name, thing in OFFERED.items() if inspect.isclass(thing)}
    # getdoc looks at base classes too: an override need not repeat what it fulfils.
    bare = [
        f"{name}.{method}"
        for name, kind in classes.items()
        for method, member in public_methods(kind)
        if not inspect.getdoc(member)
    ]
    assert bare == []


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: dict[str, str] = {}
    tried = 0
    for number, name in enumerate(modules()):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
        report: list[str] = []
        for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name):
            example.globs["wellkept"] = wellkept
            runner.run(example, out=report.append)
        tried += runner.tries
        if runner.failures:
            reports[name] = "".join(report)
    assert reports == {}
    assert tried


ON_DEMAND = [name for name, file in modules().items() if "exports.on_demand(" in file.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", ON_DEMAND)
def test_names_that_are_imported_on_demand_are_those_that_type_checkers_see(name: str) -> None:
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module or "" for node in imports for alias in node.names}
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "on_demand" in ast.unparse(node.func)]
    assert sorted(homes) == sorted(" ".join(ast.literal_eval(call.args[1]).values()).split())
    module = importlib.import_module(name)
    assert {*homes, *getattr(module, "__all__", ())} <= set(dir(module))
    for one, home in homes.items():
        assert getattr(module, one) is getattr(importlib.import_module(home), one)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018  # asking is what is tested


@pytest.mark.parametrize("way", WAYS)
def test_whoever_looks_around_needs_no_extra(way: str) -> None:
    script = WITHOUT_EXTRAS.format(way=WAYS[way])
    command = [sys.executable, "-c", script, *{name for names in extras.PACKAGES.values() for name in names}]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = set(done.stdout.splitlines()[-1].split())
    assert {"wellkept.types", "wellkept.window", "wellkept.text.tokens", "wellkept.stores.sqlite"} <= seen
    assert seen & {"wellkept.testing", "wellkept.stores.postgres"} == set()


def test_a_failing_assertion_of_the_kit_says_what_it_compared() -> None:
    asserting = [
        name
        for name, file in modules().items()
        if name.startswith("wellkept.testing.")
        and re.search(r"^ +assert ", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    # pytest's own loader has rewritten the assertions; any other one leaves them at "AssertionError".
    loaders = {name: type(importlib.import_module(name).__loader__).__name__ for name in asserting}
    assert loaders == dict.fromkeys(asserting, "AssertionRewritingHook")
    assert asserting


def test_whoever_makes_tools_of_the_verbs_of_a_view_can_read_their_types() -> None:
    untyped = {}
    for name, method in public_methods(wellkept.View):
        if not isinstance(method, property):
            try:
                hints = typing.get_type_hints(method)
            except NameError as error:
                untyped[name] = str(error)
            else:
                if "return" not in hints:
                    untyped[name] = "no type of what it returns"
    assert untyped == {}


def test_reading_a_memory_loads_nothing_heavy_that_only_others_need(tmp_path: Path) -> None:
    script = (
        "import sys, wellkept\n"
        "with wellkept.open(sys.argv[1], embedder=None) as memories:\n"
        "    found = memories.view(user='ada').get(sys.argv[2])\n"
        "    print(found.content, *sys.modules, sep='\\n')\n"
    )
    with wellkept.open(tmp_path / "a.db", embedder=None) as memories:
        id = memories.view(user="ada").add("Likes tea").id
    command = [sys.executable, "-c", script, str(tmp_path / "a.db"), id]
    content, *loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert content == "Likes tea"
    assert HEAVY & set(loaded) == set()


def test_import_stays_cheap() -> None:
    script = "import sys, wellkept; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # Each of them costs more than all of wellkept; they come in when a database is opened.
    assert {"apsw", "msgspec", "numpy"} & set(done.stdout.split()) == set()
