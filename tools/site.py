"""Builds the site of the documentation: `make docs`. Runs in the environment `.venvs/docs`.

The documents are copied as they are, in their places. Beside them come the pages that are made: the reference from the
docstrings, the verbs, the settings, the requirements, and the JSON schemas of inputs and answers. A chapter of
`docs/reference.md` becomes a page of the reference.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

import wellkept
from tools import requirements_table, settings_reference, verbs_reference

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "docs"
CONTENTS, REFERENCE = "docs/README.md", "docs/reference.md"
HANDED_OUT = ("wellkept.aio", "wellkept.memories")
SCHEMA = "docs/reference/answers.schema.json"
# The tool would load this from another host: its name must have "iframe-worker" in it.
WORKER = "assets/iframe-worker.js"
# What each chapter of docs/reference.md shows: modules, or single names in them.
SHOWN = {
    "database-and-views": "wellkept:Memories wellkept:View wellkept.memories:Facts wellkept.memories:Upkeep"
    " wellkept.memories:ApiKeys wellkept.memories:Privacy wellkept.memories:AuditTrail wellkept.memories:Encryption"
    " wellkept:convert wellkept:open wellkept.transfer.migration:migrate",
    "agent-handle": "wellkept:AgentMemory wellkept.memories:AgentSnapshot wellkept.memories:AgentStats",
    "working-memory": "wellkept.working wellkept.working.scope_chain:Level",
    "context-window": "wellkept.window wellkept.text.tokens:TokenCounter wellkept.text.tokens:by_characters"
    " wellkept.text.tokens:bpe_counter",
    "sessions": "wellkept.memories:Sessions wellkept.memories:Session wellkept.memories:SessionPreferences",
    "plans": "wellkept.entitlements",
    "values": "wellkept.types",
    "events": "wellkept.events",
    "metrics-and-logs": "wellkept.telemetry wellkept.logs",
    "error-classes": "wellkept.errors",
    "ports": "wellkept.ports",
    "stores-and-indexes": "wellkept.stores.sqlite:SqliteStore wellkept.stores.jsonl:JsonlStore"
    " wellkept.stores.postgres:PostgresStore wellkept.stores.ram:RamStore wellkept.indexes.ram:RamIndex",
    "embedders-and-rerankers": "wellkept.embedders.word_table:WordTableEmbedder wellkept.embedders.bge:BgeEmbedder"
    " wellkept.embedders.model2vec:Model2VecEmbedder wellkept.embedders.http:HttpEmbedder"
    " wellkept.embedders.callable:CallableEmbedder wellkept.embedders.hashing:HashingEmbedder"
    " wellkept.recall.calibration:Calibration wellkept.rerankers.cross_encoder:CrossEncoder",
    "async": "wellkept.aio",
    "declaring-verbs-and-settings": "wellkept.operations wellkept.settings",
    "testing-kit": "wellkept.testing wellkept.testing.subject:Subject wellkept.testing.builders",
}

MADE: dict[str, Callable[[], str]] = {
    "verbs": lambda: f"[answers.schema.json](reference/answers.schema.json)\n\n{verbs_reference.page()}",
    "settings": settings_reference.page,
    "requirements": lambda: requirements_table.table(ROOT).partition("\n")[2],  # without its heading
}
CHAPTER = re.compile(r"^## (?P<title>.+)\n\n(?P<text>(?:(?!## ).*\n?)*)", re.MULTILINE)
# A block of code, a piece of code, or a link: what stands in code is no link.
CODE_OR_LINK = re.compile(
    r"^(?P<fence> *```\w*)(?P<words>.*)(?P<body>\n(?s:.*?)^ *```)|`[^`\n]+`|\[(?P<text>[^]]*)\]\((?P<target>[^)\s]+)\)",
    re.MULTILINE,
)


def main() -> None:
    """Build the site, and say where it is."""
    print(build(FOLDER) / "index.html", file=sys.stderr)


def build(folder: Path) -> Path:
    """Build the site in a folder, whose content goes; returns where it is. A warning is an error."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = documents() | reference_pages()
    pages[REFERENCE] = CHAPTER.sub(lambda chapter: _with_link(*chapter.groups()), pages[REFERENCE])
    others = [*ROOT.glob("docs/**/*.svg"), *ROOT.glob("examples/*.py"), ROOT / "LICENSE", ROOT / "NOTICE"]
    files = {SCHEMA, *pages, *(file.relative_to(ROOT).as_posix() for file in others)}
    for name, text in pages.items():
        _write(folder / "pages" / name, _adapted(text, name, files))
    for file in others:
        _write(folder / "pages" / file.relative_to(ROOT), file.read_text(encoding="utf-8"))
    _write(folder / "pages" / SCHEMA, verbs_reference.schema())
    _write(folder / "pages" / WORKER, (ROOT / "tools" / "iframe-worker.js").read_text(encoding="utf-8"))
    _write(folder / "mkdocs.yml", json.dumps(configuration(pages)))  # JSON is YAML
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout))  # without colours
    (folder / "site" / "404.html").unlink()  # only for web servers: its links begin at their root
    return folder / "site"


def documents() -> dict[str, str]:
    """The documents of the repository by their paths."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def reference_pages() -> dict[str, str]:
    """The pages that are made, by their paths."""
    return {
        place_of(slug): f"# {title}\n\n{text}\n{MADE[slug]() if slug in MADE else ''.join(_sections(slug))}\n"
        for slug, title, text in chapters()
    }


def chapters() -> Iterator[tuple[str, str, str]]:
    """The pages of the reference: name, title and introduction."""
    for chapter in CHAPTER.finditer((ROOT / REFERENCE).read_text(encoding="utf-8")):
        yield slug_of(chapter["title"]), chapter["title"], chapter["text"]


def slug_of(title: str) -> str:
    """The anchor of a chapter, and the name of its page."""
    return title.lower().replace(" ", "-")


def place_of(slug: str) -> str:
    """The path of a page of the reference."""
    return f"docs/reference/{slug}.md"


def _sections(slug: str) -> Iterator[str]:
    """A section for each name that a page shows, as mkdocstrings wants it."""
    shown = {path: value for entry in SHOWN[slug].split() for path, value in named(entry)}
    for path, value in shown.items():
        options = {}
        if isinstance(value, type):
            bases = [base for base in value.__mro__[1:] if base.__module__.startswith("wellkept")]
            # Objects of the other classes are handed out by a method: how they are made is nobody's business.
            options["merge_init_into_class"] = is_dataclass(value) or not value.__module__.startswith(HANDED_OUT)
            options["inherited_members"] = any(base not in shown.values() for base in bases)
            # The members of these rarely have a text of their own, and are what they are for.
            options["show_if_no_docstring"] = issubclass(value, Enum | dict | BaseException)
        yield f"\n::: {path}\n    options: {json.dumps(options)}\n"


def named(entry: str) -> Iterator[tuple[str, Any]]:
    """The names of a module, or the single one after a colon, each with its value: as users import it."""
    home, _, single = entry.partition(":")
    module = importlib.import_module(home)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == home]
    for name in [single] if single else getattr(module, "__all__", own):
        value = getattr(module, name)
        if not name.startswith("_"):
            is_at_the_top = name in wellkept.__all__ and value is getattr(wellkept, name)
            yield f"{'wellkept' if is_at_the_top else home}.{name}", value


def _with_link(title: str, text: str) -> str:
    """A chapter whose title leads to its page."""
    return f"## [{title}](#{slug_of(title)})\n\n{text}"


def _adapted(text: str, name: str, files: set[str]) -> str:
    """A document for the site: links to the reference lead to its pages, and what the site has not is no link."""
    base = REFERENCE if name.startswith("docs/reference/") else name

    def adapt(match: re.Match[str]) -> str:
        if match["fence"]:
            return match["fence"] + match["body"]  # without words for the tests, such as `no-run`
        path, _, anchor = (match["target"] or "").partition("#")
        place = normpath(join(dirname(base), path)) if path else base
        if place == REFERENCE and place_of(anchor) in files:
            place, anchor = place_of(anchor), ""
        elif not path or re.match(r"[a-z]+:", path):
            return match[0]
        elif place not in files:
            return match["text"]
        return f"[{match['text']}]({relpath(place, dirname(name) or '.')}{anchor and '#'}{anchor})"

    return CODE_OR_LINK.sub(adapt, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def navigation(pages: dict[str, str]) -> list[Any]:
    """The menu: the chapters of the table of contents, with all pages of the reference, and the decisions."""
    menu: list[Any] = ["README.md", CONTENTS]
    for chapter in CHAPTER.finditer(pages[CONTENTS]):
        places = [normpath(join("docs", place)) for place in re.findall(r"\]\(([^)#]+\.md)\)", chapter["text"])]
        if REFERENCE in places:
            places[1:1] = [place_of(slug) for slug, _, _ in chapters()]
        if places:
            menu.append({chapter["title"]: places})
    return [*menu, {"Decisions": sorted(name for name in pages if name.startswith("docs/decisions/0"))}]


def configuration(pages: dict[str, str]) -> dict[str, Any]:
    """The configuration of the site generator."""
    return {
        "site_name": "Wellkept",
        "docs_dir": "pages",
        "site_dir": "site",
        "nav": navigation(pages),
        "theme": {"font": False, "features": ["content.code.copy", "navigation.top", "search.highlight"]},
        "extra": {"polyfills": [WORKER]},
        "plugins": [
            "search",
            "offline",
            {
                "mkdocstrings": {
                    "handlers": {
                        "python": {
                            "paths": [str(ROOT / "src")],
                            "options": {
                                "docstring_style": None,
                                "extensions": [f"{ROOT / 'tools' / 'docstrings.py'}:Docstrings"],
                                "filters": ["!^_", "!^test_"],
                                "heading_level": 2,
                                "line_length": 100,
                                "members_order": "alphabetical",
                                "separate_signature": True,
                                "show_root_heading": True,
                                "show_root_full_path": True,
                                "show_signature_annotations": True,
                                "show_labels": False,
                                "show_source": False,
                                "show_symbol_type_toc": True,
                                "signature_crossrefs": True,
                            },
                        }
                    }
                }
            },
        ],
        "markdown_extensions": [
            "tables",
            "sane_lists",
            {"toc": {"permalink": True, "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}}},
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
    }


if __name__ == "__main__":
    main()
