"""Links lead somewhere: to a file that is there, and to a heading in it. Every guide can be found."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from wellkept.ports import Store

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def text_of(path: Path) -> str:
    """A document without its blocks of code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(slug(found["text"].replace("`", "")) for found in HEADING.finditer(text_of(path)))


def links(text: str) -> list[str]:
    """The targets of links in this project; what stands in code is none."""
    targets = [found["target"] for found in LINK.finditer(CODE.sub("", text))]
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def broken(path: Path) -> list[str]:
    bad = []
    for target in links(text_of(path)):
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            bad.append(target)
    return bad


def documents() -> list[str]:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(file.relative_to(ROOT).as_posix() for file in files)


def test_links_lead_somewhere() -> None:
    assert {name: targets for name in documents() if (targets := broken(ROOT / name))} == {}


def test_users_are_not_led_to_pages_for_developers() -> None:
    for_users = ["README.md", *(name for name in documents() if name.startswith("docs/guides/"))]
    targets = {(name, target) for name in for_users for target in links(text_of(ROOT / name))}
    assert {one for one in targets if re.search(r"decisions|requirements|architecture", one[1])} == set()


def test_the_table_of_contents_puts_pages_for_developers_last() -> None:
    for_users, _, for_developers = text_of(ROOT / "docs" / "README.md").partition("## For developers")
    theirs = {"architecture.md", "decisions/README.md", "reference.md#requirements"}
    assert theirs <= set(links(for_developers))
    assert not theirs & set(links(for_users))


def test_decisions_are_numbered_consecutively_have_the_same_headings_and_are_in_their_index() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [record.name[:4] for record in records] == [f"{number:03}-" for number in range(1, len(records) + 1)]
    for record in records:
        assert record.read_text(encoding="utf-8").startswith(f"# {record.name[:3]}: ")
        headings = HEADING.findall(text_of(record))[1:]
        assert headings == ["Context", "Decision", "Consequences", "Alternatives"], record.name
    assert {record.name for record in records} <= set(links(text_of(ROOT / "docs" / "decisions" / "README.md")))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One two\n[x](b.md) [y](#one-two) [z](#three) [w](https://example.org) `[v](u)`")
    assert broken(tmp_path / "a.md") == ["b.md", "#three"]


def test_every_guide_and_every_example_is_in_the_table_of_contents() -> None:
    contents = ROOT / "docs" / "README.md"
    linked = {(contents.parent / target.partition("#")[0]).resolve() for target in links(text_of(contents))}
    there = {*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "examples").glob("*.py")}
    assert {file.name for file in there - linked} == set()


def test_the_guide_for_stores_names_every_method_of_the_contract() -> None:
    guide = text_of(ROOT / "docs" / "guides" / "writing-a-store.md")
    contract = guide.partition("## The contract")[2].partition("### What a search asks")[0]
    named = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", contract))
    methods = {name for name in vars(Store) if not name.startswith("_") and callable(getattr(Store, name))}
    assert methods - named == set()
