"""The store in plain files: a folder of JSON Lines that people, grep, git and jq can read.

``names`` owners as folders, ``lines`` values as lines, ``disk`` files and the errors of the system, ``commits`` which
bytes count, ``commit`` one change of several files, ``loading`` from files to RAM, ``answers`` and ``searching`` what
is asked of it, ``locks`` between processes, ``store`` all of it together.
"""

from recollect.stores.jsonl.store import JsonlStore

__all__ = ["JsonlStore"]
