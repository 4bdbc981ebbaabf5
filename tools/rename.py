"""Renames modules, and names in them, wherever the repository writes them: source, tests, tools, benchmarks, documents.

    python tools/rename.py wellkept.text.dates=wellkept.text.times          # moves a module, or a package
    python tools/rename.py wellkept.text.dates=wellkept.text.words          # merges it into a module that exists
    python tools/rename.py wellkept.text.words:named=terms_of               # a function, class or constant
    python tools/rename.py wellkept.text.words:Words.of.found=terms         # a local variable of Words.of

Several renames may be given at once. Python is read with its scopes: an import under another name stays as it is, and
a local variable of the same name is left alone. In strings, comments and documents, dotted names and paths change.
Nothing is written if one place cannot be changed safely: it is named instead. What only a reader can decide is
printed. Run `make lint` and the tests afterwards; both tell what is left.
"""

import io
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import (
    Assignment,
    BaseAssignment,
    ByteSpanPositionProvider,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    Scope,
    ScopeProvider,
)

SOURCE, PACKAGE = "src/", "wellkept"
DOCUMENTS = frozenset({".md", ".toml", ".json", ".yml", ".in", ""})
STRINGS = frozenset({"STRING", "FSTRING_MIDDLE", "COMMENT"})


class Refused(Exception):
    """Why nothing is renamed: the places that cannot be changed safely, one to a line."""


@dataclass(slots=True)
class Renames:
    """What is renamed, by dotted names."""

    modules: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    variables: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """By module, function and variable, as in ("wellkept.text.words", "Words.of", "found")."""

    @classmethod
    def parsed(cls, arguments: list[str]) -> "Renames":
        """
        >>> Renames.parsed(["a.b=a.c", "a.b:f=g"])
        Renames(modules={'a.b': 'a.c'}, names={'a.b.f': 'a.b.g'}, variables={})
        """
        renames = cls()
        for argument in arguments:
            old, _, new = argument.partition("=")
            module, colon, name = old.partition(":")
            function, _, variable = name.rpartition(".")
            if not (module and new) or (colon and not (variable and new.isidentifier())):
                raise Refused(f"{argument}: write old.module=new.module or module:name=new_name")
            if function:
                renames.variables[module, function, variable] = new
            elif colon:
                renames.names[f"{module}.{name}"] = f"{module}.{new}"
            else:
                renames.modules[old] = new
        return renames

    def new(self, name: str) -> str:
        """What a module, or something in one, is called afterwards.

        >>> Renames(modules={"a.b": "c"}, names={"a.b.f": "a.b.g"}).new("a.b.f.x")
        'c.g.x'
        """
        for table in (self.names, self.modules):
            head, tail = name, ""
            while head and head not in table:
                head, _, last = head.rpartition(".")
                tail = f".{last}{tail}"
            name = table[head] + tail if head else name
        return name

    def in_text(self, text: str) -> str:
        """Prose, where modules and names are written with dots, with a colon, or as paths; also without the package.

        >>> Renames(modules={"wellkept.text.dates": "wellkept.times"}).in_text("`text/dates.py`, wellkept.text.dates:f")
        '`times.py`, wellkept.times:f'
        """
        forms = {}
        for old, new in (*self.modules.items(), *self.names.items()):
            short_old, short_new = old.removeprefix(f"{PACKAGE}."), new.removeprefix(f"{PACKAGE}.")
            forms[old] = new
            if old in self.modules:
                forms[old.replace(".", "/")] = new.replace(".", "/")
                if "." in short_old:  # a word of its own is a word of the language, too
                    forms |= {short_old: short_new, short_old.replace(".", "/"): short_new.replace(".", "/")}
            else:
                module, _, name = old.rpartition(".")
                forms[f"{module}:{name}"] = f"{self.new(module)}:{new.rpartition('.')[2]}"
        written = "|".join(
            ("" if form.startswith((PACKAGE, "tests")) else "(?<!/)") + re.escape(form)
            for form in sorted(forms, key=len, reverse=True)
        )
        return re.sub(rf"(?<![\w.])({written})(?!\w)", lambda match: forms[match[1]], text) if forms else text


def module_of(path: str) -> str:
    """
    >>> module_of("src/wellkept/text/__init__.py"), module_of("tests/unit/test_words.py")
    ('wellkept.text', 'tests.unit.test_words')
    """
    return path.removeprefix(SOURCE).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class PythonFile:
    """One file with its scopes, and what renames change in it."""

    def __init__(self, path: str, text: str, renames: Renames) -> None:
        self.path, self.module, self.home = path, module_of(path), renames.new(module_of(path))
        self.refusals: list[str] = []
        self._text, self._renames = text.encode(), renames
        wrapper = MetadataWrapper(cst.parse_module(text))
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
        self._edits: dict[tuple[int, int], str] = {}

    def renamed(self) -> str:
        """The text afterwards."""
        for assignment in (assignment for scope in self._scopes for assignment in scope.assignments):
            if isinstance(assignment, ImportAssignment):
                self._rename_uses(assignment)
            elif isinstance(assignment, Assignment):
                self._rename_definition(assignment)
        for node in {assignment.node for assignment in self._imports()}:
            self._rename_statement(node)
        self._rename_offers()
        text = self._text
        for (start, end), new in sorted(self._edits.items(), reverse=True):
            text = text[:start] + new.encode() + text[end:]
        return _in_strings(text.decode(), self._renames)

    def offered_again(self) -> Iterator[tuple[str, str]]:
        """Renamed names that this module has imported, so that others may import them from here: old and new."""
        for assignment in self._imports():
            old = _imported(assignment)
            unaliased = old.endswith(f".{assignment.name}")
            if unaliased and old in self._renames.names and isinstance(assignment.scope, GlobalScope):
                name = self._renames.names[old].rpartition(".")[2]
                yield f"{self.module}.{assignment.name}", f"{self.module}.{name}"

    def _imports(self) -> Iterator[ImportAssignment]:
        for scope in self._scopes:
            yield from (each for each in scope.assignments if isinstance(each, ImportAssignment))

    # --- what is imported -------------------------------------------------------------------------------------------

    def _rename_statement(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                self._edit(alias.name, self._renames.new(alias.evaluated_name))
            return
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar) or node.module is None:
            return
        imported = [(f"{_code(node.module)}.{alias.evaluated_name}", alias.evaluated_alias) for alias in node.names]
        if all(self._renames.new(old) == old and not self._is_own(old) for old, _ in imported):
            return
        names: dict[str, list[str]] = {}
        for old, alias_name in imported:
            module, _, name = self._renames.new(old).rpartition(".")
            if not self._is_own(old):
                names.setdefault(module, []).append(f"{name} as {alias_name}" if alias_name else name)
        indent = " " * (self._start(node) - self._text.rfind(b"\n", 0, self._start(node)) - 1)
        statements = [f"from {module} import {', '.join(names[module])}" for module in names]
        self._edit(node, f"\n{indent}".join(statements) or "pass")

    def _rename_uses(self, assignment: ImportAssignment) -> None:
        """Every use of what is imported, with the attributes that are asked of it: `words.Words.of`."""
        old, is_from = _imported(assignment), isinstance(assignment.node, cst.ImportFrom)
        new = self._renames.new(old)
        for access in assignment.references:
            if isinstance(access.node, cst.BaseString):
                continue
            node: cst.CSTNode = access.node
            written = _code(access.node)
            attributes = ""
            while isinstance(parent := self._parents[node], cst.Attribute) and parent.value is node:
                node, attributes = parent, f"{attributes}.{parent.attr.value}"
            name = old + attributes if is_from or _alias(assignment).asname else written + attributes
            after = self._renames.new(name)
            if self._is_own(old):
                text = after.removeprefix(f"{self.home}.")
            elif _alias(assignment).asname is not None:
                text = written + after.removeprefix(new)
            else:
                text = new.rpartition(".")[2] + after.removeprefix(new) if is_from else after
            if (self._is_own(old) and after == self.home) or (is_from and not f"{after}.".startswith(f"{new}.")):
                self.refusals.append(f"{self._place(access.node)}: {name} has no name here that could be changed")
            elif text != written + attributes:
                name, _, rest = text.partition(".")
                self._check_free(access.scope, assignment, name, after.removesuffix(f".{rest}"), access.node)
                self._edit(node, text, start=self._start(access.node))

    def _is_own(self, old: str) -> bool:
        """Whether something that is imported stands in this file afterwards: two modules become one."""
        new = self._renames.new(old)
        was = old == self.module or old.rpartition(".")[0] == self.module
        return not was and self.home in (new, new.rpartition(".")[0])

    # --- what is defined --------------------------------------------------------------------------------------------

    def _rename_definition(self, assignment: Assignment) -> None:
        scope, node = assignment.scope, assignment.node
        if isinstance(scope, GlobalScope):
            new = self._renames.names.get(f"{self.module}.{assignment.name}", "").rpartition(".")[2]
        else:
            new = self._renames.variables.get((self.module, _path(scope), assignment.name), "")
        if not new:
            return
        target = node if isinstance(node, cst.Name) else getattr(node, "name", None)
        if isinstance(node, cst.Param) or not isinstance(target, cst.Name):
            self.refusals.append(f"{self._place(node)}: {assignment.name} is no variable: callers may name it")
            return
        self._check_free(scope, assignment, new, "", node)
        self._edit(target, new)
        for access in assignment.references:
            if isinstance(access.node, cst.Name):
                self._check_free(access.scope, assignment, new, "", access.node)
                self._edit(access.node, new)

    def _rename_offers(self) -> None:
        """Names in ``__all__``, and in the tables of packages that import on demand."""
        text = self._text.decode()
        if listed := re.search(r"^__all__ = [\[(](.*?)[\])]", text, re.MULTILINE | re.DOTALL):
            for string in re.finditer(r'"(\w+)"', listed[1]):
                new = self._renames.names.get(f"{self.module}.{string[1]}", "")
                if new:
                    self._edit_text(text, listed.start(1) + string.start(1), string[1], new.rpartition(".")[2])
        if table := re.search(r"on_demand\(\s*__name__,\s*(\{.*?\})", text, re.DOTALL):
            for row in re.finditer(r'"([\w.]*)": "([\w ]+)"', table[1]):
                homes = [f"{self.module}.{row[1]}".strip(".") + f".{name}" for name in row[2].split()]
                after = [self._renames.new(home).rpartition(".") for home in homes]
                modules = {module for module, _, _ in after}
                if all(f"{module}.".startswith(f"{self.home}.") for module in modules) and len(modules) == 1:
                    module = modules.pop().removeprefix(self.home).removeprefix(".")
                    new = f'"{module}": "{" ".join(name for _, _, name in after)}"'
                    self._edit_text(text, table.start(1) + row.start(), row[0], new)

    # --- places -----------------------------------------------------------------------------------------------------

    def _check_free(self, scope: Scope, assignment: BaseAssignment, name: str, meaning: str, node: cst.CSTNode) -> None:
        """Refuse a name that in a scope between its use and its binding means something else than ``meaning``."""
        while name != assignment.name:
            for other in scope.assignments[name] if name in scope.assignments else ():  # noqa: SIM401  # no mapping
                if not isinstance(other, ImportAssignment) or self._renames.new(_imported(other)) != meaning:
                    self.refusals.append(f"{self._place(node)}: {name} is taken there")
                    return
            if scope is assignment.scope or scope is scope.parent:
                return
            scope = scope.parent

    def _edit(self, node: cst.CSTNode, text: str, start: int | None = None) -> None:
        span = self._spans[node]
        self._edits[self._start(node) if start is None else start, span.start + span.length] = text

    def _edit_text(self, text: str, at: int, old: str, new: str) -> None:
        start = len(text[:at].encode())
        self._edits[start, start + len(old.encode())] = new

    def _start(self, node: cst.CSTNode) -> int:
        return int(self._spans[node].start)

    def _place(self, node: cst.CSTNode) -> str:
        line = self._text[: self._start(node)].count(b"\n") + 1
        return f"{self.path}:{line}"


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _alias(assignment: ImportAssignment) -> cst.ImportAlias:
    names = assignment.node.names if isinstance(assignment.node, cst.Import | cst.ImportFrom) else ()
    for alias in () if isinstance(names, cst.ImportStar) else names:
        name = alias.evaluated_alias or alias.evaluated_name
        if name == assignment.name or name.startswith(f"{assignment.name}."):
            return alias
    raise AssertionError(f"{assignment.name} is imported by nothing")


def _imported(assignment: ImportAssignment) -> str:
    """The dotted name of what an import is about."""
    node, name = assignment.node, _alias(assignment).evaluated_name
    return f"{_code(node.module)}.{name}" if isinstance(node, cst.ImportFrom) and node.module is not None else name


def _path(scope: Scope) -> str:
    """
    Of the scope of a method, `Class.method`.
    """
    names = []
    while not isinstance(scope, GlobalScope):
        names.append(getattr(scope, "name", None) or "")
        scope = scope.parent
    return ".".join(reversed(names))


def _in_strings(text: str, renames: Renames) -> str:
    """Python whose strings and comments have the new names."""
    lines = text.splitlines(keepends=True)
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if tokenize.tok_name[token.type] in STRINGS
    ]
    for token in reversed(tokens):
        (row, column), (last, end) = token.start, token.end
        head, tail = lines[row - 1][:column], lines[last - 1][end:]
        lines[row - 1 : last] = [head + renames.in_text(token.string) + tail]
    return "".join(lines)


def merged(target: str, source: str, *, source_first: bool) -> str:
    """Two modules in one: imports on top, then the bodies. What imported the other needs it defined before."""
    (title, imports, body), (words, more_imports, more_body) = _parts(target), _parts(source)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in words.strip("\"' \n").splitlines())
    bodies = [comment + more_body, body] if source_first else [body, comment + more_body]
    future = "from __future__ import annotations\n"
    head = imports if future in imports or future not in more_imports else future + imports
    return f"{title}{head}{more_imports.replace(future, '')}\n" + "\n\n".join(
        part.strip("\n") + "\n" for part in bodies
    )


def _parts(text: str) -> tuple[str, str, str]:
    """The docstring, the imports and the rest of a module."""
    module = cst.parse_module(text)
    statements = list(module.body)
    title = _code(statements.pop(0)) if statements and module.get_docstring() is not None else ""
    count = 0
    for statement in statements:
        if not (
            (
                isinstance(statement, cst.SimpleStatementLine)
                and isinstance(statement.body[0], cst.Import | cst.ImportFrom)
            )
            or (isinstance(statement, cst.If) and _code(statement.test) == "TYPE_CHECKING")
        ):
            break
        count += 1
    body = "".join(_code(statement) for statement in statements[count:]) + "".join(map(_code, module.footer))
    return title, "".join(_code(statement) for statement in statements[:count]), body


# --- the repository ---------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Rename in the repository of the working directory."""
    try:
        for line in rename(Path.cwd(), Renames.parsed(arguments)):
            print(line)
    except Refused as refusals:
        print(f"nothing is renamed:\n{refusals}", file=sys.stderr)
        return 1
    return 0


def rename(root: Path, renames: Renames) -> Iterator[str]:
    """Do it, and say what was changed and what is left to a reader."""
    paths = _git(root, "ls-files").splitlines()
    texts = {
        path: (root / path).read_text(encoding="utf-8")
        for path in paths
        if Path(path).suffix in {*DOCUMENTS, ".py"} and not _is_binary(root / path)
    }
    after, moves = (
        planned(texts, renames),
        {path: moved(path, renames) for path in paths if moved(path, renames) != path},
    )
    for old, new in moves.items():
        yield f"{old} -> {new}"
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        _git(root, *(("rm", "--quiet", "--force", old) if new in texts else ("mv", old, new)))
        if {path.name for path in (root / old).parent.glob("*")} <= {"__pycache__"}:
            shutil.rmtree((root / old).parent, ignore_errors=True)
    changed = [path for path, text in after.items() if path not in paths or texts[path] != text]
    for path in changed:
        (root / path).write_text(after[path], encoding="utf-8")
    python = [path for path in changed if path.endswith(".py")]
    if python:
        ruff = [sys.executable, "-m", "ruff"]
        check = [*ruff, "check", "--quiet", "--fix-only", "--select=I,F401,F811,PIE790", *python]
        subprocess.run(check, cwd=root, check=False)
        subprocess.run([*ruff, "format", "--quiet", *python], cwd=root, check=False)
    yield f"{len(changed)} files changed, {len(python)} of them Python"
    yield from _left(after, renames)


def planned(texts: dict[str, str], renames: Renames) -> dict[str, str]:
    """All texts afterwards, by their new paths. What cannot be done safely is refused, all of it at once."""
    refusals = _mistakes(texts, renames)
    after: dict[str, str] = {}
    for path, text in texts.items() if not refusals else ():
        if not path.endswith(".py"):
            after[path] = renames.in_text(text)
        elif _concerns(renames, path, text):
            file = PythonFile(path, text, renames)
            if again := {old: new for old, new in file.offered_again() if old not in renames.names}:
                renames.names |= again
                return planned(texts, renames)
            after[path] = file.renamed()
            refusals += file.refusals
        else:
            after[path] = text
    for old in [path for path in after if moved(path, renames) != path]:
        new, text = moved(old, renames), after.pop(old)
        if new in texts:
            refusals += [f"{new}: {name} is in both modules" for name in sorted(_bound(after[new]) & _bound(text))]
            text = merged(after[new], text, source_first=_imports(texts[new], module_of(old)))
        after[new] = text
    if refusals:
        raise Refused("\n".join(sorted(set(refusals))))
    return after


def _places(renames: Renames) -> set[str]:
    """The modules in which something is renamed, or that are renamed themselves."""
    return {
        *renames.modules,
        *(name.rpartition(".")[0] for name in renames.names),
        *(key[0] for key in renames.variables),
    }


def _concerns(renames: Renames, path: str, text: str) -> bool:
    """Whether a file may change: it stands where something is renamed, or has all the words of its name."""
    module, words = module_of(path), {PACKAGE, *module_of(path).split("."), *re.findall(r"\w+", text)}
    return (
        module in _places(renames)
        or renames.new(module) != module
        or any(words.issuperset(name.split(".")) for name in (*renames.modules, *renames.names))
    )


def moved(path: str, renames: Renames) -> str:
    """Where a file stands afterwards; the data of a package moves with it.

    >>> moved("src/a/b/x.txt", Renames(modules={"a.b": "a.c"}))
    'src/a/c/x.txt'
    """
    name = path if path.endswith(".py") else f"{Path(path).parent}/__init__.py"
    module = module_of(name)
    if renames.new(module) == module:
        return path
    root = SOURCE if path.startswith(SOURCE) else ""
    new = root + renames.new(module).replace(".", "/")
    if path.endswith(".py") and not path.endswith("/__init__.py"):
        return f"{new}.py"
    return f"{new}/{Path(path).name}"


def _mistakes(texts: dict[str, str], renames: Renames) -> list[str]:
    paths = {module_of(path): path for path in texts if path.endswith(".py")}
    asked = [
        *renames.modules,
        *(name.rpartition(".")[0] for name in renames.names),
        *(key[0] for key in renames.variables),
    ]
    missing = [f"{module}: there is no such module" for module in asked if module not in paths]
    packages = [
        f"{old}, {new}: of a package and a module no merger is made"
        for old, new in renames.modules.items()
        if new in paths and "/__init__.py" in paths[new] + paths.get(old, "")
    ]
    names = [
        f"{name}: its module defines no such thing"
        for name in renames.names
        if (path := paths.get(name.rpartition(".")[0]))
        and not re.search(rf"\b{name.rpartition('.')[2]}\b", texts[path])
    ]
    return missing + packages + names


def _bound(text: str) -> set[str]:
    """The names that a module defines itself."""
    scopes = MetadataWrapper(cst.parse_module(text)).resolve(ScopeProvider).values()
    return {
        assignment.name
        for scope in scopes
        if isinstance(scope, GlobalScope)
        for assignment in scope.assignments
        if isinstance(assignment, Assignment) and not isinstance(assignment, ImportAssignment)
    }


def _imports(text: str, module: str) -> bool:
    package, _, name = module.rpartition(".")
    return bool(
        re.search(rf"^(from {module} import|import {module}\b|from {package} import .*\b{name}\b)", text, re.MULTILINE)
    )


def _left(texts: dict[str, str], renames: Renames) -> Iterator[str]:
    """Lines in which a name stands by itself, in quotes: only a reader knows whether it is the one that was renamed."""
    words = {name.rpartition(".")[2] for name in (*renames.names, *renames.modules)}
    quoted = re.compile(rf"[`\"'](?:{'|'.join(map(re.escape, words))})[`\"'(]" if words else "(?!)")
    for path, text in sorted(texts.items()):
        for number, line in enumerate(text.splitlines(), 1):
            if quoted.search(line) and _concerns(renames, path, text) and not path.endswith(".json"):
                yield f"look at {path}:{number}: {line.strip()[:100]}"


def _is_binary(path: Path) -> bool:
    return b"\0" in path.read_bytes()


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
