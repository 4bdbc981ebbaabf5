"""What the class of a store declares: a store of another package has settings, files and URLs as ours have."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.terminal import Terminal
from wellkept import plugins
from wellkept.errors import ConfigurationError
from wellkept.settings import FILE, check, load, schema_with
from wellkept.stores.postgres.options import PostgresSettings
from wellkept.testing.cases import Cases

PACKAGE = Path(wellkept.__file__).parent
SHELF = '''
from dataclasses import dataclass
from pathlib import Path

from wellkept.settings import Flag, Number, Section, Text, UrlForm, Words, read_options, setting
from wellkept.stores.jsonl import JsonlStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfSettings(Section, at="database.bookshelf"):
    """How books are kept."""

    boards: int | None = setting(3, Number(1, 100, whole=True, none="endless"), "How many boards.")
    painted: bool = setting(False, Flag(), "Whether it is painted.")
    wood: str | None = setting(None, Text(20), "What it is made of.")
    kinds: tuple[str, ...] = setting((), Words(("novels", "poems")), "What stands there.")


class ShelfStore(JsonlStore):
    name = "shelf"
    section = ShelfSettings
    url_form = UrlForm(sample="shelf:books", names="folder")
    opened = []

    @classmethod
    def from_url(cls, url, *, durability=None):
        place, chosen = read_options(url, ShelfSettings)
        cls.opened.append((chosen, durability))
        return cls(Path(place.partition(":")[2]), durability=durability)

    @classmethod
    def exists(cls, url):
        return super().exists("jsonl:" + url.partition(":")[2].partition("?")[0])

    @classmethod
    def git_files(cls, url):
        return super().git_files("jsonl:" + url.partition(":")[2].partition("?")[0])
'''
ENTRY_POINTS = """
[wellkept.stores]
shelf = wellkept_shelf_plugin:ShelfStore
bookshelf = wellkept_shelf_plugin:ShelfStore
missing = wellkept_shelf_plugin_without_its_driver:Store
nothing = wellkept_shelf_plugin:setting
"""


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings and the durability of each shelf that is opened, of a package that is installed."""
    site = tmp_path / "site"
    metadata = site / "wellkept_shelf-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "wellkept_shelf_plugin.py").write_text(SHELF)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wellkept-shelf\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "wellkept_shelf_plugin", raising=False)
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    found: list[Any] = importlib.import_module("wellkept_shelf_plugin").ShelfStore.opened
    return found


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.req("H5")
def test_settings_of_another_packages_store_reach_it_from_every_source(
    opened: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / FILE
    file.write_text(
        '[database]\nurl = "shelf:books"\ndurability = "relaxed"\n'
        '[database.bookshelf]\nboards = "endless"\npainted = true\nkinds = ["novels", "poems"]\nwood = "a & b"\n'
    )
    with wellkept.open(config=file, embedder=None) as memories:
        memories.view(user="ada").add("Likes tea")
        assert repr(memories) == f"<Memories shelf:{tmp_path / 'books'}>"
    chosen, durability = opened.pop()
    assert (chosen.boards, chosen.painted, chosen.wood, chosen.kinds) == (None, True, "a & b", ("novels", "poems"))
    assert durability == "relaxed", "it was not there, and a new one takes the durability of the settings"

    monkeypatch.setenv("WELLKEPT_DATABASE_BOOKSHELF_BOARDS", "7")
    wellkept.open(config=file, embedder=None).close()
    chosen, durability = opened.pop()
    assert (chosen.boards, chosen.painted, durability) == (7, True, None)
    given = {"database": {"bookshelf": {"boards": 8}}}
    wellkept.open(config=file, settings=given, embedder=None).close()
    assert opened.pop()[0].boards == 8
    wellkept.open("shelf:books?boards=9", config=file, settings=given, embedder=None).close()
    assert (opened[-1][0].boards, opened.pop()[0].painted) == (9, True), "the URL comes first, then the settings"

    settings = load(config=file)
    assert settings.get("database.bookshelf.boards") == 7
    assert settings.origin("database.bookshelf.boards") == "WELLKEPT_DATABASE_BOOKSHELF_BOARDS"
    assert settings.origin("database.bookshelf.wood") == str(file)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(load(config=file))
    monkeypatch.delenv("WELLKEPT_DATABASE_BOOKSHELF_BOARDS")
    wellkept.open(settings=settings, embedder=None).close()
    assert opened.pop()[0].boards == 7, "what was loaded can be passed on"
    wellkept.open("ram:", config=file, embedder=None).close()
    assert opened == [], "settings of a store that is not opened hurt nobody"


MISTAKES = [
    (
        "bookshelf.bords = 3",
        "bookshelf.bords",
        2,
        "is not known",
        "did you mean database.bookshelf.b",
    ),
    ("bookshelf.xyz = 3", "bookshelf.xyz", 2, "is not known", "known are boards, painted, wood, kinds"),
    (
        "bookshelf.boards = 0",
        "bookshelf.boards",
        2,
        "must be a whole number from 1 to 100",
        "correct the",
    ),
    (
        "bookshelf = 3",
        "bookshelf",
        2,
        "must be a section, not a number",
        "database.bookshelf.boards",
    ),
    (
        "[database.bookshel]\nboards = 3",
        "bookshel",
        2,
        "is not known",
        "did you mean database.books",
    ),
    ("[database.shelf]\nboards = 3", "shelf", 2, "is not known", "did you mean database.bookshelf?"),
    ("[database.xyz]\na = 3", "xyz", 2, "is not known", "known are url, durability, bookshelf, postgres"),
    ("[database.nothing]\na = 3", "nothing", 2, "is not known", "known are url, durability, bookshelf, postgres"),
    ("[database.sqlite]\na = 3", "sqlite", 2, "is not known", "known are url, durability, bookshelf, postgres"),
    ("[database.postgresql]\na = 3", "postgresql", 2, "is not known", "did you mean database.postgres?"),
]


@pytest.mark.req("H10")
@pytest.mark.usefixtures("opened")
def test_a_mistake_in_the_settings_of_a_store_is_named() -> None:
    with Cases() as cases:
        for text, key, line, what, hint in MISTAKES:
            with cases.case(text):
                _mistake_is_named(text, key, line, what, hint)


def _mistake_is_named(text: str, key: str, line: int, what: str, hint: str) -> None:
    file = Path("mistaken.toml")
    file.write_text(f"[database]\n{text}\n")
    [problem] = check(file.read_text())
    assert (problem.key, problem.line) == (f"database.{key}", line)
    assert what in problem.message
    assert hint in problem.hint
    with pytest.raises(ConfigurationError, match=what) as caught:
        wellkept.open("new.db", config=file)
    assert caught.value.details == {"file": str(file), "key": f"database.{key}", "line": line}
    assert not Path("new.db").exists()


@pytest.mark.usefixtures("opened")
def test_wrong_settings_of_a_store_in_a_program_the_environment_and_the_url_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in ({"bookshelf": {"boards": "many"}}, {"bookshelf": {"bords": 1}}, {5: {"a": 1}}, {"x": 1}):
        with pytest.raises(ConfigurationError, match=r"database\.") as caught:
            wellkept.open("shelf:books", settings={"database": wrong})
        assert caught.value.details["field"] == "settings"
    with pytest.raises(ConfigurationError, match="boards must be") as caught:
        wellkept.open("shelf:books?boards=many")
    assert caught.value.details["field"] == "boards"
    monkeypatch.setenv("WELLKEPT_DATABASE_BOOKSHELF_BOARDS", "many")
    with pytest.raises(ConfigurationError, match="must be a whole number") as caught:
        wellkept.open("shelf:books")
    assert caught.value.details["variable"] == "WELLKEPT_DATABASE_BOOKSHELF_BOARDS"
    assert not Path("books").exists()


def test_the_command_line_knows_the_store_of_another_package(
    opened: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(tmp_path, monkeypatch, capsys)
    monkeypatch.delenv("WELLKEPT_DB")
    file = tmp_path / FILE
    file.write_text('[database]\nurl = "shelf:books"\n')
    assert terminal("list").code != 0
    assert "there is no database at shelf:" in terminal("list").err
    assert terminal("init", "--git").code == 0, "what it inherits, git can merge; no trust is needed for a folder here"
    terminal.configure('[database]\nurl = "shelf:books"\n[database.bookshelf]\nboards = 7\n')
    assert terminal("add", "Likes tea").code == 0
    assert opened[-1][0].boards == 7
    where = terminal.json("where")
    assert where["opening"] == {"database.bookshelf.boards": "7"}
    assert Path(where["database"].removeprefix("shelf:")) == tmp_path / "books"
    file.write_text("[database.bookshelf]\nboard = 7\n")
    told = terminal("config", "check", FILE)
    assert told.code == 1
    assert "database.bookshelf.boards" in told.out


@pytest.mark.req("J12")
@pytest.mark.usefixtures("opened")
def test_a_file_that_was_found_names_a_folder_of_the_store_and_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for text, is_harmless in (
        ('[database]\nurl = "shelf:books"\n', True),
        ('[database]\nurl = "shelf:../books"\n', False),
        ('[database]\nurl = "shelf:books?boards=7"\n', False),
        ('[database]\nurl = "nothing:books"\n', False),
        ("[database.bookshelf]\nboards = 7\n", False),
    ):
        Path(FILE).write_text(text)
        if is_harmless:
            assert load(folder=tmp_path, environment={}).database.url == f"shelf:{tmp_path / 'books'}"
        else:
            with pytest.raises(ConfigurationError, match="until you trust it"):
                load(folder=tmp_path, environment={})


def test_our_server_declares_its_settings_without_its_driver() -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['psycopg', 'pgvector']))\n"
        "from wellkept import plugins\n"
        "from wellkept.settings import load\n"
        "given = {'database': {'url': 'ram:', 'postgres': {'pool_size': 4}}}\n"
        "print(load(given, environment={}, stores=plugins.STORES).get('database.postgres.pool_size'))\n"
        "print(plugins.same_place('postgres://host/db', 'postgresql://ada@host:5432/db?schema=wellkept'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "True"]


def test_sections_belong_where_they_say() -> None:
    for name in plugins.OWN:
        section = plugins.STORES.section(name)
        assert (section is PostgresSettings) is (name == "postgres"), "of two schemes, one is the name of the section"
    assert schema_with({"postgres": PostgresSettings})().get("database.postgres.pool_size") is None


# --- files and URLs -------------------------------------------------------------------------------


@pytest.mark.req("H5")
@pytest.mark.usefixtures("opened")
def test_urls_of_another_packages_store_are_compared(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "link").symlink_to("books")
    for one, other, same in (
        ("shelf:books", "bookshelf:./books", True),
        ("shelf:books", f"shelf:{tmp_path / 'link'}?boards=7", True),
        ("shelf:new", "shelf:./new?boards=7", True),
        ("shelf:books", "shelf:others", False),
        ("shelf:books", "jsonl:books", False),
        ("shelf:books", "books", False),
    ):
        assert plugins.same_place(one, other) is same, (one, other)
    with pytest.raises(ConfigurationError, match="the same"):
        wellkept.convert("shelf:books", "shelf:link")
    with pytest.raises(ConfigurationError, match="the path is empty") as caught:
        wellkept.open("shelf:")
    assert caught.value.hint == "name a folder"


@pytest.mark.req("H5")
@pytest.mark.usefixtures("opened")
def test_what_belongs_to_a_database_is_put_beside_its_folder(tmp_path: Path) -> None:
    with wellkept.open("shelf:books", embedder=None) as memories:
        made = memories.encryption.init(master_key_file=tmp_path / "master.key")
        assert Path(made.keyring) == tmp_path / "books.keys"
        memories.view(user="ada").add("My IBAN is DE89370400440532013000")
        memories.privacy.erase(user="bob")
    assert (tmp_path / "books.erasures.jsonl").is_file()
    settings = {"encryption": {"master_key_file": str(tmp_path / "master.key")}}
    with wellkept.open("shelf:books", embedder=None, settings=settings) as memories:
        assert memories.encryption.check().encrypted == 1, "the keyring beside it is found"


def test_a_folder_that_is_named_like_a_file_is_named_as_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(tmp_path, monkeypatch, capsys)
    wellkept.open("jsonl:notes", embedder=None).close()
    assert "name it jsonl:notes" in terminal("list", "--db", "notes").err
    assert "wellkept --db jsonl:memory init --git" in terminal("init", "--git").err


# --- the core ---------------------------------------------------------------------------------------

NAMES = re.compile(rf"({'|'.join(plugins.OWN)})(:.*)?", re.DOTALL)
OTHERS = {
    ("cli", "jsonl"): "an export",
    ("extras.py", "postgres"): "the name of an extra",
    ("indexes", "ram"): "an index",
    ("operations", "jsonl"): "the form of an export",
    ("plugins.py", "ram"): "the scheme of a keyring",
    ("sessions", "jsonl"): "the form of an export",
    ("types", "jsonl"): "the form of an export",
}
"""What is named like a store and is none."""


def _named_stores(source: str) -> list[str]:
    """What of a module names a store: imports, texts that begin with a scheme, attributes named after one."""
    found = []
    for one in _without_the_table(ast.parse(source)):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and NAMES.fullmatch(one.value):
            found.append(one.value)
        elif isinstance(one, ast.ImportFrom | ast.alias):
            name = one.module or "" if isinstance(one, ast.ImportFrom) else one.name
            found += [name] if name.startswith("wellkept.stores") else []
        elif isinstance(one, ast.Attribute) and NAMES.fullmatch(one.attr):
            found.append(one.attr)
    return found


def _without_the_table(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those of the table of our own stores, and of what chooses among them."""
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if target is None or ast.unparse(target) not in {"OWN", "(PLAIN, IN_PROCESS)"}:
            yield from ast.walk(statement)


def test_the_core_names_no_store() -> None:
    """Our own stand in the table of the plug-ins, and in what tells people of them: docstrings and examples."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).parts
        if place[0] not in {"stores", "testing"}:
            known = {name for room, name in OTHERS if room == place[0]}
            found += [(file.name, one) for one in _named_stores(file.read_text()) if one not in known]
    assert found == []
    for sample in ('url == "sqlite"', 'f"jsonl:{path}"', "section.postgres.given()", "import wellkept.stores.ram as a"):
        assert _named_stores(sample), sample
    assert _named_stores("from wellkept.stores.jsonl import git_files")
    assert not _named_stores('"""Opens ``ram:``."""')
