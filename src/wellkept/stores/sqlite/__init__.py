"""The embedded store, in one SQLite file.

``store`` the bundle, ``file`` what its parts share, ``journal``, ``records`` and ``images`` the parts. Below them:
``transaction`` appending, ``commit`` group commit, ``statements`` and ``queries`` the SQL of reads, ``rows`` values as
rows, ``embedding`` later vectors, ``projections`` and ``doctor`` checks and repairs, ``connections`` opening and
pooling, ``schema``, ``schema_5`` and ``old_words`` the tables and their migrations.
"""

from wellkept.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
