"""The table of requirements is current, and markers name requirements that exist."""

from __future__ import annotations

import pytest

from tools import requirements_table
from tools.requirements_table import ROOT, TABLE, BadMarker, proofs_in


def test_the_table_is_current() -> None:
    written = (ROOT / TABLE).read_text(encoding="utf-8")
    assert written == requirements_table.table(ROOT), "run `make docs`"


def test_markers_name_known_requirements() -> None:
    known = requirements_table.known_ids(ROOT)
    unknown = [
        f"{proof.node_id}: {proof.requirement}"
        for proof in requirements_table.find_proofs(ROOT)
        if proof.requirement not in known
    ]
    assert unknown == []


def test_every_requirement_belongs_to_an_area() -> None:
    page = requirements_table.table(ROOT)
    missing = [id for id in requirements_table.known_ids(ROOT) if f"\n| {id} | " not in page]
    assert missing == []


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
