"""What is compared: a product, and a contender, which is a product opened for a run."""

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
    """An opened product: the commands of its processes, and the checks of its tables."""

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
        # Follows the orders of `bench.apps.producing`.
        self.producer = producer
        # Environment variables with which its processes find their server.
        self.environment = environment

    def workers(self, processes: int) -> Sequence[Sequence[str]]:
        """Return the commands that together start this many worker processes."""
        return [self.worker] * processes

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether no job waits or runs."""

    @abstractmethod
    def ended(self) -> tuple[int, int] | None:
        """Return the number of recorded ends and of their jobs; None if it records no ends."""

    @abstractmethod
    def forget(self) -> None:
        """Remove every job, including finished ones, and vacuum."""

    @abstractmethod
    def dead_tuples(self) -> int | None:
        """Count the dead rows in its database; None outside PostgreSQL."""

    @abstractmethod
    def server_pids(self) -> list[int]:
        """Return the root processes of its server; empty if it runs on another machine."""

    def settle(self) -> None:  # noqa: B027 - optional
        """Do the server's background work for new jobs now."""

    def log_position(self) -> int | None:
        """Return the size of the server's log so far in bytes; None if it has none."""
        return None


class PostgresContender(Contender):
    """The usual contender: a database, and three statements."""

    def __init__(
        self,
        *,
        key: str,
        name: str,
        dsn: str,
        worker: Sequence[str],
        producer: Sequence[str],
        is_empty: LiteralString,
        # Selects the number of recorded ends and of their jobs; None if no rows are kept.
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
        """Close its own connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connection(self) -> psycopg.Connection:
        """The connection for checks; it is kept, so that a check costs one statement."""
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
        # Flushes only our session's counts; other sessions flush theirs when they end.
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
            # If the server is elsewhere, this pid may exist here, but with another name.
            if "postgres" in Path(f"/proc/{parent}/comm").read_text(encoding="utf-8"):
                return [parent]
        return []


@dataclass(frozen=True, slots=True)
class Product:
    """A queue that can be compared."""

    # Part of the names of its figures; the name of its module in this package.
    key: str
    name: str
    # "Python", "JavaScript" or "SQL"; some goals are about the best in Python.
    language: str
    # Its settings in this bench, in one line.
    settings: str
    # Installs what it needs, or raises EnvironmentMissing with the reason.
    prepare: Callable[[], None]
    versions: Callable[[], dict[str, str]]
    # Creates its database and tables, and removes them afterwards.
    open: Callable[[Place], AbstractContextManager[Contender]]
    # Rough drain rate of one worker process in jobs per second, which sets the size of its drains.
    pace: int


def libpq_variables(dsn: str) -> dict[str, str]:
    """Return the PG* variables of a database."""
    parts = conninfo_to_dict(dsn)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    names["dbname"] = "DATABASE"
    return {f"PG{names[part]}": str(value) for part, value in parts.items() if part in names}


def _is_usable(connection: psycopg.Connection) -> bool:
    """Return whether it is open, and not interrupted within a statement by a time limit."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
