"""The command ``recollect``: a thin edge over the table of verbs."""

import gc
import os
import sys
from pathlib import Path

_RARELY = 200_000  # objects: what loading modules makes is no garbage, and looking for some takes a tenth of a start


def main() -> None:
    """Run the command line of this process, and end it with an exit code that says how it went."""
    # A command multiplies no large matrices: starting a thread for each core takes longer than all it does.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_RARELY)
    _fill_streams()
    try:
        from recollect.cli.app import run  # lazy: the variable must stand before numpy is loaded

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130  # before there was anything to stop
    gc.freeze()  # nor is there garbage to look for at the end, when all of it goes
    sys.exit(code)


def _fill_streams() -> None:
    """A shell can start a program without its streams (``>&-``); then there is nothing to read and nobody to tell."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open until the end
