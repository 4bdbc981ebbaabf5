"""Wellkept on PostgreSQL beside LangGraph's PostgresStore and bare psycopg, on one server: read the ratios.

    make bench-postgres               # or: python benchmarks/postgres.py --scale 0.1

All run in one process and take turns, so that each meets the same noise. LangGraph takes part if the package
`langgraph-checkpoint-postgres` is installed in this environment. The server is that of the tests
(`tools/postgres_server.py`), waiting for the disk at every commit.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started as a script, it knows its own folder only

import wellkept
from tools.postgres_server import PostgresServer

DIMENSION = 256
WRITERS = 32
ROUNDS = 3
TOPICS = 200
BIG = "big"
_FILLED_AT_ONCE = 2_000
Item = tuple[str, str]
"""A key and a text."""


@lru_cache(maxsize=300)
def _topic(number: int) -> Any:
    return np.random.default_rng(number).standard_normal(DIMENSION)


def vector_of(text: str) -> list[float]:
    """A vector near those of the same topic. It costs the same for everybody."""
    noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSION)
    mixed = _topic(int(text.partition("topic")[2].split()[0])) + noise
    found: list[float] = (mixed / np.linalg.norm(mixed)).astype(np.float32).tolist()
    return found


def embed(texts: Sequence[str]) -> list[list[float]]:
    """The vectors of texts."""
    return [vector_of(text) for text in texts]


def item(number: int) -> Item:
    """A memory of twelve words, common and rare ones."""
    chosen = random.Random(number)
    said = [f"word{int(5_000 ** chosen.random())}" for _ in range(11)]
    return f"key-{number}", f"topic{number % TOPICS} {' '.join(said)}"


def pool(url: str, **settings: Any) -> Any:
    """Connections of a contestant."""
    try:
        made = import_module("psycopg_pool").ConnectionPool
    except ImportError:
        raise SystemExit("the other contestants need a pool: pip install psycopg-pool") from None
    return made(url, min_size=1, max_size=40, kwargs=settings, open=True)


class Contestant(ABC):
    """A store with vectors on a PostgreSQL server. Owners are names."""

    @abstractmethod
    def add(self, owner: str, one: Item) -> object:
        """Store one, durably."""

    @abstractmethod
    def add_many(self, owner: str, items: Sequence[Item]) -> object:
        """Store many."""

    def fill(self, owner: str, items: Sequence[Item]) -> None:
        """Store many by whatever way is fastest; not timed."""
        self.add_many(owner, items)

    def filled(self) -> None:  # noqa: B027  # most have nothing to do
        """After the last ``fill``."""

    @abstractmethod
    def get(self, owner: str, key: str) -> object:
        """Read one."""

    @abstractmethod
    def search(self, owner: str, text: str) -> Sequence[object]:
        """The ten best."""


class Wellkept(Contestant):
    """Through the public interface; search by words and vectors."""

    name, dimension = "benchmark-256", DIMENSION

    def __init__(self, url: str) -> None:
        self._memories = wellkept.open(f"{url}?pool_size=40", embedder=self)
        self._ids: dict[tuple[str, str], str] = {}
        self._views: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """As an embedder of Wellkept."""
        return embed(texts)

    def _view(self, owner: str) -> Any:
        return self._views.get(owner) or self._views.setdefault(owner, self._memories.view(user=owner))

    def add(self, owner: str, one: Item) -> object:
        self._ids[owner, one[0]] = self._view(owner).add(one[1]).id
        return None

    def add_many(self, owner: str, items: Sequence[Item]) -> object:
        made = self._view(owner).add_many([wellkept.NewMemory(content=text) for _, text in items])
        self._ids.update(((owner, key), memory.id) for (key, _), memory in zip(items, made, strict=True))
        return None

    def get(self, owner: str, key: str) -> object:
        return self._view(owner).get(self._ids[owner, key])

    def search(self, owner: str, text: str) -> Sequence[object]:
        return list(self._view(owner).search(text, limit=10, min_score=0))


class Bare(Contestant):
    """One table, one statement a call, vectors compared exactly: what a program would write by hand. No history, no
    words, no quotas.
    """

    def __init__(self, url: str) -> None:
        self._pool = pool(url, autocommit=True)
        with self._pool.connection() as connection:
            connection.execute(
                f"CREATE TABLE bare (owner text, key text, value text, vector vector({DIMENSION}),"
                " PRIMARY KEY (owner, key))"
            )

    def add(self, owner: str, one: Item) -> object:
        with self._pool.connection() as connection:
            values = (owner, *one, str(vector_of(one[1])))
            return connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s)", values)

    def add_many(self, owner: str, items: Sequence[Item]) -> object:
        with self._pool.connection() as connection, connection.cursor().copy("COPY bare FROM STDIN") as copy:
            for key, text in items:
                copy.write_row((owner, key, text, str(vector_of(text))))
        return None

    def filled(self) -> None:
        with self._pool.connection() as connection:
            connection.execute("VACUUM ANALYZE bare")

    def get(self, owner: str, key: str) -> object:
        with self._pool.connection() as connection:
            statement = "SELECT value FROM bare WHERE owner = %s AND key = %s"
            found: object = connection.execute(statement, (owner, key)).fetchone()
            return found

    def search(self, owner: str, text: str) -> Sequence[object]:
        with self._pool.connection() as connection:
            statement = "SELECT key, value FROM bare WHERE owner = %s ORDER BY vector <=> %s::vector LIMIT 10"
            found: list[object] = connection.execute(statement, (owner, str(vector_of(text)))).fetchall()
            return found


class LangGraph(Contestant):
    """LangGraph's PostgresStore with its defaults: vectors alone, by an HNSW index."""

    def __init__(self, url: str) -> None:
        store: Any = import_module("langgraph.store.postgres")
        rows: Any = import_module("psycopg.rows")
        self._put: Any = import_module("langgraph.store.base").PutOp
        self._pool = pool(url, autocommit=True, prepare_threshold=0, row_factory=rows.dict_row)
        self._store: Any = store.PostgresStore(self._pool, index={"dims": DIMENSION, "embed": embed})
        self._store.setup()

    def add(self, owner: str, one: Item) -> object:
        return self._store.put((owner,), one[0], {"text": one[1]})

    def add_many(self, owner: str, items: Sequence[Item]) -> object:
        # More in one statement than this is refused: it has a parameter for each value.
        for start in range(0, len(items), 500):
            some = items[start : start + 500]
            self._store.batch([self._put((owner,), key, {"text": text}) for key, text in some])
        return None

    def fill(self, owner: str, items: Sequence[Item]) -> None:
        """By COPY into its tables: through its own interface a hundred thousand would take ten minutes."""
        with self._pool.connection() as connection:
            connection.execute("DROP INDEX IF EXISTS store_vectors_embedding_idx")
            with connection.cursor().copy("COPY store (prefix, key, value) FROM STDIN") as copy:
                for key, text in items:
                    copy.write_row((owner, key, json.dumps({"text": text})))
            columns = "prefix, key, field_name, embedding"
            with connection.cursor().copy(f"COPY store_vectors ({columns}) FROM STDIN") as copy:
                for key, text in items:
                    copy.write_row((owner, key, "$", str(vector_of(text))))

    def filled(self) -> None:
        with self._pool.connection() as connection:
            connection.execute("SET maintenance_work_mem = '1GB'")
            connection.execute(
                "CREATE INDEX IF NOT EXISTS store_vectors_embedding_idx ON store_vectors"
                " USING hnsw (embedding vector_cosine_ops)"
            )
            connection.execute("VACUUM ANALYZE store")
            connection.execute("VACUUM ANALYZE store_vectors")

    def get(self, owner: str, key: str) -> object:
        return self._store.get((owner,), key)

    def search(self, owner: str, text: str) -> Sequence[object]:
        found: Sequence[object] = self._store.search((owner,), query=text, limit=10)
        return found


Call = Callable[[], object]
Contestants = dict[str, Contestant]
Figures = dict[str, dict[str, float]]


def opened(server: PostgresServer) -> Contestants:
    """Everybody who is here, each with a database of its own."""
    kinds: dict[str, Callable[[str], Contestant]] = {"wellkept": Wellkept, "langgraph": LangGraph, "bare": Bare}
    if find_spec("langgraph") is None:
        print("langgraph is not installed here, and does not take part", file=sys.stderr)
        del kinds["langgraph"]
    return {name: kind(server.create()) for name, kind in kinds.items()}


def per_second(calls: Sequence[Call], threads: int) -> float:
    """Calls a second, from so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        for _ in pool.map(lambda call: call(), calls):
            pass
        return len(calls) / (time.perf_counter() - started)


def in_ms(call: Call) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


class Benchmark:
    """Measures all contestants by turns."""

    def __init__(self, contestants: Contestants, scale: float) -> None:
        self._all = contestants
        self._scale = scale
        self._numbers = iter(range(10**7, 10**9))
        self.figures: Figures = {}

    def _note(self, figure: str, values: dict[str, float]) -> None:
        self.figures[figure] = values
        shown = ", ".join(f"{name} {value:,.2f}" for name, value in values.items())
        print(f"{figure}: {shown}", file=sys.stderr, flush=True)

    def _rates(self, figure: str, count: int, owners: int, threads: int) -> None:
        found: dict[str, list[float]] = {name: [] for name in self._all}
        for turn in range(-1, ROUNDS):  # the first turn makes connections, and is not counted
            for name, one in self._all.items():
                chosen = [(f"{figure}{place % owners}", item(next(self._numbers))) for place in range(count)]
                rate = per_second([partial(one.add, *each) for each in chosen], threads)
                found[name] += [rate] if turn >= 0 else []
        self._note(figure, {name: median(rates) for name, rates in found.items()})

    def _times(self, figure: str, calls: Callable[[Contestant], Sequence[Call]]) -> None:
        found: dict[str, list[float]] = {name: [] for name in self._all}
        for turn in zip(*(calls(one) for one in self._all.values()), strict=True):
            for name, call in zip(self._all, turn, strict=True):
                found[name].append(in_ms(call))
        self._note(figure, {name: median(times) for name, times in found.items()})

    def adding(self) -> None:
        """One at a time and together, on one owner and on many."""
        few, many = int(80 * self._scale), int(500 * self._scale)
        self._rates("add, 1 writer, one owner", few, 1, 1)
        self._rates("add, 1 writer, many owners", few, WRITERS, 1)
        self._rates("add, 32 writers, one owner", many, 1, WRITERS)
        self._rates("add, 32 writers, many owners", many, WRITERS, WRITERS)

    def _reading(self, count: int) -> None:
        name = f"{count:,}"
        asked = [item(number * 37 % count) for number in range(int(150 * self._scale))]
        self._times(f"get, {name}, ms", lambda one: [partial(one.get, BIG, key) for key, _ in asked])
        self._times(f"first search, {name}, ms", lambda one: [partial(one.search, BIG, asked[0][1])])
        self._times(f"search, {name}, ms", lambda one: [partial(one.search, BIG, text) for _, text in asked])

    def searching(self) -> None:
        """One owner of 10,000 and of 100,000, then a thousand owners of 100."""
        ten, hundred = int(10_000 * self._scale), int(100_000 * self._scale)
        items = [item(number) for number in range(hundred)]
        rates = {name: ten / in_ms(partial(one.add_many, BIG, items[:ten])) * 1000 for name, one in self._all.items()}
        self._note(f"batch of {ten:,}, a second", rates)
        self._filled()
        self._reading(ten)
        for one in self._all.values():
            for start in range(ten, hundred, _FILLED_AT_ONCE):
                one.fill(BIG, items[start : min(hundred, start + _FILLED_AT_ONCE)])
        self._filled()
        self._reading(hundred)
        owners = int(1_000 * self._scale)
        for one in self._all.values():
            for owner in range(owners):
                one.fill(f"owner{owner}", items[:100])
        self._filled()
        chosen = [(f"owner{number * 37 % owners}", items[number % 100][1]) for number in range(min(owners, 200))]
        for what in ("first search", "search"):
            self._times(
                f"{what}, {owners:,} owners of 100, ms", lambda one: [partial(one.search, *each) for each in chosen]
            )

    def _filled(self) -> None:
        for one in self._all.values():
            one.filled()


def table(figures: Figures) -> str:
    """All figures, and how many times as fast as the others Wellkept is."""
    names = list(next(iter(figures.values())))
    others = names[1:]
    lines = [
        f"| | {' | '.join(names)} | {' | '.join(f'times {name}' for name in others)} |",
        "| --- |" + " ---: |" * (len(names) + len(others)),
    ]
    for figure, values in figures.items():
        taken = figure.endswith("ms")
        ours = values["wellkept"]
        ratios = [values[name] / ours if taken else ours / values[name] for name in others]
        shown = " | ".join(f"{value:,.{2 if taken else 0}f}" for value in values.values())
        lines.append(f"| {figure} | {shown} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all contestants on one server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the work, such as 0.1")
    given = parser.parse_args()
    server = PostgresServer("shared_buffers=512MB")
    try:
        server.execute("CREATE EXTENSION vector", "template1")
        benchmark = Benchmark(opened(server), given.scale)
        benchmark.adding()
        benchmark.searching()
    finally:
        server.close()
    print(table(benchmark.figures))


if __name__ == "__main__":
    main()
