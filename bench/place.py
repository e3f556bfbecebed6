"""Where a run happens: a temporary embedded server, or separate databases on a given one."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from trunkline import schema
from trunkline.embedded import acquire
from trunkline.embedded.server import INSTALLER

__all__ = ["TASK", "Place", "open_place"]

TASK = "noop"

# Producers of all products are connected at the same time, each with ten connections or more.
_CONNECTIONS = {"max_connections": "300"}

# Durability of production; memory and log size as on the machine of the baseline figures.
_SETTINGS = {
    **_CONNECTIONS,
    "fsync": "on",
    "full_page_writes": "on",
    "max_wal_size": "8GB",
    "shared_buffers": "1GB",
    "synchronous_commit": "on",
}
_DROP_TIMEOUT = 60.0
_END_SESSIONS = """
select pg_terminate_backend(a.pid)
from pg_stat_activity as a
where a.datname = %s and a.usename = current_user
"""

_INSTALL = "import os; from trunkline import schema; schema.install(os.environ['TRUNKLINE_DSN'])"

# For a run that only checks that the code works.
_HASTE = {
    **_CONNECTIONS,
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A server and the prefix of our databases. Everything runs as one login."""

    dsn: str
    prefix: str
    # The folder of the measured package; None: the one that the bench itself imports.
    sources: Path | None = None
    # The same server, with the version that this one is compared with.
    before: "Place | None" = None

    @property
    def python_path(self) -> dict[str, str]:
        """The environment that makes a process import the measured package."""
        return {} if self.sources is None else {"PYTHONPATH": str(self.sources)}

    def dsn_of(self, database: str) -> str:
        return make_conninfo(self.dsn, dbname=f"{self.prefix}_{database}")

    @property
    def facts(self) -> dict[str, str | int]:
        """Facts that the figures depend on."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            row = connection.execute(
                """
                select current_setting('server_version'), current_setting('shared_buffers'),
                  current_setting('fsync'), current_setting('synchronous_commit')
                """
            ).fetchone()
        assert row is not None  # noqa: S101
        return {
            "server_version": row[0],
            "shared_buffers": row[1],
            "fsync": row[2],
            "synchronous_commit": row[3],
            "cores": os.cpu_count() or 0,
        }

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """Copy the prepared database, yield its connection string, drop it afterwards."""
        copy = sql.Identifier(f"{self.prefix}_{name}")
        template = sql.Identifier(f"{self.prefix}_template")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {} template {}").format(copy, template))
        try:
            yield self.dsn_of(name)
        finally:
            self.drop(name)

    @contextmanager
    def empty_database(self, name: str) -> Iterator[str]:
        """Create an empty database, drop it afterwards."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            new = sql.Identifier(f"{self.prefix}_{name}")
            connection.execute(sql.SQL("create database {}").format(new))
        try:
            yield self.dsn_of(name)
        finally:
            self.drop(name)

    def prepare(self) -> None:
        """Create the template of the other databases."""
        name = sql.Identifier(f"{self.prefix}_template")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(name))
        dsn = self.dsn_of("template")
        if self.sources is None:
            schema.install(dsn)
        else:
            _run_install(self.python_path, dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("select trunkline.register_task(p_task => %s)", (TASK,))
            connection.execute("select trunkline.maintain_partitions()")

    def drop(self, name: str) -> None:
        # Not WITH (FORCE), which needs the right to end an autovacuum worker. Without it, the
        # server cancels such a worker and waits a few seconds, which may not be enough.
        database = f"{self.prefix}_{name}"
        drop = sql.SQL("drop database if exists {}").format(sql.Identifier(database))
        give_up = time.monotonic() + _DROP_TIMEOUT
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            # Only a failed measure leaves sessions behind.
            connection.execute(_END_SESSIONS, (database,))
            while True:
                try:
                    connection.execute(drop)
                except psycopg.errors.ObjectInUse:
                    if time.monotonic() > give_up:
                        raise
                else:
                    return


@contextmanager
def open_place(
    dsn: str | None,
    bindir: Path | None = None,
    *,
    durable: bool = True,
    before: Path | None = None,
) -> Iterator[Place]:
    """Yield a place with the schema installed; afterwards only our roles remain.

    ``before`` is the folder of another version of the package, for a second set of databases.
    """
    with ExitStack() as stack:
        if dsn is None:
            dsn = stack.enter_context(_embedded(bindir, _SETTINGS if durable else _HASTE))
        prefix = f"trunkline_bench_{uuid.uuid4().hex[:8]}"
        other = None
        if before is not None:
            other = stack.enter_context(_prepared(Place(dsn, f"{prefix}_before", before)))
        yield stack.enter_context(_prepared(Place(dsn, prefix, before=other)))


@contextmanager
def _prepared(place: Place) -> Iterator[Place]:
    try:
        place.prepare()
        yield place
    finally:
        place.drop("template")


def _run_install(python_path: Mapping[str, str], dsn: str) -> None:
    """Install the schema of another version with its own code."""
    subprocess.run(
        [sys.executable, "-c", _INSTALL],
        env={**os.environ, **python_path, "TRUNKLINE_DSN": dsn},
        check=True,
    )


@contextmanager
def _embedded(bindir: Path | None, settings: Mapping[str, str]) -> Iterator[str]:
    # Short, because paths of Unix sockets are limited.
    home = Path(tempfile.mkdtemp(prefix="trunkline-bench-"))
    try:
        with acquire(home, bindir=bindir, settings=settings) as server:
            with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
                login = sql.Identifier(INSTALLER)
                connection.execute(sql.SQL("alter role {} createdb").format(login))
                connection.execute(sql.SQL("grant pg_checkpoint to {}").format(login))
            yield server.dsn
    finally:
        shutil.rmtree(home, ignore_errors=True)
