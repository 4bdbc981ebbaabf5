"""One question asked in many cases: the answer names every case that fails, not only the first."""

from types import TracebackType

import pytest


class Cases:
    """Asks all cases, and at the end fails with the name of each case that failed and with what it said.

    >>> with Cases() as cases:
    ...     for text in ("tea", "coffee"):
    ...         with cases.case(text):
    ...             assert text.isalpha()
    """

    def __init__(self) -> None:
        self._asked = 0
        self._failed: list[tuple[str, BaseException]] = []

    def __enter__(self) -> "Cases":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            assert self._asked, "no case was asked"
        elif self._failed and isinstance(error, Exception):
            self._failed.append(("beyond the cases", error))
        # A skip after a failure does not make it good; an interrupt ends the test as it is.
        if self._failed and (error is None or isinstance(error, (Exception, pytest.skip.Exception))):
            told = "\n".join(f"{name}: {_first_lines(failure)}" for name, failure in self._failed)
            raise AssertionError(f"{len(self._failed)} of {self._asked} cases failed\n{told}") from self._failed[0][1]

    def case(self, *name: object) -> "_Case":
        """Ask one case: what fails inside is noted under the name, and the next case follows."""
        self._asked += 1
        return _Case(name, self._failed)


class _Case:
    """Notes an error, or a ``pytest.fail``, and lets all else pass: skips and interrupts end the test."""

    def __init__(self, name: tuple[object, ...], failed: list[tuple[str, BaseException]]) -> None:
        self._name, self._failed = name, failed

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, (Exception, pytest.fail.Exception)):
            return False
        self._failed.append((" ".join(map(_shown, self._name))[:200], error))
        return True


def _shown(part: object) -> str:
    """Part of a name: a text as it is, if it can be read."""
    return part if isinstance(part, str) and part.strip() and part.isprintable() else ascii(part)


def _first_lines(error: BaseException) -> str:
    """The kind of an error and the first lines of its text, which for an assertion name what was compared."""
    return "\n    ".join(f"{type(error).__name__}: {error}".splitlines()[:6])
