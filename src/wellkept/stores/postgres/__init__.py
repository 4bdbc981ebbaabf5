"""The store on a PostgreSQL server: any number of processes and machines."""

from wellkept.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
