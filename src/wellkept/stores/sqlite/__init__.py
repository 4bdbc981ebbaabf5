"""The embedded store, in one SQLite file.

``store`` the bundle, ``file`` what its parts share, ``journal``, ``records`` and ``images`` the parts. Below them:
``transaction`` appending, ``commit`` group commit, ``statements`` and ``queries`` the SQL of reads, ``rows`` values as
rows, ``embedding`` later vectors, ``projections`` and ``doctor`` checks and repairs, ``connections`` opening and
pooling, ``schema`` the tables and the steps between their schemas, ``migration`` taking a file to another one.
"""

from wellkept.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
