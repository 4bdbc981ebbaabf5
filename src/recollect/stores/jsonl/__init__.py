"""The store in plain files: a folder of JSON Lines that people, grep, git and jq can read.

The lines alone are the truth. ``folders`` and ``names`` owners as folders, ``lines`` versions as lines, ``order`` their
order from stamps, ``batches`` which of them count, ``owner_folder`` what was read of a folder, ``writing`` lines to
files, ``journal`` all of that as a journal, ``derived`` what can be deleted at any time, ``disk`` files and the errors
of the system, ``locks`` between processes, ``checks`` and ``edits`` what went wrong and what people wrote, ``legacy``
folders of 0.1.
"""

from recollect.stores.jsonl.store import JsonlStore

__all__ = ["JsonlStore"]
