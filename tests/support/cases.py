"""Many cases in one test: its failure names every case that fails, and says how."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import pytest

LONGEST_NAME = 100


class Case:
    """Keeps what goes wrong inside its `with` block, so that the other cases are tried too."""

    def __init__(self, name: tuple[object, ...], wrong: list[str]) -> None:
        self._name = name
        self._wrong = wrong

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception | pytest.fail.Exception):
            return False
        name = " ".join(map(repr, self._name))
        line = trace.tb_lineno if trace else 0
        self._wrong.append(f"{name[:LONGEST_NAME]}: line {line}, {type(error).__name__}: {error}")
        return True


@contextmanager
def every_case() -> Iterator[Callable[..., Case]]:
    """Gives a function that makes a `with` block for the case of a name; fails at the end if any case did."""
    wrong: list[str] = []
    yield lambda *name: Case(name, wrong)
    if wrong:
        pytest.fail("\n".join((f"wrong cases: {len(wrong)}", *wrong)), pytrace=False)
