"""The figures of all configurations as one page, one plot and one file of raw numbers."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import bars
from benchmarks.quality_data import LOCOMO, LONGMEMEVAL
from benchmarks.quality_metrics import DEPTHS, OVERALL

Runs = dict[str, dict[str, Any]]
"""Figures by configuration, then by benchmark."""

INTRODUCTION = """# Quality of search

Written by `benchmarks/quality.py`; do not edit.

Each turn of a conversation is one memory of one user, with its author, its time and its session; each question goes to
`search` as it stands. Recall@k is the share of the turns with the answer that are among the first k, averaged over
questions. LongMemEval gives each question a haystack of its own; any@5 and all@5 ask whether one, or all, of the
sessions with the answer are among the first five, a session's rank being that of its best turn. All of this is measured
without a threshold.

*Knowing when it does not know* is measured with the default threshold. Foreign questions are put to somebody else's
conversations: the right answer is none. Adversarial questions of LoCoMo ask the right conversation for something that
was never said. AUC is how often the best score for an answerable question is above that for one that is not; 50 is a
coin.

Shares are in per cent. Times are of one search as the caller sees it; they depend on the machine.

![the main figures of each configuration](quality.svg)
"""


def update(out: Path, name: str, figures: dict[str, Any]) -> str:
    """Put the figures of one configuration in the place of earlier ones; write all files; return the page."""
    file = out / "quality.json"
    runs: Runs = json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else {}
    runs[name] = runs.get(name, {}) | _plain(figures)
    page = "\n".join([INTRODUCTION, *_page(runs)])
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")
    (out / "quality.md").write_text(page, encoding="utf-8")
    (out / "quality.svg").write_text(bars.draw(_charts(runs)), encoding="utf-8")
    return page


def _plain(value: Any) -> Any:
    """As JSON can say it: rounded, and null for what is not a number."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def _page(runs: Runs) -> Iterator[str]:
    for benchmark in (LOCOMO, LONGMEMEVAL):
        having = {name: figures[benchmark] for name, figures in runs.items() if benchmark in figures}
        if not having:
            continue
        yield f"## {benchmark}\n"
        for name, figures in having.items():
            yield f"### {benchmark}, embedder: {name}\n"
            yield f"Databases: {figures['databases']}, memories: {figures['memories']:,}.\n"
            yield from _quality(figures["quality"])
        yield f"### {benchmark}: knowing when it does not know, and times\n"
        yield from _rest(having)


def _quality(table: dict[str, dict[str, float | None]]) -> Iterator[str]:
    metrics = [name for name in table[OVERALL] if name != "questions"]
    yield from _head(["category", "questions", *metrics])
    for category, row in table.items():
        yield _row([category, f"{row['questions']:.0f}", *(_percent(row[metric]) for metric in metrics)])
    yield ""


def _rest(having: dict[str, Any]) -> Iterator[str]:
    yield from _head(["", *having])
    for metric in dict.fromkeys(metric for figures in having.values() for metric in figures.get("knowing", {})):
        yield _row([metric, *(_percent(figures.get("knowing", {}).get(metric)) for figures in having.values())])
    for metric in ("p50", "p95"):
        cells = [f"{figures['latency_ms'][metric]:.1f} ms" for figures in having.values()]
        yield _row([f"search {metric}", *cells])
    yield ""


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _row(cells)
    yield _row(["---", *("---:" for _ in cells[1:])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f}"


def _charts(runs: Runs) -> list[bars.Chart]:
    charts = []
    for benchmark in (LOCOMO, LONGMEMEVAL):
        having = {name: figures[benchmark]["quality"] for name, figures in runs.items() if benchmark in figures}
        if not having:
            continue
        recalls = [f"recall@{depth}" for depth in DEPTHS]
        columns = [(OVERALL, metric) for metric in recalls]
        if benchmark == LOCOMO:
            categories = [one for one in next(iter(having.values())) if one != OVERALL]
            columns += [(category, "recall@10") for category in categories]
        else:
            columns += [(OVERALL, "any@5"), (OVERALL, "all@5")]
        series = {name: [_bar(table, *column) for column in columns] for name, table in having.items()}
        groups = [metric if category == OVERALL else f"{category} @10" for category, metric in columns]
        charts.append(bars.Chart(title=benchmark, groups=groups, series=series, ticks=(0, 20, 40, 60, 80, 100)))
    return charts


def _bar(table: dict[str, dict[str, float | None]], category: str, metric: str) -> float:
    value = table.get(category, {}).get(metric)
    return math.nan if value is None else value * 100
