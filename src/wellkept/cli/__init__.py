"""The command ``wellkept``: a thin edge over the table of verbs."""

import gc
import os
import sys
from pathlib import Path

_RARELY = 200_000  # objects; loading modules makes no garbage, and collecting it takes a tenth of the start


def main() -> None:
    """Run the command line of this process, and exit with the code of the result."""
    # A command multiplies no large matrices; starting a thread for each core would take longer than the command.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_RARELY)
    _fill_streams()
    try:
        from wellkept.cli.app import run  # lazy: the variable must be set before numpy is loaded

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130  # interrupted while loading
    gc.freeze()  # the process ends: collecting garbage now would be wasted
    sys.exit(code)


def _fill_streams() -> None:
    """Replace streams that the shell closed (``>&-``) by the null device, so that reading and writing do not fail."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open until the end
