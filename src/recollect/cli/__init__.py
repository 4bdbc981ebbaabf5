"""The command ``recollect``: a thin edge over the table of verbs."""

import os
import sys


def main() -> None:
    """Run the command line of this process, and end it with an exit code that says how it went."""
    # A command multiplies no large matrices: starting a thread for each core takes longer than all it does.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from recollect.cli.app import run  # lazy: the variable must stand before numpy is loaded

    sys.exit(run(sys.argv[1:]))
