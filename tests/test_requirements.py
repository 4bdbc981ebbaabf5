"""Markers name requirements that exist, and what the catalogue says of tests and floors is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import requirements_table
from tools.requirements_table import ROOT, BadMarker, UnknownFloor, proofs_in

ROW_CHARACTERS_MAX = 400


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


def test_what_is_open_has_no_proof_and_all_else_has_one() -> None:
    """Without a proof nothing is done, and a note of what is missing would read as if the rest were proven."""
    proven = {proof.requirement for proof in requirements_table.find_proofs(ROOT)}
    wanted = requirements_table.requirements(ROOT)
    assert [one.id for one in wanted if one.open is bool(one.id in proven or one.floors)] == []
    assert [one.id for one in wanted if one.open and one.partly] == []


def test_every_floor_belongs_to_its_requirement() -> None:
    named = [(one.id, floor) for one in requirements_table.requirements(ROOT) for floor in one.floors]
    measured = {(floor.partition(".")[0], floor) for floor in requirements_table.floors(ROOT)}
    assert set(named) ^ measured == set()
    assert len(named) == len(measured)


def test_a_requirement_with_a_floor_that_cannot_be_measured_is_not_done() -> None:
    floors = requirements_table.floors(ROOT)
    done = [one for one in requirements_table.requirements(ROOT) if not (one.partly or one.open)]
    assert [floor for one in done for floor in one.floors if floors.get(floor)] == []


def test_rows_of_the_table_can_be_read() -> None:
    assert [line for line in requirements_table.table(ROOT).splitlines() if len(line) > ROW_CHARACTERS_MAX] == []


CATALOGUE = """
[areas]
W = "Working memory"

[demands]
W1 = "done"
W2 = { demand = "half", partly = "the other half" }
W3 = { demand = "claimed", partly = "everything" }
W4 = "forgotten"
W5 = { demand = "open", open = true }
W6 = { demand = "measured", floors = ["W6.1", "W6.2"] }
W7 = { demand = "both", floors = ["W7.1"], partly = "speed" }
"""
FLOORS = """
from somewhere import what_is_not_installed
FLOORS = (
    Floor("W6.1", "get", "<", 5, "ms"), Floor("W6.2", "set", "<", 5, "ms"),
    Floor("W7.1", "all", "<", 5, "ms", missing="a server"),
)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a catalogue, two files of tests, and floors."""
    for folder in ("docs", "tests", "benchmarks"):
        (tmp_path / folder).mkdir()
    (tmp_path / requirements_table.CATALOGUE).write_text(CATALOGUE, encoding="utf-8")
    (tmp_path / requirements_table.FLOORS).write_text(FLOORS, encoding="utf-8")
    for name in ("a", "b"):
        source = 'import pytest\n@pytest.mark.req("W1", "W2", "W7")\ndef test_x(): ...\n'
        (tmp_path / "tests" / f"test_{name}.py").write_text(source, encoding="utf-8")
    return tmp_path


def test_a_requirement_is_done_partly_or_open(project: Path) -> None:
    page = requirements_table.table(project)
    assert [line for line in page.splitlines() if line.startswith("| W")] == [
        "| W1 | done | done | 2 in 2 files |",
        "| W2 | half | partly; missing: the other half | 2 in 2 files |",
        "| W3 | claimed | open | none |",
        "| W4 | forgotten | open | none |",
        "| W5 | open | open | none |",
        "| W6 | measured | done | floors W6.1, W6.2 |",
        "| W7 | both | partly; missing: speed | 2 in 2 files; floors W7.1 |",
    ]
    assert "Of 7 requirements 2 are done, 2 partly, 3 open." in page
    assert page.count("`tests/test_a.py`") == 1


def test_floors_are_read_without_running_them(project: Path) -> None:
    assert requirements_table.floors(project) == {"W6.1": None, "W6.2": None, "W7.1": "a server"}


def test_a_floor_that_nobody_measures_is_refused(project: Path) -> None:
    (project / requirements_table.FLOORS).write_text('Floor("W6.1")', encoding="utf-8")
    with pytest.raises(UnknownFloor, match=r"benchmarks/floors\.py has no floor W6\.2, W7\.1"):
        requirements_table.table(project)


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
