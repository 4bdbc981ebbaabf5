"""The table of requirements is current, and markers name requirements that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import requirements_table
from tools.requirements_table import ROOT, TABLE, BadMarker, proofs_in

ROW_CHARACTERS_MAX = 400


def test_the_table_is_current() -> None:
    written = (ROOT / TABLE).read_text(encoding="utf-8")
    assert written == requirements_table.table(ROOT), "run `make docs`"


def test_markers_name_known_requirements() -> None:
    known = {one.id for one in requirements_table.requirements(ROOT)}
    unknown = [
        f"{proof.node_id}: {proof.requirement}"
        for proof in requirements_table.find_proofs(ROOT)
        if proof.requirement not in known
    ]
    assert unknown == []


def test_every_requirement_belongs_to_an_area() -> None:
    page = requirements_table.table(ROOT)
    missing = [one.id for one in requirements_table.requirements(ROOT) if f"\n| {one.id} | " not in page]
    assert missing == []


def test_what_is_partly_done_has_a_test() -> None:
    """Without one it is open, and a note of what is missing would read as if the rest were proven."""
    proven = {proof.requirement for proof in requirements_table.find_proofs(ROOT)}
    noted = [one.id for one in requirements_table.requirements(ROOT) if one.partly]
    assert [id for id in noted if id not in proven] == []


def test_rows_of_the_table_can_be_read() -> None:
    assert [line for line in requirements_table.table(ROOT).splitlines() if len(line) > ROW_CHARACTERS_MAX] == []


CATALOGUE = """
[areas]
W = "Working memory"

[demands]
W1 = "done"
W2 = { demand = "half", partly = "the other half" }
W3 = { demand = "claimed", partly = "everything" }
W4 = "open"
"""


def test_a_requirement_is_done_partly_or_open(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / requirements_table.CATALOGUE).write_text(CATALOGUE, encoding="utf-8")
    for name in ("a", "b"):
        source = 'import pytest\n@pytest.mark.req("W1", "W2")\ndef test_x(): ...\n'
        (tmp_path / "tests" / f"test_{name}.py").write_text(source, encoding="utf-8")
    page = requirements_table.table(tmp_path)
    assert [line for line in page.splitlines() if line.startswith("| W")] == [
        "| W1 | done | done | 2 in 2 files |",
        "| W2 | half | partly; missing: the other half | 2 in 2 files |",
        "| W3 | claimed | open | none |",
        "| W4 | open | open | none |",
    ]
    assert "Of 4 requirements 1 are done, 1 partly, 2 open." in page
    assert page.count("(../tests/test_a.py)") == 1


SAMPLE = """
import pytest

pytestmark = [pytest.mark.req("W1")]

@pytest.mark.req("W2", "W3")
def test_function(): ...

@pytest.mark.req("W4")
class TestClass:
    pytestmark = pytest.mark.req("W5")

    @pytest.mark.req("W6")
    async def test_method(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("W7"))])
def test_parameter(x): ...
"""


def test_markers_are_found_in_every_place() -> None:
    found = [(proof.requirement, proof.node_id) for proof in proofs_in(SAMPLE, "t.py")]
    assert found == [
        ("W1", "t.py"),
        ("W2", "t.py::test_function"),
        ("W3", "t.py::test_function"),
        ("W4", "t.py::TestClass"),
        ("W5", "t.py::TestClass"),
        ("W6", "t.py::TestClass::test_method"),
        ("W7", "t.py::test_parameter"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n@pytest.mark.req(name)\ndef test_x(): ...",
        "import pytest\n@pytest.mark.req('W1')\ndef check_x(): ...",
    ],
)
def test_markers_that_prove_nothing_are_refused(source: str) -> None:
    with pytest.raises(BadMarker, match=r"t\.py:\d"):
        proofs_in(source, "t.py")
