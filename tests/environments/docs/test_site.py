"""The site that `make docs` builds: whole, with links that lead somewhere, and without a request to another host."""

from __future__ import annotations

import json
import re
import zlib
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote

import pytest

from tools import requirements_table, settings_reference, site
from wellkept import errors
from wellkept.operations import VERBS
from wellkept.settings import declared

WHOLE = ("wellkept.Memories", "wellkept.View", "wellkept.AgentMemory")  # with all of their methods
ROOT = Path(__file__).resolve().parents[3]
LOADED_BY = {"src", "srcset", "poster", "data"}  # attributes whose address a browser loads without being asked
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
ELSEWHERE = re.compile(r"(?:https?:)?//[^/\s]")
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?P<address>(?:https?:)?//[^\"')\s]+)")
IN_SCRIPTS = re.compile(r"[\"'`](?P<address>(?:https?:)?//[^\"'`\s]+)")
# Addresses in the scripts of the theme, each with what a page must have for it to be loaded.
ASKED_FOR_BY = {
    "https://unpkg.com/mermaid@": 'class="mermaid"',
    "https://unpkg.com/glightbox@": "glightbox",
    "https://unpkg.com/pyodide@": "data-md-exec",
    "https://unpkg.com/ace-builds@": "data-md-exec",
    "https://cdn.jsdelivr.net/pyodide/": "data-md-exec",
    "https://api.github.com/": 'data-md-component="source"',
    "https://${e}/api/v4/projects/": 'data-md-component="source"',
    "https://unpkg.com/resize-observer-polyfill": "",  # for browsers without ResizeObserver: none since 2020
    "http://www.w3.org/": "",  # names of XML
}


class Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])
        self.loaded += [given[name] for name in LOADED_BY & set(given)]


class Site:
    """A site that was built, and what its files say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def texts(self) -> dict[str, str]:
        """The pages by their paths."""
        return {
            page.relative_to(self.folder).as_posix(): page.read_text("utf-8") for page in self.folder.rglob("*.html")
        }

    @cached_property
    def pages(self) -> dict[str, Page]:
        return {name: Page(text) for name, text in self.texts.items()}

    def leads_somewhere(self, page: str, target: str) -> bool:
        path, _, anchor = target.partition("#")
        place = (self.folder / page).parent / unquote(path) if path else self.folder / page
        if not place.exists():
            return False
        name = place.resolve().relative_to(self.folder).as_posix()
        return not anchor or name not in self.pages or unquote(anchor) in self.pages[name].anchors


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site; a warning of the tool ends the build."""
    return Site(site.build(tmp_path_factory.mktemp("docs") / "build").resolve())


def test_every_public_name_has_its_place(built: Site) -> None:
    inventory = (built.folder / "objects.inv").read_bytes().split(b"\n", 4)[4]
    places = {}
    for line in zlib.decompress(inventory).decode().splitlines():
        name, _, _, place, _ = line.split(" ", 4)
        places[name] = place.removesuffix("$") + (name if place.endswith("$") else "")
    saved = json.loads((ROOT / "tests" / "contract" / "saved" / "names.json").read_text(encoding="utf-8"))
    names = [name for name, value in saved.items() if value != "module"]
    names += [f"{name}.{method}" for name in WHOLE for method, value in saved[name].items() if value.startswith("(")]
    assert set(names) - places.keys() == set()
    assert {name: places[name] for name in names if not built.leads_somewhere("index.html", places[name])} == {}


def test_a_value_is_shown_with_its_fields_and_their_types(built: Site) -> None:
    text = re.sub(r"<[^>]+>", "", built.texts["docs/reference/values.html"])
    assert re.search(r"importance:\s+float\s+=\s+DEFAULT_IMPORTANCE,\s+tags:\s+tuple\[str,\s+\.\.\.\]", text)


def test_methods_of_the_async_classes_have_a_text_and_a_link(built: Site) -> None:
    text = built.texts["docs/reference/async.html"]
    assert 'id="wellkept.aio.View.search"' in text
    assert re.search(r'Awaited: as <a class="[\w -]*" [^>]*href="database-and-views.html#wellkept.View.search"', text)


def test_every_document_is_there_and_every_guide_is_in_the_menu(built: Site) -> None:
    documents = {name.removesuffix(".md") for name in site.documents()}
    pages = {name.removesuffix(".html") for name in built.pages}
    assert {name for name in documents if not name.endswith("README")} - pages == set()
    guides = {f"docs/guides/{guide.stem}.html" for guide in (ROOT / "docs" / "guides").glob("*.md")}
    assert guides - {normpath(link) for link in built.pages["index.html"].links} == set()


def test_every_verb_setting_requirement_and_error_is_there(built: Site) -> None:
    verbs, settings = built.pages["docs/reference/verbs.html"], built.texts["docs/reference/settings.html"]
    assert {name for name in VERBS if name.replace(".", "") not in verbs.anchors} == set()
    assert {name for name in declared(settings_reference.schema()) if f"<code>{name}</code>" not in settings} == set()
    requirements = built.texts["docs/reference/requirements.html"]
    assert {
        one.id for one in requirements_table.requirements(ROOT) if f"<td>{one.id}</td>" not in requirements
    } == set()
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.WellkeptError)
    }
    shown = built.pages["docs/reference/error-classes.html"].anchors
    assert {name for name in classes if {f"wellkept.errors.{name}", f"wellkept.{name}"}.isdisjoint(shown)} == set()


def test_the_schemas_of_the_answers_are_a_file_of_the_site(built: Site) -> None:
    schemas = json.loads((built.folder / site.SCHEMA).read_text(encoding="utf-8"))
    assert {"oneOf", "inputs", "$defs"} <= set(schemas)


def test_every_link_leads_somewhere(built: Site) -> None:
    broken = {
        (name, target)
        for name, page in built.pages.items()
        for target in page.links
        if not re.match(r"[a-z]+:", target) and not built.leads_somewhere(name, target)
    }
    assert broken == set()


def test_references_and_examples_of_docstrings_are_not_left_as_text(built: Site) -> None:
    unread = re.compile(r"\]\[\w+[.\w]*\]|:(?:class|func|meth):|<autoref[^>]*>|<blockquote>\s*.*")
    left = {name: found for name, text in built.texts.items() if (found := unread.findall(text))}
    assert left == {}


def test_the_search_index_has_guides_and_public_names(built: Site) -> None:
    items = json.loads((built.folder / "search.json").read_text(encoding="utf-8"))["items"]
    titles = {item["title"]: item["location"] for item in items}
    assert titles["How a search works"].startswith("docs/guides/recall.html")
    assert any("wellkept.Memories" in title for title in titles)
    # Opened as files, pages read the index from a script, and the search runs without a worker.
    assert (built.folder / "search.js").is_file()
    assert {name for name, page in built.pages.items() if not any(site.WORKER in one for one in page.loaded)} == set()


def test_no_page_asks_another_host_for_anything(built: Site) -> None:
    asked = {
        (name, address) for name, page in built.pages.items() for address in page.loaded if ELSEWHERE.match(address)
    }
    for file in built.folder.rglob("*.css"):
        asked |= {(file.name, found["address"]) for found in IN_STYLES.finditer(file.read_text(encoding="utf-8"))}
    for name, text in built.texts.items():
        inline = "".join(re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL))
        asked |= {(name, found["address"]) for found in IN_STYLES.finditer(inline)}
    for file in built.folder.rglob("*.js"):
        if file.name == "search.js":
            continue  # the index: texts of the pages
        for found in IN_SCRIPTS.finditer(file.read_text(encoding="utf-8")):
            triggers = [trigger for start, trigger in ASKED_FOR_BY.items() if found["address"].startswith(start)]
            if not triggers or any(triggers[0] and triggers[0] in text for text in built.texts.values()):
                asked.add((file.name, found["address"]))
    assert asked == set()
