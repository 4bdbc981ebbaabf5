"""The embedded store, in one SQLite file.

``schema`` the tables, ``connections`` opening and pooling, ``commit`` grouping writers, ``journal`` appending,
``rows`` values as rows, ``queries`` filters as SQL, ``reads`` and ``store`` the two halves of the store, ``doctor``
checking and mending.
"""

from recollect.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
