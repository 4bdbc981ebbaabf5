"""The figures of all peers as one page, one plot and one file of raw numbers."""

import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import bars
from benchmarks.peers import PEERS

Sizes = dict[str, dict[str, dict[str, Any]]]
"""Figures by size, then by peer."""
OURSELVES = "wellkept"

INTRODUCTION = """# Speed, side by side

Written by `benchmarks/speed.py`; do not edit.

Every store gets the same texts (8 to 25 words) and the same vectors (384 numbers, in clusters), and is asked the same
questions; the same code times it, in processes of its own. In parentheses: how many times Wellkept's figure that is.
Times depend on the machine and on who else is using it; ratios less so.

- **forced write**: what the disk took to force out a page while the peer was adding; a shared disk changes its mind
  within minutes, so compare an **add** (one memory, as durable as the library makes it) with the forced write beside
  it. **batch**: memories per second, a thousand at a time.
- **search**: the ten nearest vectors in one scope that holds everything. **filtered**: the ten nearest of an owner who
  has 1 % of it. **recall**: the share of the ten truly nearest that came back, in both. **hybrid**: by words and vector
  together, with a question of 20 words.
- **cold start**: from starting the interpreter to the first answer. **disk**: bytes per memory. **resident**: memory of
  a new process after some searches; for a store without files, what filling it added.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure in the table."""

    title: str
    key: str
    unit: str = ""
    scale: float = 1.0
    ratio: bool = True


COLUMNS = (
    Column("forced write", "forced_write_ms", " ms", ratio=False),
    Column("add p50", "add_p50_ms", " ms"),
    Column("batch", "batch_per_s", "/s"),
    Column("search p50", "search_p50_ms", " ms"),
    Column("p95", "search_p95_ms", " ms", ratio=False),
    Column("recall", "search_recall", " %", scale=100, ratio=False),
    Column("filtered p50", "filtered_p50_ms", " ms"),
    Column("recall", "filtered_recall", " %", scale=100, ratio=False),
    Column("hybrid p50", "hybrid_p50_ms", " ms"),
    Column("cold start", "cold_start_ms", " ms"),
    Column("disk", "bytes_per_memory", " B"),
    Column("resident", "resident_mb", " MB"),
)


def write(out: Path, sizes: Sizes) -> str:
    """Write all files; return the page."""
    machine = {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}
    page = "\n".join([INTRODUCTION, *_page(sizes, machine)])
    out.mkdir(parents=True, exist_ok=True)
    raw = {"machine": machine, "sizes": sizes}
    (out / "speed.json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    (out / "speed.md").write_text(page, encoding="utf-8")
    (out / "speed.svg").write_text(bars.draw([_chart(sizes)]), encoding="utf-8")
    return page


def _page(sizes: Sizes, machine: dict[str, Any]) -> Iterator[str]:
    yield f"Measured with Python {machine['python']} on {machine['system']}, {machine['cores']} cores.\n"
    yield "![search p50 by size](speed.svg)\n"
    for size, peers in sizes.items():
        yield f"## {int(size):,} memories\n"
        yield _row(["", *(column.title for column in COLUMNS)])
        yield _row(["---", *("---:" for _ in COLUMNS)])
        for name, figures in peers.items():
            yield _row([name, *(_cell(column, figures, peers[OURSELVES]) for column in COLUMNS)])
        yield ""
        for name, figures in peers.items():
            if "missing" in figures:
                yield f"- {name}: {figures['missing']}"
            if figures.get("settle_s", 0) >= 1:
                yield f"- {name}: {figures['settle_s']:.0f} s of preparation between the load and the first search"
        yield ""
        yield from _yardsticks(peers[OURSELVES])
    yield from _notes(sizes)


def _cell(column: Column, figures: dict[str, Any], ours: dict[str, Any]) -> str:
    value = figures.get(column.key)
    if value is None:
        return "-"
    text = _short(value * column.scale) + column.unit
    base = ours.get(column.key)
    return f"{text} ({_short(value / base)} x)" if column.ratio and base and figures is not ours else text


def _short(value: float) -> str:
    """Two digits that count, but all of those before the point."""
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 3)}f}"


def _yardsticks(ours: dict[str, Any]) -> Iterator[str]:
    """Wellkept against the bare arithmetic, and with a real model."""
    figures = ours.get("yardsticks", {})
    for key, title in (
        ("kernel_f32_ms", "numpy, 32-bit floats"),
        ("kernel_i8_ms", "simsimd, bytes"),
        ("kernel_u8_ms", "simsimd, bytes without a sign"),
    ):
        if key in figures and "search_p50_ms" in ours:
            ratio = _short(ours["search_p50_ms"] / figures[key])
            yield f"- bare kernel ({title}, one core): {_short(figures[key])} ms; a search takes {ratio} times that"
    if "model_search_p50_ms" in figures:
        p50, p95 = _short(figures["model_search_p50_ms"]), _short(figures["model_search_p95_ms"])
        yield f"- end to end with the default embedder ({figures['model']}): p50 {p50} ms, p95 {p95} ms;"
        yield f"  {_short(figures['model_batch_per_s'])} memories per second are embedded and stored"
    if "missing" in figures:
        yield f"- yardsticks: {figures['missing']}"
    yield ""


def _notes(sizes: Sizes) -> Iterator[str]:
    yield "## Notes on the peers\n"
    for name in dict.fromkeys(name for peers in sizes.values() for name in peers):
        module = import_module(f"benchmarks.peers.{PEERS[name]}")
        version = f" ({module.REQUIREMENTS[0].replace('==', ' ')})" if module.REQUIREMENTS else ""
        yield f"- **{name}**{version}: {module.NOTE}"
    yield ""


def _chart(sizes: Sizes) -> bars.Chart:
    names = dict.fromkeys(name for peers in sizes.values() for name in peers)
    series = {name: [peers.get(name, {}).get("search_p50_ms", math.nan) for peers in sizes.values()] for name in names}
    known = [value for values in series.values() for value in values if not math.isnan(value)] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    ticks = [10.0**power for power in range(low, max(high, low + 1) + 1)]
    groups = [f"{int(size):,} memories" for size in sizes]
    title = "Search p50 in milliseconds (logarithmic; shorter is better)"
    return bars.Chart(title=title, groups=groups, series=series, ticks=ticks, logarithmic=True)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
