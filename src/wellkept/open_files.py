"""A process that has no file descriptors left: it is a failure of the store, whichever file was to be opened."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from wellkept.errors import StoreError

NUMBERS = frozenset({errno.EMFILE, errno.ENFILE})


def too_many(error: BaseException) -> StoreError | None:
    """The error to raise instead, if too many open files are the cause; modules imported on demand are files, too.

    >>> too_many(OSError(errno.EMFILE, "Too many open files")).code
    'PROVIDER_ERROR'
    >>> too_many(FileNotFoundError(errno.ENOENT, "No such file")) is None
    True
    """
    if isinstance(error, StoreError):
        return error if error.details.get("errno") in NUMBERS else None
    if isinstance(error, ImportError):  # the loader of extension modules tells no number
        return refused() if none_left() else None
    return refused() if isinstance(error, OSError) and error.errno in NUMBERS else None


@contextmanager
def told() -> Iterator[None]:
    """Raise the typed error where something is imported on demand.

    >>> with told():
    ...     raise OSError(errno.EMFILE, "Too many open files")
    Traceback (most recent call last):
    ...
    wellkept.errors.StoreError: this process has too many open files; nothing was changed (close files or databases \
that are not needed, or raise the limit (ulimit -n), and try again)
    """
    try:
        yield
    except (OSError, ImportError) as error:
        instead = too_many(error)
        if instead is None or instead is error:
            raise
        raise instead from error


def refused() -> StoreError:
    """The error of a process that may not open another file."""
    return StoreError(
        "this process has too many open files; nothing was changed",
        details={"errno": errno.EMFILE},
        hint="close files or databases that are not needed, or raise the limit (ulimit -n), and try again",
    )


def none_left() -> bool:
    """Whether no file can be opened now.

    >>> none_left()
    False
    """
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in NUMBERS
    return False
