"""The store on a PostgreSQL server: any number of processes and machines."""

from recollect.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
