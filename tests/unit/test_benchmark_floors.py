"""What `make bench-floors` makes of its figures: verdicts, the table, the choice of floors, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.floors import FLOORS, MEASURES, Floor, Row, as_json, chosen, exit_code, figures, rows, table

SOURCE = "a source"
SOME = (
    Floor("W8.1", "get", SOURCE, "<", 5, "ms"),
    Floor("W8.2", "held", SOURCE, ">=", 10_000, "entries"),
    Floor("L15.1", "relevance", SOURCE, ">", 90, "%", needs_data=True),
    Floor("H16.1", "on a server", SOURCE, "<=", 1, "ms", missing="Redis"),
)


def test_a_figure_is_held_to_its_floor() -> None:
    expected = {
        ("<", 4.9): "met",
        ("<", 5.0): "missed",
        ("<=", 5.0): "met",
        ("<=", 5.1): "missed",
        ("=", 5.0): "met",
        ("=", 4.0): "missed",
        (">=", 5.0): "met",
        (">=", 4.9): "missed",
        (">", 5.1): "met",
        (">", 5.0): "missed",
    }
    verdicts = {
        (sign, measured): Row(Floor("W8.1", "get", SOURCE, sign, 5, "ms"), measured).verdict
        for sign, measured in expected
    }
    assert verdicts == expected


SHOWN = """\
id     what         from      floor              measured       verdict
W8.1   get          a source  < 5 ms             0.25 ms        met
W8.2   held         a source  >= 10,000 entries  9,999 entries  missed
L15.1  relevance    a source  > 90 %                            needs DATA=folder
H16.1  on a server  a source  <= 1 ms                           no code yet: Redis

4 floors: 1 met, 1 missed, 1 no code yet, 1 needs DATA=folder"""


def test_the_table_has_a_row_for_every_floor() -> None:
    assert table(rows(SOME, {"W8.1": 0.25, "W8.2": 9_999})) == SHOWN


def test_only_a_missed_floor_is_a_failure() -> None:
    assert exit_code(rows(SOME, {"W8.1": 0.25, "W8.2": 10_000})) == 0
    assert exit_code(rows(SOME, {"W8.1": 0.25, "W8.2": 10_000, "L15.1": 89.0})) == 1
    assert exit_code(rows(SOME, {"W8.1": 5.0, "W8.2": 10_000})) == 1


def test_a_floor_that_was_passed_over_is_a_mistake() -> None:
    with pytest.raises(LookupError, match=r"nothing measured W8\.2"):
        exit_code(rows(SOME, {"W8.1": 0.25}))
    with pytest.raises(LookupError, match=r"no floor is called W8\.7"):
        rows(SOME, {"W8.7": 1})


def test_programs_get_what_people_see() -> None:
    found = json.loads(as_json(rows(SOME[:1], {"W8.1": 0.25})))
    assert found == [
        {
            "id": "W8.1",
            "what": "get",
            "source": SOURCE,
            "sign": "<",
            "limit": 5,
            "unit": "ms",
            "missing": None,
            "needs_data": False,
            "measured": 0.25,
            "verdict": "met",
        }
    ]


def test_floors_are_told_apart_and_belong_to_a_measure() -> None:
    ids = [floor.id for floor in FLOORS]
    assert len(set(ids)) == len(ids)
    assert {id.partition(".")[0] for id in ids} == set(MEASURES)
    assert chosen([]) == list(FLOORS)
    assert {floor.id for floor in chosen(["W8", "P8"])} == {id for id in ids if id.startswith(("W8.", "P8."))}


def test_what_was_asked_for_is_measured_in_an_empty_folder(tmp_path: Path) -> None:
    def measure(folder: Path) -> Iterator[tuple[str, float]]:
        assert list(folder.iterdir()) == []
        (folder / "memory.db").touch()
        yield from {"P8.1": 80, "P8.2": 70, "P8.3": 1.5}.items()

    measures = {"W8": lambda folder: iter({"W8.1": float(len(list(folder.iterdir())))}.items()), "P8": measure}
    assert figures(measures, ["P8"], tmp_path) == {"P8.1": 80, "P8.2": 70, "P8.3": 1.5}
    assert figures(measures, ["W8", "L15"], tmp_path) == {"W8.1": 0}
    assert list(figures(measures, [], tmp_path)) == ["W8.1", "P8.1", "P8.2", "P8.3"]
    assert list(tmp_path.iterdir()) == []
