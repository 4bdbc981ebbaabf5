"""Fit the weights of ranking, the gate and the chance of a hit, on every kind of memory together.

    python benchmarks/fit.py /a/folder                             # the built-in embedder; LoCoMo and LongMemEval there
    python benchmarks/fit.py /a/folder --embedder none             # words alone; or bge, or module:Class
    python benchmarks/fit.py /a/folder --cache signals.npz         # keep what searches saw: the next fit takes seconds
    python benchmarks/fit.py /a/folder --write                     # put the weights into wellkept/recall/weights.py

Every group of stores weighs the same. Figures are of a five-fold cross-validation in which all stores of a world or of
a conversation are left out together; the weights that are written are fitted to everything. Later memories are not
lifted above earlier ones here: `benchmarks/quality.py` shows what a search gives.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: on a busy machine more threads wait for each other

import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

from benchmarks import fit_cases, fit_models, kinds, quality
from benchmarks.fit_cases import Case
from wellkept.recall import gate, ranking, weights
from wellkept.recall.weights import Fitted

T = TypeVar("T")

Array = npt.NDArray[Any]
WEIGHTS = Path(weights.__file__)
MARK = "# -- written by benchmarks/fit.py --"
THRESHOLDS = (0.05, 0.1, 0.12, 0.15, 0.2, 0.3)


def fit(found: Sequence[Case], least: float) -> Fitted:
    """Everything, fitted to all cases: the gate and the chance to sums of weights that never saw their case."""
    summed, known = validated(found)
    return Fitted(
        model=fit_models.model(found),
        gate=fit_models.judge(found, summed, least),
        chance=fit_models.chance(found, summed, known),
    )


def validated(found: Sequence[Case]) -> tuple[list[Array], list[float]]:
    """The sums of each case, and the gate's chance, by fits that did not see its world."""
    summed = fit_models.left_out(
        found,
        lambda inside: fit_models.slow([found[place] for place in inside]),
        lambda weights, place: fit_models.sums(found[place], weights),
    )
    known = fit_models.left_out(
        found,
        lambda inside: fit_models.judge([found[place] for place in inside], [summed[place] for place in inside]),
        lambda judge, place: gate.known(fit_models.evidence(found[place], summed[place]), judge),
    )
    return summed, known


def _at(some: Sequence[T], places: Iterable[int]) -> list[T]:
    return [some[place] for place in places]


def report(found: Sequence[Case], present: Fitted) -> Iterator[str]:
    """By group: the order, today's beside the fitted one; own questions left empty and foreign ones answered at some
    thresholds; the calibration error.
    """
    summed, known = validated(found)
    scores = fit_models.left_out(
        found,
        lambda inside: fit_models.chance(_at(found, inside), _at(summed, inside), _at(known, inside)),
        lambda chance, place: ranking.chances({"sum": summed[place]}, found[place].linked, known[place], chance).values,
    )
    before = [fit_models.sums(one, present.model.weights) for one in found]
    heads = [f"{one:.2f}" for one in THRESHOLDS]
    yield "| group | questions | hit@1 | R@10 | now hit@1 | R@10 | " + " | ".join(heads) + " | calibration error |"
    yield "| --- |" + " --- |" * (6 + len(THRESHOLDS))
    for name, places in fit_models.groups(found).items():
        own = [place for place in places if found[place].expected]
        cells = [
            f"{fit_models.percent([metric(found[place], by[place]) for place in own]):.1f}"
            for by in (before, summed)
            for metric in (fit_models.first, fit_models.recall)
        ]
        strange = [place for place in places if found[place].kind in fit_models.FOREIGN]
        for least in THRESHOLDS:
            empty = fit_models.percent([float(known[place] < least) for place in own])
            answered = fit_models.percent([float(known[place] >= least) for place in strange])
            cells.append(f"{empty:.1f} / {answered:.0f}")
        pairs = [
            (float(scores[place][row]), bool(found[place].right[row]))
            for place in places
            if found[place].kind != fit_cases.STRANGE
            for row in fit_models.shown(summed[place]).tolist()
        ]
        cells.append(f"{100 * kinds.calibration_error(pairs):.1f}")
        yield f"| {name} | {len(own)}, {len(strange)} | " + " | ".join(cells) + " |"


def source(sets: Mapping[str, Fitted]) -> str:
    """The module of weights with these sets, unformatted."""
    text = WEIGHTS.read_text(encoding="utf-8")
    lines = [text[: text.index(MARK)] + MARK, "", "_SETS: Mapping[str, Fitted] = MappingProxyType({"]
    for name, one in sorted(sets.items()):
        model = ", ".join(
            f"{field}=MappingProxyType({dict(getattr(one.model, field))})" for field in ("weights", "first")
        )
        lines.append(f"{name!r}: Fitted(model=Model({model}), gate={one.gate!r}, chance={one.chance!r}),")
    return "\n".join([*lines, "})", ""])


def main() -> None:
    """Collect, fit, report, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where LoCoMo and LongMemEval are")
    parser.add_argument(
        "--embedder", default="default", help="default, none, a name that open() knows, or module:Class"
    )
    parser.add_argument(
        "--cache", type=Path, nargs="+", help="a file (.npz) for what searches saw; read if there is one"
    )
    parser.add_argument("--sample", type=int, default=1000, help="only so many haystacks of each benchmark")
    parser.add_argument("--least", type=float, default=0.12, help="the gate's threshold")
    parser.add_argument("--name", help=f"what the weights are for: {weights.USUAL}, or the embedder's own name")
    parser.add_argument("--write", action="store_true", help="put the weights into wellkept/recall/weights.py")
    arguments = parser.parse_args()
    found: list[Case] = []
    for path in arguments.cache or [None]:
        if path and path.exists():
            found += fit_cases.read(path)
        else:
            options = quality.configured(arguments.embedder, None, None).options
            found += fit_cases.collect(arguments.folder, options, arguments.sample)
            if path:
                fit_cases.write(path, found)
    name = arguments.name or found[0].embedder or weights.WORDS
    print("\n".join(report(found, weights.of(found[0].embedder or None))))
    fitted = fit(found, arguments.least)
    if arguments.write:
        WEIGHTS.write_text(source({**weights.known(), name: fitted}), encoding="utf-8")
    else:
        print(fitted)


if __name__ == "__main__":
    main()
