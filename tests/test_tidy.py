"""Style that is executed.

Each rule is a function from a parsed module to complaints. RULES says where it applies; SAMPLES
proves, for each rule, that it finds what it forbids and leaves alone what it allows.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/wellkept/"
# `make check` remarks on a module of the package over 500 lines; over 900 it has more than one role.
MODULE_LINES_MAX = 900
FUNCTION_LINES_MAX = 70
BANNED_WORDS = frozenset(
    {
        "common",
        "data",
        "helper",
        "helpers",
        "info",
        "manager",
        "managers",
        "service",
        "services",
        "util",
        "utils",
    }
)
# Logic is pure: time and chance come in as arguments.
LOGIC_MODULES = frozenset(
    {
        "authorization",
        "entitlements",
        "filters",
        "hash_chain",
        "layers",
        "lifecycle",
        "recall",
        "sensitivity",
        "statistics",
        "text",
        "validation",
        "window",
        "working",
    }
)
IMPURE_MODULES = frozenset({"random", "secrets", "time"})
CLOCK_METHODS = frozenset({"now", "today", "utcnow"})
# A third-party package, and the one module that may know it.
SOLE_IMPORTERS = {"apsw": "stores/sqlite", "msgspec": "codec"}
# What is only good for measuring; `time.monotonic` is for deadlines.
STOPWATCHES = frozenset(
    f"{clock}{unit}" for clock in ("perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
)
# What users import: the modules of the reference, and those by which a store, an embedder and the like are named.
PUBLIC_MODULES = frozenset(
    {
        "aio",
        "cli",
        "embedders",
        "entitlements",
        "errors",
        "events",
        "keyrings",
        "logs",
        "memories",
        "operations",
        "ports",
        "recall.calibration",
        "settings",
        "telemetry",
        "testing",
        "text.tokens",
        "transfer.migration",
        "types",
        "window",
        "working",
    }
)
PUBLIC_FAMILIES = frozenset({"embedders", "indexes", "keyrings", "rerankers", "stores", "testing"})
MUTABLE_TYPES = frozenset(
    {
        "bytearray",
        "Counter",
        "defaultdict",
        "deque",
        "dict",
        "list",
        "OrderedDict",
        "set",
        "WeakKeyDictionary",
        "WeakSet",
        "WeakValueDictionary",
    }
)
CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*|__\w+__")

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file, parsed."""

    path: str
    text: str
    tree: ast.Module = field(init=False)
    nodes: tuple[ast.AST, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", ast.parse(self.text, self.path))
        object.__setattr__(self, "nodes", tuple(ast.walk(self.tree)))

    def says(self, node: ast.expr | ast.stmt | ast.excepthandler, word: str) -> bool:
        """Whether the line of a node gives a reason, as in `# lazy: numpy is slow to import`."""
        line = self.text.splitlines()[node.lineno - 1]
        return re.search(rf"# {word}: *\w", line) is not None

    @property
    def room(self) -> str:
        """The path inside the package, without its suffix: `stores/sqlite/rows`."""
        return self.path.removeprefix(PACKAGE).removesuffix(".py")


def nodes(source: Source, kind: type[Node]) -> Iterator[Node]:
    return (node for node in source.nodes if isinstance(node, kind))


def functions(source: Source) -> Iterator[Function]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imports(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Each import statement with the top-level package it names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, "" if node.level else (node.module or "").partition(".")[0]


# --- rules ----------------------------------------------------------------------------------------


def short_modules(source: Source) -> Iterator[str]:
    count = len(source.text.splitlines())
    if count > MODULE_LINES_MAX:
        yield f"{count} lines, at most {MODULE_LINES_MAX}: split it by role"


def short_functions(source: Source) -> Iterator[str]:
    for function in functions(source):
        count = (function.end_lineno or function.lineno) - function.lineno + 1
        first = function.body[0]
        if ast.get_docstring(function, clean=False) is not None:
            count -= (first.end_lineno or first.lineno) - first.lineno + 1
        if count > FUNCTION_LINES_MAX:
            yield f"{function.lineno}: {function.name} has {count} lines"


def telling_names(source: Source) -> Iterator[str]:
    names = [(1, PurePosixPath(source.path).stem), (1, PurePosixPath(source.path).parent.name)]
    for node in source.nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append((node.lineno, node.name))
    for line, name in names:
        words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)}
        if words & BANNED_WORDS:
            yield f"{line}: {name} says nothing about what it is"


def narrow_excepts(source: Source) -> Iterator[str]:
    for node in nodes(source, ast.ExceptHandler):
        if node.type is None:
            yield f"{node.lineno}: bare except"
            continue
        caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
        if caught & {"Exception", "BaseException"} and not source.says(node, "reason"):
            yield f"{node.lineno}: broad except without `# reason: ...` on its line"


def imports_on_top(source: Source) -> Iterator[str]:
    for function in functions(source):
        for node, _ in imports(function):
            if not source.says(node, "lazy"):
                yield f"{node.lineno}: import in a function without `# lazy: ...` on its line"


def no_prints(source: Source) -> Iterator[str]:
    for node in nodes(source, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"{node.lineno}: a library does not print"


def no_global_state(source: Source) -> Iterator[str]:
    for node in nodes(source, ast.Global):
        yield f"{node.lineno}: rebinds a global"
    for statement in _module_level(source.tree.body):
        match statement:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case _:
                continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if _is_mutable(value) and not all(CONSTANT.fullmatch(name) for name in names):
            yield f"{statement.lineno}: mutable global {', '.join(names)}"


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run on import, those in `if` and `try` included."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from _module_level(getattr(statement, part, []))


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in MUTABLE_TYPES
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    return isinstance(value, displays)


def pure_logic(source: Source) -> Iterator[str]:
    if source.room.partition("/")[0] not in LOGIC_MODULES:
        return
    for node, package in imports(source.tree):
        if package in IMPURE_MODULES:
            yield f"{node.lineno}: logic imports {package}"
    for call in nodes(source, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in CLOCK_METHODS:
            yield f"{call.lineno}: logic reads a clock; take `now` as an argument"


def sole_importers(source: Source) -> Iterator[str]:
    for node, package in imports(source.tree):
        room = SOLE_IMPORTERS.get(package)
        if room is not None and source.room != room and not source.room.startswith(f"{room}/"):
            yield f"{node.lineno}: only {room} imports {package}"


def no_stopwatches(source: Source) -> Iterator[str]:
    for node in source.nodes:
        names = [node.attr] if isinstance(node, ast.Attribute) else []
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        for name in names:
            if name in STOPWATCHES:
                yield f"{getattr(node, 'lineno', 0)}: {name} measures how busy the machine is: speed has its benchmarks"


def public_surface(source: Source) -> Iterator[str]:
    """What users rely on is tested by what they can reach: public modules, and no attribute with an underscore."""
    for node in source.nodes:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("tests.unit"):
                yield f"{getattr(node, 'lineno', 0)}: {name} knows the inside; what both need stands in tests/support"
            if name.partition(".")[0] == "wellkept" and not _is_public(name.removeprefix("wellkept").lstrip(".")):
                yield f"{getattr(node, 'lineno', 0)}: {name} is not public"
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            base = ast.unparse(node.value)
            if base not in {"self", "cls", "super()", "os"} and node.attr not in {"_replace", "_fields", "_asdict"}:
                yield f"{node.lineno}: {base}.{node.attr} is private"


def _is_public(name: str) -> bool:
    """Whether a module, or a name in one, may be imported; ``name`` is without the name of the package."""
    module = name if not name or _is_module(name) else name.rpartition(".")[0]
    family, _, member = module.partition(".")
    return not module or module in PUBLIC_MODULES or (family in PUBLIC_FAMILIES and "." not in member and member != "")


def _is_module(name: str) -> bool:
    path = ROOT / PACKAGE / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


Rule = Callable[[Source], Iterator[str]]
SOURCES = ("src/wellkept",)
UNSAFE_MODULES = frozenset({"cloudpickle", "dill", "jsonpickle", "marshal", "pickle", "shelve"})
UNSAFE_CALLS = frozenset({"__import__", "compile", "eval", "exec"})
# Loaders that run what they read, unless they are told not to; and a name for a file that somebody else may take first.
UNSAFE_METHODS = frozenset({"yaml.load", "yaml.load_all", "yaml.unsafe_load", "torch.load", "joblib.load"})
UNSAFE_METHODS |= {"tempfile.mktemp", "os.system", "os.popen"}
UNSAFE_ARGUMENTS = frozenset({"allow_pickle", "shell"})


def no_unsafe_loaders(source: Source) -> Iterator[str]:
    """What is read is never run: no pickles, no evaluated text, no shell."""
    for node in source.nodes:
        for name in _imported(node):
            if name.split(".")[0] in UNSAFE_MODULES:
                yield f"line {node.lineno} imports {name}"  # type: ignore[attr-defined]
    for node in nodes(source, ast.Call):
        called = ast.unparse(node.func)
        if called in UNSAFE_CALLS | UNSAFE_METHODS or called.removeprefix("builtins.") in UNSAFE_CALLS:
            yield f"line {node.lineno} calls {called}"
        for one in node.keywords:
            told = called.startswith("subprocess.") or one.arg != "shell"
            if told and one.arg in UNSAFE_ARGUMENTS and ast.unparse(one.value) != "False":
                yield f"line {node.lineno} passes {one.arg}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


RULES: dict[Rule, tuple[str, ...]] = {
    short_modules: SOURCES,
    short_functions: SOURCES,
    telling_names: SOURCES,
    narrow_excepts: SOURCES,
    imports_on_top: SOURCES,
    no_prints: SOURCES,
    no_global_state: SOURCES,
    pure_logic: SOURCES,
    sole_importers: SOURCES,
    no_unsafe_loaders: SOURCES,
    no_stopwatches: ("tests",),
    public_surface: ("tests/contract",),
}


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """The Python files of a folder; each is parsed once for all rules."""
    files = sorted((ROOT / folder).rglob("*.py"))
    return tuple(Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_code_is_tidy(rule: Rule) -> None:
    files = [source for folder in RULES[rule] for source in sources(folder)]
    assert [f"{source.path}: {complaint}" for source in files for complaint in rule(source)] == []


# --- text in all files ----------------------------------------------------------------------------

# Put together from parts, so that this file does not contain what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.~$})>-])" + "/" + r"(?:home|root|tmp|work|Users)\b(?!\.)|[A-Z]:\\Users\b")
REGISTRY_HOST = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("crates", "io"),
            ("docker", "io"),
            ("ghcr", "io"),
            ("quay", "io"),
            ("anaconda", "org"),
        )
    ),
    re.IGNORECASE,
)
UNTRACKED_FOLDERS = frozenset({".git", ".venv", "build", "dist", "__pycache__", ".hypothesis"})


def foreign_text(text: str) -> list[str]:
    """Machine paths and registry hosts, each with its line."""
    return [
        f"{number}: {match.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern in (MACHINE_PATH, REGISTRY_HOST)
        for match in pattern.finditer(line)
    ]


def project_files() -> list[Path]:
    """What git tracks or would track; in a source archive, all files but known products."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if (ROOT / ".git").exists() and listing.returncode == 0:
        files = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:
        files = [
            file
            for file in ROOT.rglob("*")
            if not any(part in UNTRACKED_FOLDERS or part.endswith("_cache") for part in file.relative_to(ROOT).parts)
        ]
    return [file for file in files if file.is_file()]


def test_files_name_no_machine_and_no_registry() -> None:
    complaints = []
    for file in project_files():
        content = file.read_bytes()
        if b"\0" in content:
            continue  # not a text
        text = content.decode("utf-8", errors="replace")
        complaints += [f"{file.relative_to(ROOT)}:{found}" for found in foreign_text(text)]
    assert complaints == []


def test_foreign_text_is_found_and_harmless_text_is_left_alone() -> None:
    foreign = [
        *(f'x = "/{folder}/ada/x.db"' for folder in ("home", "root", "tmp", "work", "Users")),
        "sqlite:///" + "home/ada/x.db",
        "cd /" + "root",
        "C:" + "\\Users\\ada",
        "https://files." + "pythonhosted" + ".org/packages",
        "pip install -i https://" + "PyPI" + ".org/simple",
    ]
    harmless = ["tests/work/x", "a home/root folder", "/" + "working", "~/" + "tmp/x", "pip install x"]
    complaints = {text: foreign_text(f"first\n{text}\n") for text in foreign + harmless}
    # The text stands in the second line, and a complaint begins with its number.
    assert [text for text in foreign if not complaints[text] or not complaints[text][0].startswith("2: ")] == []
    assert {text: complaints[text] for text in harmless if complaints[text]} == {}


# --- the rules find what they forbid --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """A module that a rule must complain about, or that it must accept."""

    rule: Rule
    text: str
    good: bool = False
    path: str = PACKAGE + "module.py"


LONG_BODY = "    x = 1\n" * FUNCTION_LINES_MAX
LONG_DOCSTRING = '    """' + "text\n" * FUNCTION_LINES_MAX + '    """\n'
SAMPLES = [
    Sample(short_modules, "x = 1\n" * (MODULE_LINES_MAX + 1)),
    Sample(short_modules, "x = 1\n" * MODULE_LINES_MAX, good=True),
    Sample(short_functions, f"def f():\n{LONG_BODY}"),
    Sample(short_functions, f"class C:\n  async def f():\n{LONG_BODY}"),
    Sample(short_functions, f"def f():\n{LONG_DOCSTRING}    x = 1\n", good=True),
    Sample(telling_names, "class MemoryManager: ..."),
    Sample(telling_names, "class HTTPService: ..."),
    Sample(telling_names, "def load_data(): ..."),
    Sample(telling_names, "class C:\n  def _info(self): ..."),
    Sample(telling_names, "", path=PACKAGE + "stores/utils.py"),
    Sample(telling_names, "", path=PACKAGE + "common/__init__.py"),
    Sample(telling_names, "class Database:\n  def metadata(self): ...", good=True),
    Sample(narrow_excepts, "try: ...\nexcept: ..."),
    Sample(narrow_excepts, "try: ...\nexcept:  # reason: none is good enough\n  ..."),
    Sample(narrow_excepts, "try: ...\nexcept Exception: ..."),
    Sample(narrow_excepts, "try: ...\nexcept (OSError, BaseException) as e: ..."),
    Sample(narrow_excepts, "try: ...\nexcept Exception:  # reason:\n  ..."),
    Sample(narrow_excepts, "try: ...\nexcept Exception:  # reason: a hook\n  ...", good=True),
    Sample(narrow_excepts, "try: ...\nexcept (OSError, ValueError): ...", good=True),
    Sample(imports_on_top, "def f():\n  import numpy"),
    Sample(imports_on_top, "class C:\n  def f(self):\n    if x:\n      from a import b"),
    Sample(imports_on_top, "def f():\n  import numpy  # lazy: slow to import", good=True),
    Sample(imports_on_top, "if TYPE_CHECKING:\n  import numpy", good=True),
    Sample(no_prints, "def f():\n  print('x')"),
    Sample(no_prints, "log.print('x')", good=True),
    Sample(no_global_state, "cache = {}"),
    Sample(no_global_state, "cache: dict[str, int] = dict()"),
    Sample(no_global_state, "seen = collections.defaultdict(list)"),
    Sample(no_global_state, "if x:\n  names = [n for n in y]"),
    Sample(no_global_state, "def f():\n  global x\n  x = 1"),
    Sample(no_global_state, "_NAMES = {'a': 1}\n__all__ = ['a']\nx = frozenset()", good=True),
    Sample(no_global_state, "def f():\n  x = []\nclass C:\n  y = {}", good=True),
    Sample(pure_logic, "import time", path=PACKAGE + "lifecycle/decay.py"),
    Sample(pure_logic, "from random import random", path=PACKAGE + "recall/ranking.py"),
    Sample(pure_logic, "x = datetime.now(UTC)", path=PACKAGE + "filters.py"),
    Sample(pure_logic, "x = dt.date.today()", path=PACKAGE + "window/context.py"),
    Sample(pure_logic, "from datetime import time", path=PACKAGE + "filters.py", good=True),
    Sample(pure_logic, "import time", path=PACKAGE + "stores/filters.py", good=True),
    Sample(no_unsafe_loaders, "import pickle"),
    Sample(no_unsafe_loaders, "def f():\n  from marshal import loads"),
    Sample(no_unsafe_loaders, "import os, shelve"),
    Sample(no_unsafe_loaders, "x = eval(text)"),
    Sample(no_unsafe_loaders, "exec(code, {})"),
    Sample(no_unsafe_loaders, "m = __import__(name)"),
    Sample(no_unsafe_loaders, "yaml.load(text, Loader=Loader)"),
    Sample(no_unsafe_loaders, "np.load(path, allow_pickle=True)"),
    Sample(no_unsafe_loaders, "subprocess.run(line, shell=flag)"),
    Sample(no_unsafe_loaders, "path = tempfile.mktemp()"),
    Sample(no_unsafe_loaders, "np.load(path, allow_pickle=False)", good=True),
    Sample(no_unsafe_loaders, "re.compile(text)\nyaml.safe_load(text)\nconnection.exec(sql)", good=True),
    Sample(sole_importers, "import msgspec"),
    Sample(sole_importers, "def f():\n  from apsw.ext import x", path=PACKAGE + "stores/ram.py"),
    Sample(sole_importers, "import apsw", path=PACKAGE + "stores/sqlite_old.py"),
    Sample(sole_importers, "import msgspec.json", path=PACKAGE + "codec.py", good=True),
    Sample(sole_importers, "import apsw", path=PACKAGE + "stores/sqlite/rows.py", good=True),
    Sample(no_stopwatches, "import time\nstarted = time.perf_counter()"),
    Sample(no_stopwatches, "from time import process_time_ns"),
    Sample(public_surface, "from wellkept.engine.core import Engine"),
    Sample(public_surface, "from wellkept.stores.sqlite.rows import read"),
    Sample(public_surface, "from wellkept import codec"),
    Sample(public_surface, "import wellkept.engine"),
    Sample(public_surface, "memories._engine.store"),
    Sample(public_surface, "from tests.unit.test_words import text"),
    Sample(public_surface, "import wellkept\nfrom wellkept import View, types\nself._view", good=True),
    Sample(public_surface, "from wellkept.stores.sqlite import SqliteStore\nimport wellkept.aio", good=True),
    Sample(public_surface, "from wellkept.testing.builders import owner\nrow._replace(id=1)", good=True),
    Sample(no_stopwatches, "import time\ndeadline = time.monotonic() + 5", good=True),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_finds_what_it_forbids_and_nothing_else(rule: Rule) -> None:
    samples = [sample for sample in SAMPLES if sample.rule is rule]
    complaints = [(sample, list(rule(Source(sample.path, sample.text)))) for sample in samples]
    assert [sample for sample, said in complaints if not said and not sample.good] == [], "not found"
    assert [(sample, said) for sample, said in complaints if said and sample.good] == [], "not forbidden"


def test_what_a_rule_names_exists() -> None:
    """A rule for a module that was renamed would never complain again."""
    places = LOGIC_MODULES | set(SOLE_IMPORTERS.values()) | PUBLIC_FAMILIES
    places |= {name.replace(".", "/") for name in PUBLIC_MODULES}
    modules = {place: ROOT / PACKAGE / place for place in sorted(places)}
    files = {place: (ROOT / place, path.with_suffix(".py"), path / "__init__.py") for place, path in modules.items()}
    assert [place for place, candidates in files.items() if not any(file.is_file() for file in candidates)] == []


def test_every_rule_is_proven_both_ways() -> None:
    for good in (True, False):
        assert {sample.rule for sample in SAMPLES if sample.good is good} == set(RULES)
