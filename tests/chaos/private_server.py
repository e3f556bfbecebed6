"""A server of its own for tests that stop, kill or starve it; the others are shared."""

import os
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import DEBIAN_15, Server
from tests.support.waiting import until
from trunkline.embedded import EmbeddedServer, acquire
from trunkline.embedded.server import INSTALLER

__all__ = ["PrivateServer", "running"]

# Commits must survive a kill -9, so they are written at once; the machine itself does not crash.
_SETTINGS = {
    "autovacuum_naptime": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
}


class PrivateServer:
    """A server that can be stopped, killed and started again under the same address."""

    def __init__(self, embedded: EmbeddedServer, major: int) -> None:
        self._embedded = embedded
        self.server = Server(
            major, embedded.superuser_dsn, embedded.dsn, bindir=str(embedded.bindir)
        )

    @property
    def data(self) -> Path:
        return self._embedded.folder.data

    @property
    def log(self) -> str:
        return self._embedded.folder.log.read_text(encoding="utf-8", errors="replace")

    @property
    def up(self) -> bool:
        return self._embedded.pid is not None

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT is fast, SIGQUIT immediate, SIGKILL without any farewell."""
        pid = self._embedded.pid
        assert pid is not None, "the server is down already"
        os.kill(pid, number)
        until(lambda: not self.up, "the server is down")

    def start(self) -> None:
        """Start it, waiting for what is left of the last one, and for its recovery."""
        self._embedded.ensure_running()

    @contextmanager
    def database(self, *, tablespace: str = "pg_default") -> Iterator[Database]:
        """Make a fresh database with the schema; the server may be restarted meanwhile."""
        name = f"test_{uuid.uuid4().hex}"
        self._administer(
            sql.SQL("create database {} template {} tablespace {} owner {}").format(
                sql.Identifier(name),
                sql.Identifier(databases.ensure_template(self.server)),
                sql.Identifier(tablespace),
                sql.Identifier(INSTALLER),
            )
        )
        made = Database(self.server, name)
        try:
            yield made
        finally:
            made.close()
            self.start()
            self._administer(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def _administer(self, statement: sql.Composed) -> None:
        dsn = self.server.dsn("postgres", superuser=True)
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(statement)


@contextmanager
def running(
    home: Path, major: int, settings: Mapping[str, str] | None = None
) -> Iterator[PrivateServer]:
    bindir = DEBIAN_15 if major == 15 else None
    with acquire(home, bindir=bindir, settings={**_SETTINGS, **(settings or {})}) as embedded:
        with psycopg.connect(embedded.superuser_dsn, autocommit=True) as connection:
            connection.execute(f"alter role {INSTALLER} createdb")
        yield PrivateServer(embedded, major)
