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

KINDS = "kinds"
"""The sets of benchmarks/data, beside the two benchmarks."""

INTRODUCTION = """# Quality of search

Written by `benchmarks/quality.py`; do not edit.

*Kinds of memory* are the sets of `benchmarks/data`: short facts of nine worlds (each in a store of its own, and among
so many other memories that there are 300, and 10,000; which others is said below), memories of code projects, notes of
100 to 300 words, chats mixed with facts, and five other languages. *hit@k*: an answer is among the first k. *R@10*: the
share of the answers among the first ten. *emptied*: questions that have an answer and got none. *by order*: without a
threshold. *near* and *foreign* questions have no answer in the store: near ones are about its subjects, foreign ones
about none of them. *Calibration error*: how far the scores of hits are, on average, from the share of them that are
answers. Beside a figure stands its 95 % interval, by a bootstrap over questions.

In LoCoMo and LongMemEval, each turn of a conversation is one memory of one user, with its author, its time and its
session; each question goes to `search` as it stands. Recall@k is the share of the turns with the answer that are among
the first k, averaged over questions. LongMemEval gives each question a haystack of its own; any@5 and all@5 ask whether
one, or all, of the sessions with the answer are among the first five, a session's rank being that of its best turn. All
of this is measured without a threshold.

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
    known, new = runs.get(name, {}), plain(figures)
    runs[name] = known | new | ({KINDS: known.get(KINDS, {}) | new[KINDS]} if KINDS in new else {})
    page = "\n".join([INTRODUCTION, *_page(runs)])
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")
    (out / "quality.md").write_text(page, encoding="utf-8")
    (out / "quality.svg").write_text(bars.draw(_charts(runs)), encoding="utf-8")
    return page


def plain(value: Any) -> Any:
    """As JSON can say it: rounded, and null for what is not a number."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def _page(runs: Runs) -> Iterator[str]:
    for name, run in runs.items():
        if KINDS in run:
            yield from _kinds(name, run[KINDS])
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


def _kinds(name: str, tables: dict[str, Any]) -> Iterator[str]:
    for title in ("memories", "questions", "worlds"):
        rows = tables.get(title, {})
        if not rows:
            continue
        heading = "Worlds" if title == "worlds" else f"Kinds of {title}"
        yield f"## {heading}, embedder: {name}\n"
        if title == "memories":
            yield f"Others in the larger stores: {tables['others']}.\n"
        metrics = [metric for metric in next(iter(rows.values())) if metric != "questions"]
        metrics = [metric for metric in metrics if any(_known(row[metric]) for row in rows.values())]
        yield from _head(["", "questions", *metrics])
        for kind, row in rows.items():
            yield _row([kind, f"{row['questions']}", *(_spread(row[metric]) for metric in metrics)])
        yield ""
    if "ablation" in tables:
        yield from _ablation(name, tables["ablation"])


def _ablation(name: str, ablation: dict[str, Any]) -> Iterator[str]:
    """hit@1 and R@10 by order, and what each signal adds to them: positive where its loss costs something."""
    whole = ablation["nothing"]
    yield f"## What each signal is worth, embedder: {name}\n"
    yield "Points of hit@1 / R@10 by order that are lost without it.\n"
    yield from _head(["without", *whole])
    yield _row(["nothing", *(" / ".join(_percent(value[0]) for value in row.values()) for row in whole.values())])
    for signal, rows in ablation.items():
        if signal == "nothing":
            continue
        lost = [
            " / ".join(f"{(whole[kind][metric][0] - value[0]) * 100:+.1f}" for metric, value in row.items())
            for kind, row in rows.items()
        ]
        yield _row([signal, *lost])
    yield ""


def _known(value: Any) -> bool:
    return (value[0] if isinstance(value, list) else value) is not None


def _spread(value: list[float | None] | float | None) -> str:
    """A figure, with its interval if it has one."""
    if not isinstance(value, list):
        return _percent(value)
    share, low, high = value
    if share is None or low is None or high is None:
        return "-"
    return f"{share * 100:.0f} ({low * 100:.0f}-{high * 100:.0f})"


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


def _reliability(runs: Runs) -> Iterator[bars.Chart]:
    """How many hits of each tenth of the scale are answers; a perfect score would be as high as the first bar."""
    for name, run in runs.items():
        tables = run.get(KINDS, {}).get("reliability", {})
        if not tables:
            continue
        count = len(next(iter(tables.values())))
        series = {"as its score says": [(number + 0.5) / count * 100 for number in range(count)]}
        for kind, bins in tables.items():
            series[kind] = [math.nan if one["right"] is None else one["right"] * 100 for one in bins]
        groups = [f"{number / count:.1f}-{(number + 1) / count:.1f}" for number in range(count)]
        title = f"Hits that are answers (%), by score; embedder: {name}"
        yield bars.Chart(title=title, groups=groups, series=series, ticks=(0, 20, 40, 60, 80, 100))


def _of_kinds(runs: Runs) -> Iterator[bars.Chart]:
    having = {name: run[KINDS] for name, run in runs.items() if "memories" in run.get(KINDS, {})}
    for title in ("memories", "questions") if having else ():
        groups = list(next(iter(having.values()))[title])
        series = {
            f"{name}, {metric}": [_first(tables[title].get(kind, {}).get(metric)) for kind in groups]
            for name, tables in having.items()
            for metric in ("hit@3", "R@10")
        }
        yield bars.Chart(title=f"Kinds of {title}", groups=groups, series=series, ticks=(0, 20, 40, 60, 80, 100))


def _first(value: list[float | None] | None) -> float:
    return math.nan if not value or value[0] is None else value[0] * 100


def _charts(runs: Runs) -> list[bars.Chart]:
    charts = [*_of_kinds(runs), *_reliability(runs)]
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
