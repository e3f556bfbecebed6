"""What is compared: a product that can be had and opened, and an opened one, a contender."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from bench.cpu import parent_of
from bench.fill import checkpoint, connect
from bench.place import Place
from bench.rivals.environment import EnvironmentMissing

__all__ = [
    "ROOT",
    "Contender",
    "EnvironmentMissing",
    "PostgresContender",
    "Product",
    "libpq_variables",
]

ROOT = Path(__file__).parents[2]

_DEAD_TUPLES = """
select coalesce(sum(n_dead_tup), 0)::bigint
from pg_stat_user_tables
"""


class Contender(ABC):
    """An opened product: the commands of its processes, and how its books are checked."""

    def __init__(
        self,
        *,
        key: str,
        name: str,
        worker: Sequence[str],
        producer: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        # Part of the names of its figures.
        self.key = key
        self.name = name
        self.worker = worker
        # Speaks the orders of `bench.apps.producing`.
        self.producer = producer
        # Where its processes find their server, as variables.
        self.environment = environment

    def workers(self, processes: int) -> Sequence[Sequence[str]]:
        """Give the commands that together are so many worker processes."""
        return [self.worker] * processes

    @abstractmethod
    def is_empty(self) -> bool:
        """Tell whether nothing waits or runs."""

    @abstractmethod
    def ended(self) -> tuple[int, int] | None:
        """Give the recorded ends and of how many jobs; nothing where no row is kept of them."""

    @abstractmethod
    def forget(self) -> None:
        """Remove every job, finished ones too, and settle."""

    @abstractmethod
    def dead_tuples(self) -> int | None:
        """Count the dead rows in its database; nothing outside of PostgreSQL."""

    @abstractmethod
    def server_pids(self) -> list[int]:
        """Give the root processes of its server; empty if that runs on another machine."""

    def settle(self) -> None:  # noqa: B027 - not every server has something to do
        """Do at once what the server would do by itself some time after jobs came in."""

    def log_position(self) -> int | None:
        """Give how many bytes the server's log has come to; nothing where there is none."""
        return None


class PostgresContender(Contender):
    """The usual one: a database, and three statements."""

    def __init__(
        self,
        *,
        key: str,
        name: str,
        dsn: str,
        worker: Sequence[str],
        producer: Sequence[str],
        is_empty: LiteralString,
        # Selects the recorded ends, and of how many jobs; None where no row is kept of them.
        ended: LiteralString | None,
        forget: LiteralString,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            key=key,
            name=name,
            worker=worker,
            producer=producer,
            environment=libpq_variables(dsn) if environment is None else environment,
        )
        self.dsn = dsn
        self._is_empty = is_empty
        self._ended = ended
        self._forget = forget
        self._connection: psycopg.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give its own connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connection(self) -> psycopg.Connection:
        """The connection that looks at it; kept, so that a look costs one statement."""
        if self._connection is not None and not _is_usable(self._connection):
            self.close()
        if self._connection is None:
            self._connection = connect(self.dsn)
        return self._connection

    def is_empty(self) -> bool:
        row = self.connection.execute(self._is_empty).fetchone()
        return row is not None and bool(row[0])

    def ended(self) -> tuple[int, int] | None:
        if self._ended is None:
            return None
        ends, jobs = self.connection.execute(self._ended).fetchone() or (0, 0)
        return int(ends), int(jobs)

    def forget(self) -> None:
        self.connection.execute(self._forget, prepare=False)
        self.settle()

    def settle(self) -> None:
        self.connection.execute("vacuum analyze", prepare=False)
        checkpoint(self.connection)

    def dead_tuples(self) -> int | None:
        # Only our own session's counts; those of others are there once their connection has ended.
        self.connection.execute("select pg_stat_force_next_flush()")
        row = self.connection.execute(_DEAD_TUPLES).fetchone()
        return int(row[0]) if row is not None else None

    def log_position(self) -> int | None:
        row = self.connection.execute(
            "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
        ).fetchone()
        return int(row[0]) if row is not None else None

    def server_pids(self) -> list[int]:
        with contextlib.suppress(OSError, ValueError):
            parent = parent_of(self.connection.info.backend_pid)
            # A server elsewhere has a process of that number too, but not one of this name here.
            if "postgres" in Path(f"/proc/{parent}/comm").read_text(encoding="utf-8"):
                return [parent]
        return []


@dataclass(frozen=True, slots=True)
class Product:
    """A queue that can be compared."""

    # Names its figures, and its module in this package.
    key: str
    name: str
    # "Python", "JavaScript" or "SQL"; some goals are about the best in Python.
    language: str
    # How it is run here, in one line.
    settings: str
    # Installs what it needs; raises EnvironmentMissing with the reason where that is impossible.
    prepare: Callable[[], None]
    versions: Callable[[], dict[str, str]]
    # Makes its database and tables, and removes them afterwards.
    open: Callable[[Place], AbstractContextManager[Contender]]
    # Jobs a second that one worker process drains, roughly: the size of its drains follows from it.
    pace: int


def libpq_variables(dsn: str) -> dict[str, str]:
    """Give the variables by which libpq and its like find a database."""
    parts = conninfo_to_dict(dsn)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    names["dbname"] = "DATABASE"
    return {f"PG{names[part]}": str(value) for part, value in parts.items() if part in names}


def _is_usable(connection: psycopg.Connection) -> bool:
    """Tell whether it is open, and not left in the middle of a statement by a time limit."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
