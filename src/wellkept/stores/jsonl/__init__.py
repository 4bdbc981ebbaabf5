"""The store in plain files: a folder of JSON Lines that people, grep, git and jq can read.

The lines alone are the truth. ``names`` owners as folders, ``lines`` versions as lines, ``order`` which of them count
and in which order, ``owner_folder`` what was read of a folder, ``following`` what others wrote, ``writing`` an append,
``rewriting`` files that are replaced, ``journal`` all of that as a journal, ``records`` documents and leases,
``vectors`` and ``derived`` what can be deleted at any time, ``disk`` files and the errors of the system, ``locks``
between processes, ``checks`` and ``edits`` what went wrong and what people wrote, ``foreign`` the format of documents
that ours descends from.
"""

from wellkept.stores.jsonl.store import JsonlStore

__all__ = ["JsonlStore"]
