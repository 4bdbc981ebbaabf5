"""The journal that stands between the engine and a store: complete, and without the engine's own rights for others."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.watched import watch
from wellkept.engine.journal import BOOKKEEPING_USES, REPEATED, EngineJournal, EngineRecords, check_complete
from wellkept.errors import Unauthorized
from wellkept.filters import Where
from wellkept.keyrings.ram import RamKeyring
from wellkept.ports import Journal, Records
from wellkept.stores.ram import RamStore
from wellkept.types import Layer, Owner

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
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                stack.append((f"{place}.{child.name}", child))
            else:
                stack.append((place, child))


@pytest.mark.req("L11", "H2")
def test_who_acts_as_the_engine_itself_is_listed_with_a_reason() -> None:
    """Whoever acts so is held to no grant: each use is a decision."""
    functions = {use for path in (SOURCE / "engine").glob("*.py") for use in uses(path)}
    assert functions == BOOKKEEPING_USES.keys()
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


@pytest.mark.req("H2")
def test_what_a_policy_withholds_is_not_shown_encrypted_either() -> None:
    core = Owner(Layer.TEAM, ("core",))
    with wellkept.open("ram:", embedder=None, keyring=RamKeyring(), encrypt="all") as memories:
        ada = memories.view(user="ada", team="core")
        secret = ada.add("secret", layer="team", author="ada", access_policy="private").id
        opened = ada.add("for everybody", layer="team").id
        shown = {}
        for name in ("ada", "bob"):
            journal = memories.view(user=name, team="core")._engine.journal
            start = journal.position({core}, datetime.min.replace(tzinfo=UTC))
            shown[name] = [
                {one.id for one in journal.get({core}, [secret, opened], opened=False)},
                {one.id for one in journal.scan({core}, opened=False)},
                {one.id for one in journal.versions({core}, opened=False)},
                {one.id for id in (secret, opened) for one in journal.history(core, id, opened=False)},
                {id for _, id in journal.changed({core}, after=start)},
            ]
        assert shown["ada"] == [{secret, opened}] * 5
        assert shown["bob"] == [{opened}] * 5


@pytest.mark.req("H2")
def test_what_becomes_private_while_ids_are_read_is_left_out() -> None:
    core, waiting = Owner(Layer.TEAM, ("core",)), list[Callable[[], object]]()

    def notice(call: str, _: dict[str, Any]) -> None:
        if call == "Journal.ids" and waiting:
            waiting.pop()()

    with wellkept.open(store=watch(RamStore(), notice), embedder=None) as memories:
        ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
        shown = ada.add("for everybody", layer="team").id
        assert bob.count() == 1  # from now on it is known that nothing is withheld
        waiting.append(lambda: ada.add("secret", layer="team", author="ada", access_policy="private"))
        assert bob._engine.journal.ids({core}, Where(now=memories._engine.clock())) == [(core, shown)]
        assert not waiting


@pytest.mark.req("L11")
def test_what_concerns_the_whole_database_is_refused_to_every_identity() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        journal = memories.view(user="ada")._engine.journal
        calls: dict[str, Callable[[], object]] = {
            "embed": lambda: journal.embed([]),
            "adopt": lambda: journal.adopt("hashing-16", 16),
            "set_settings": lambda: journal.set_settings({"durability": "relaxed"}),
            "rewrite": lambda: journal.rewrite([]),
            "feed": journal.feed,
            "owners": journal.owners,
            "unembedded": lambda: journal.unembedded("hashing-16", 10),
            "count_unembedded": lambda: journal.count_unembedded("hashing-16"),
            "embedded": lambda: journal.embedded([b"digest"]),
        }
        for call in calls.values():
            with pytest.raises(Unauthorized, match="whole database"):
                call()


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
