"""The journal that stands between the engine and a store: complete, and without the engine's own rights for others."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import wellkept
from wellkept.engine.journal import BOOKKEEPING_USES, REPEATED, EngineJournal, EngineRecords, check_complete
from wellkept.ports import Journal, Records

SOURCE = Path(wellkept.__file__).parent
NAME = "BOOKKEEPING"


def uses(path: Path) -> Iterator[str]:
    """The functions of a module that name the engine's own caller, as ``module.Class.function``."""
    stack: list[tuple[str, ast.AST]] = [(path.stem, ast.parse(path.read_text()))]
    while stack:
        place, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and child.id == NAME and isinstance(child.ctx, ast.Load):
                yield place
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            stack.append((f"{place}.{child.name}" if named else place, child))  # type: ignore[attr-defined]


@pytest.mark.req("L11", "H2")
def test_who_acts_as_the_engine_itself_is_listed_with_a_reason() -> None:
    """Whoever acts so is held to no grant: each use is a decision."""
    found = {use for path in (SOURCE / "engine").glob("*.py") for use in uses(path)}
    assert found == BOOKKEEPING_USES.keys()
    assert all(len(reason.split()) > 4 for reason in BOOKKEEPING_USES.values())


@pytest.mark.req("L11", "H2")
def test_nobody_but_the_engine_may_act_as_the_engine_itself() -> None:
    naming = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if path.parent != SOURCE / "engine" and any(word in path.read_text() for word in (NAME, "Bookkeeping"))
    }
    assert naming == set()


@pytest.mark.parametrize(("port", "implementation"), [(Journal, EngineJournal), (Records, EngineRecords)])
@pytest.mark.req("L11", "H2")
def test_a_method_that_would_be_inherited_unchecked_is_an_error(port: type, implementation: type) -> None:
    check_complete(port, implementation)
    wider = type("Wider", (port,), {"purge": lambda self: None})
    with pytest.raises(TypeError, match=f"{implementation.__name__} does not define purge"):
        check_complete(wider, implementation)


@pytest.mark.parametrize("port", ["Journal", "Records"])
@pytest.mark.req("L11", "H2")
def test_the_engine_is_not_imported_with_a_port_that_has_more_methods(port: str) -> None:
    script = f"""
from wellkept import ports
ports.{port}.purge = lambda self: None
try:
    import wellkept.engine.journal
except TypeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"Engine{port} does not define purge\n"


@pytest.mark.req("H10")
def test_what_would_do_something_twice_is_not_repeated() -> None:
    """A method that is not listed is not repeated: so a new one is not, unless somebody says so."""
    methods = {
        f"{port.__name__}.{name}": getattr(port, name) in REPEATED
        for port in (Journal, Records)
        for name in vars(port)
        if not name.startswith("_")
    }
    once = {name for name, is_repeated in methods.items() if not is_repeated}
    assert once == {
        "Journal.count_accesses",
        "Journal.scan",
        "Records.put",
        "Records.restore",
        "Records.drop",
        "Records.lease",
        "Records.release",
    }
