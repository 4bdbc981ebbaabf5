"""The table of requirements: each with its state, the tests that carry its id, and its floors.

Tests and benchmarks/floors.py are read, not run or imported, so the table does not depend on what is installed.
Markers count on test functions, on classes, in `pytestmark`, and inside `pytest.param`.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = Path("docs/requirements.toml")
FLOORS = Path("benchmarks/floors.py")
# The shipped kit proves requirements for every store that runs it.
FOLDERS = (Path("tests"), Path("src/wellkept/testing"))
DONE, PARTLY, OPEN = "done", "partly", "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A test, class or module that claims to prove a requirement."""

    requirement: str
    path: str
    name: str

    @property
    def node_id(self) -> str:
        """How pytest calls it; for a `pytestmark` of a module, the file alone."""
        return f"{self.path}::{self.name}" if self.name else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line of the catalogue: `partly` says what is missing, `open` that there is nothing yet.

    `floors` are the lines of `make bench-floors` that belong to it.
    """

    id: str
    demand: str
    partly: str | None = None
    open: bool = False
    floors: Sequence[str] = ()

    @property
    def area(self) -> str:
        """The letter of its area."""
        return self.id.rstrip("0123456789")


class BadMarker(ValueError):
    """A `req` marker that cannot be read or that proves nothing."""


class UnknownFloor(ValueError):
    """A requirement names a floor that is not measured."""


def table(root: Path) -> str:
    """The whole page for the project below `root`."""
    proofs = find_proofs(root)
    claimed: defaultdict[str, list[Proof]] = defaultdict(list)
    for proof in proofs:
        claimed[proof.requirement].append(proof)
    wanted = requirements(root)
    known = floors(root)
    if unknown := [floor for one in wanted for floor in one.floors if floor not in known]:
        raise UnknownFloor(f"{FLOORS} has no floor {', '.join(unknown)}")
    states = {one.id: state(one, claimed[one.id]) for one in wanted}
    counts = Counter(states.values())
    lines = [
        "# Requirements",
        "",
        f"Of {len(wanted)} requirements {counts[DONE]} are done, {counts[PARTLY]} partly, {counts[OPEN]} open."
        " One is done when tests prove it, or floors that `make bench-floors` measures, and nothing is known to be"
        " missing. A class or a module that is marked as a whole counts as one test.",
    ]
    for letter, title in areas(root).items():
        lines += ["", f"## {letter}: {title}", "", "| id | demand | state | proof |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {one.id} | {one.demand} | {_state(one, states[one.id])} | {_proof(one, claimed[one.id])} |"
            for one in wanted
            if one.area == letter
        ]
    return "\n".join([*lines, *_files(proofs)]) + "\n"


def state(requirement: Requirement, proofs: Sequence[Proof]) -> str:
    """`done`, `partly` or `open`. Without a test or a floor nothing is done, whatever the catalogue says."""
    if requirement.open or not (proofs or requirement.floors):
        return OPEN
    return PARTLY if requirement.partly else DONE


def areas(root: Path) -> dict[str, str]:
    """The letters of the areas with their titles."""
    found: dict[str, str] = _catalogue(root)["areas"]
    return found


def requirements(root: Path) -> list[Requirement]:
    """The catalogue, in its order."""
    return [
        Requirement(id=id, demand=entry) if isinstance(entry, str) else Requirement(id=id, **entry)
        for id, entry in _catalogue(root)["demands"].items()
    ]


def floors(root: Path) -> dict[str, str | None]:
    """The ids of the floors, and what has to be written before one can be measured; None if nothing has."""
    found: dict[str, str | None] = {}
    for node in ast.walk(ast.parse((root / FLOORS).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Floor":
            missing = [ast.literal_eval(one.value) for one in node.keywords if one.arg == "missing"]
            found[ast.literal_eval(node.args[0])] = missing[0] if missing else None
    return found


def _catalogue(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / CATALOGUE).read_text(encoding="utf-8"))


def find_proofs(root: Path) -> list[Proof]:
    """All claims in the tests and in the kit, in a stable order."""
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py"))
    return [
        proof
        for file in files
        for proof in proofs_in(file.read_text(encoding="utf-8"), file.relative_to(root).as_posix())
    ]


def proofs_in(source: str, path: str) -> list[Proof]:
    """The claims of one file."""
    return list(dict.fromkeys(_walk(ast.parse(source, path).body, path, ())))


def _walk(body: Sequence[ast.stmt], path: str, outer: tuple[str, ...]) -> Iterator[Proof]:
    for statement in body:
        match statement:
            case ast.ClassDef():
                inner = (*outer, statement.name)
                yield from _claims(statement.decorator_list, path, inner)
                yield from _walk(statement.body, path, inner)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                claims = list(_claims(statement.decorator_list, path, (*outer, statement.name)))
                if claims and not statement.name.startswith("test"):
                    raise BadMarker(f"{path}:{statement.lineno}: {statement.name} is not a test")
                yield from claims
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield from _claims([value], path, outer)
            case _:
                pass


def _claims(expressions: Sequence[ast.expr], path: str, names: tuple[str, ...]) -> Iterator[Proof]:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
                for argument in node.args:
                    yield Proof(requirement=_literal(argument, path), path=path, name="::".join(names))


def _literal(argument: ast.expr, path: str) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    raise BadMarker(f"{path}:{argument.lineno}: a req marker takes literal ids only")


def _state(requirement: Requirement, state: str) -> str:
    return f"{state}; missing: {requirement.partly}" if requirement.partly and state == PARTLY else state


def _proof(requirement: Requirement, proofs: Sequence[Proof]) -> str:
    files = len({proof.path for proof in proofs})
    tests = [f"{len(proofs)} in {files} file{'s' if files > 1 else ''}"] if proofs else []
    measured = [f"floors {', '.join(requirement.floors)}"] if requirement.floors else []
    return "; ".join(tests + measured) or "none"


def _files(proofs: Sequence[Proof]) -> Iterator[str]:
    """Each file with tests once, and the requirements that it proves."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for proof in proofs:
        found[proof.path].add(proof.requirement)
    yield from ("", "## Tests", "", "| file | requirements |", "| --- | --- |")
    for path, ids in sorted(found.items()):
        yield f"| `{path}` | {', '.join(sorted(ids, key=lambda id: (id[0], int(id[1:]))))} |"
