"""How well search finds what it was told: every kind of memory, through the public API, with the product's defaults.

    make bench-quality                                   # the sets of benchmarks/data; or: python benchmarks/quality.py
    make bench-quality DATA=/a/folder                    # and LoCoMo and LongMemEval from there
    python benchmarks/quality.py --embedder bge          # or none, or module:Class; --reranker likewise
    python benchmarks/quality.py --without all           # the order without each signal in turn

The folder holds `locomo*.json` and `longmemeval_s*.json`, as published or gzipped. Each turn of a conversation becomes
one memory; each question is asked as it stands, with its date where the benchmark gives one. No model but the embedder
(and the reranker) is called. A run replaces the figures of the same configuration in `quality.json`; the page and the
plot are written from all configurations found there.
"""

import argparse
import importlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import wellkept

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import kinds, quality_report
from benchmarks.quality_data import LOCOMO, LONGMEMEVAL, Haystack, Question, Turn, load
from benchmarks.quality_metrics import Answer, Asked, knowing, latency, quality
from benchmarks.quality_report import KINDS

FOREIGN = {LOCOMO: 40, LONGMEMEVAL: 5}
"""Foreign questions: so many of each other conversation; so many per haystack, where each has but one of its own."""
SEED = 7
LIMIT = 50
RERANKER = "wellkept.rerankers.cross_encoder:CrossEncoder"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured: the keyword arguments of ``open``, and where answers are written down in detail.

    With ``order_only``, thresholds and foreign questions are left out, which takes a quarter of the time.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    dump: TextIO | None = None
    order_only: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """One haystack, remembered."""

    view: wellkept.View
    turns: dict[str, Turn]


@contextmanager
def remembered(haystack: Haystack, setup: Setup) -> Iterator[Subject]:
    """A new database that holds the turns of a haystack as one user's memories."""
    news = [
        wellkept.NewMemory(
            content=turn.text,
            author=turn.author,
            role=turn.role,
            occurred_at=turn.at,
            session=turn.session,
        )
        for turn in haystack.turns
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        wellkept.open(Path(folder) / "memory.db", **setup.options) as memories,
    ):
        view = memories.view(user="ada")
        stored = view.add_many(news)
        view.search("hello")  # what is loaded once is not part of a search's time
        yield Subject(view, {memory.id: turn for memory, turn in zip(stored, haystack.turns, strict=True)})


def ask(subject: Subject, question: Question, *, default: bool = False) -> Answer:
    """Put a question, without a threshold or with the default one."""
    options: dict[str, Any] = {} if default else {"min_score": 0}
    started = time.perf_counter()
    results = subject.view.search(question.text, limit=LIMIT, asked_at=question.asked_at, **options)
    milliseconds = (time.perf_counter() - started) * 1000
    turns = [subject.turns[hit.memory.id] for hit in results]
    return Answer(
        question=question,
        turns=tuple(turn.key for turn in turns),
        sessions=tuple(turn.session for turn in turns),
        score=results.hits[0].score if results.hits else 0.0,
        milliseconds=milliseconds,
        scores=tuple(hit.score for hit in results),
    )


def foreign_to(own: Haystack, haystacks: list[Haystack], benchmark: str) -> list[Question]:
    """A fixed sample of the answerable questions about the other haystacks, asked at the time of this one."""
    dice = random.Random(f"{SEED} {own.name}")
    others = [[one for one in other.questions if not one.adversarial] for other in haystacks if other is not own]
    pools = others if benchmark == LOCOMO else [[one for pool in others for one in pool]]
    chosen = [one for pool in pools for one in dice.sample(pool, min(FOREIGN[benchmark], len(pool)))]
    return [replace(one, asked_at=own.questions[0].asked_at) for one in chosen]


def asked_all(benchmark: str, haystacks: list[Haystack], setup: Setup, limit: int | None) -> Asked:
    """Every question to its own haystack, and foreign ones; of the first haystacks only, if there is a limit."""
    asked = Asked(own=[], own_default=[], foreign=[], foreign_default=[])
    for number, haystack in enumerate(haystacks[:limit], start=1):
        with remembered(haystack, setup) as subject:
            asked.own.extend(ask(subject, question) for question in haystack.questions)
            if setup.dump:
                for question in haystack.questions:
                    write_reasons(setup.dump, benchmark, haystack, subject, question)
            if not setup.order_only:
                foreign = foreign_to(haystack, haystacks, benchmark)
                asked.own_default.extend(ask(subject, question, default=True) for question in haystack.questions)
                asked.foreign.extend(ask(subject, question) for question in foreign)
                asked.foreign_default.extend(ask(subject, question, default=True) for question in foreign)
        print(f"{benchmark}: {number} of {len(haystacks[:limit])}", file=sys.stderr, flush=True)
    return asked


def write_reasons(file: TextIO, benchmark: str, haystack: Haystack, subject: Subject, question: Question) -> None:
    """One line of JSON: the question, and what each hit's score was made of. Weights can be fitted to it."""
    results = subject.view.search(question.text, limit=LIMIT, asked_at=question.asked_at, min_score=0, explain=True)
    hits = []
    for hit in results:
        turn = subject.turns[hit.memory.id]
        reasons = dict(hit.reasons)
        hits.append({"turn": turn.key, "gold": turn.key in question.turns, "score": hit.score, "reasons": reasons})
    line = {
        "benchmark": benchmark,
        "haystack": haystack.name,
        "question": question.name,
        "text": question.text,
        "category": question.category,
        "gold": sorted(question.turns),
        "gold_sessions": sorted(question.sessions),
        "hits": hits,
    }
    print(json.dumps(line, ensure_ascii=False), file=file)


def measure(folder: Path, setup: Setup, benchmarks: list[str], limit: int | None) -> dict[str, Any]:
    """All figures of one configuration, by benchmark."""
    figures: dict[str, Any] = {}
    for benchmark in benchmarks:
        haystacks = load(folder, benchmark)
        if not haystacks:
            print(f"{benchmark}: no file in {folder}", file=sys.stderr)
            continue
        asked = asked_all(benchmark, haystacks, setup, limit)
        figures[benchmark] = {
            "databases": len(haystacks[:limit]),
            "memories": sum(len(haystack.turns) for haystack in haystacks[:limit]),
            "quality": quality(benchmark, asked.own),
            "latency_ms": latency(asked),
        } | ({} if setup.order_only else {"knowing": knowing(asked)})
    return figures


def made(name: str) -> Any:
    """What `module:Class` names, made without arguments."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)()


def configured(embedder: str, reranker: str | None, limit: int | None) -> Setup:
    """The keyword arguments that a choice of embedder and reranker stands for, under a name that tells runs apart."""
    options: dict[str, Any] = {}
    if embedder != "default":
        options["embedder"] = None if embedder == "none" else made(embedder) if ":" in embedder else embedder
    if reranker:
        options["reranker"] = made(reranker)
    second = {None: "", RERANKER: " + reranker"}.get(reranker, f" + reranker {reranker}")
    return Setup(f"{embedder}{second}{f' (first {limit})' if limit else ''}", options)


def of_kinds(folder: Path | None, setup: Setup, without: str | None, *, misses: bool) -> dict[str, Any]:
    """The figures of the sets of every kind; without a signal, or each of them in turn, those of the order alone."""
    haystacks = load(folder, LOCOMO) if folder else []
    turns = [turn.text for one in haystacks for turn in one.turns]
    if without:
        chosen = kinds.signals() if without == "all" else [without]
        return {"ablation": kinds.ablated(turns, [None, *chosen], **setup.options)}
    found = kinds.outcomes(turns, **setup.options)
    if misses:
        print("\n".join(kinds.misses(found)), file=sys.stderr)
    others = f"{len(turns):,} turns of LoCoMo, then made-up sentences" if turns else "made-up sentences"
    return {"others": others} | kinds.measure(found)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the files of LoCoMo and LongMemEval are")
    parser.add_argument(
        "--embedder", default="default", help="default, none, a name that open() knows, or module:Class"
    )
    parser.add_argument("--reranker", nargs="?", const=RERANKER, help="look again: ours, or module:Class")
    parser.add_argument("--only", choices=[KINDS, LOCOMO, LONGMEMEVAL], help="one of the benchmarks")
    parser.add_argument("--without", metavar="SIGNAL", help="rank the kinds without a signal; all: each in turn")
    parser.add_argument("--misses", action="store_true", help="list the questions without an answer in the first three")
    parser.add_argument("--order-only", action="store_true", help="no thresholds and no foreign questions")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"), help="where the page goes")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON and write no page")
    parser.add_argument("--limit", type=int, help="only the first so many haystacks, for a quick look")
    parser.add_argument("--dump", type=Path, help="write what every score was made of into this file, as JSON lines")
    arguments = parser.parse_args()
    setup = configured(arguments.embedder, arguments.reranker, arguments.limit)
    benchmarks = [one for one in (KINDS, LOCOMO, LONGMEMEVAL) if arguments.only in (None, one)]
    figures: dict[str, Any] = {}
    if KINDS in benchmarks:
        figures[KINDS] = of_kinds(arguments.folder, setup, arguments.without, misses=arguments.misses)
    if arguments.folder and not arguments.without:
        with ExitStack() as stack:
            if arguments.dump:
                setup = replace(setup, dump=stack.enter_context(arguments.dump.open("w", encoding="utf-8")))
            setup = replace(setup, order_only=arguments.order_only)
            figures |= measure(arguments.folder, setup, [one for one in benchmarks if one != KINDS], arguments.limit)
    if arguments.json:
        print(json.dumps(quality_report.plain(figures), indent=1, ensure_ascii=False))
    else:
        print(quality_report.update(arguments.out, setup.name, figures))


if __name__ == "__main__":
    main()
