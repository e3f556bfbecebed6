"""Empty databases, and a server without our roles."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.support.servers import Server
from trunkline.embedded import EmbeddedServer, acquire

NewDatabase = Callable[[], str]


@pytest.fixture
def new_database(server: Server) -> Iterator[NewDatabase]:
    """Return a function that creates empty databases, which are dropped at the end."""
    names: list[str] = []

    def create() -> str:
        name = f"empty_{uuid.uuid4().hex}"
        with psycopg.connect(server.installer_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        names.append(name)
        return server.dsn(name)

    yield create
    _drop(server.superuser_dsn, names)


@pytest.fixture
def empty(new_database: NewDatabase) -> str:
    """The connection string of one empty database."""
    return new_database()


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server that no other test uses: roles can be dropped there, and given wrong attributes."""

    embedded: EmbeddedServer
    major: int

    def dsn(self, database: str, *, user: str | None = None) -> str:
        """Return the connection string of the installer, or of the given user."""
        installer = self.embedded.dsn.replace("@/trunkline?", f"@/{database}?")
        return installer.replace("trunkline_installer@", f"{user}@") if user else installer

    def superuser(self, database: str = "postgres") -> psycopg.Connection:
        dsn = self.embedded.superuser_dsn.replace("@/trunkline?", f"@/{database}?")
        return psycopg.connect(dsn, autocommit=True)

    def create(self, *databases: str, owner: str = "trunkline_installer") -> None:
        """Create databases that the installer owns."""
        with self.superuser() as connection:
            for name in databases:
                connection.execute(
                    sql.SQL("create database {} owner {}").format(
                        sql.Identifier(name), sql.Identifier(owner)
                    )
                )

    def roles(self) -> set[str]:
        """Return those of our roles that exist."""
        with self.superuser() as connection:
            rows = connection.execute(
                "select rolname from pg_roles"
                " where starts_with(rolname, 'trunkline_') and rolname <> 'trunkline_installer'"
            )
            return {name for (name,) in rows}


@pytest.fixture(scope="module")
def _own_embedded(server: Server) -> Iterator[EmbeddedServer]:
    settings = {"fsync": "off", "synchronous_commit": "off", "max_connections": "40"}
    # The path is short, because the path of a Unix socket must be.
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg", bindir=server.bindir, settings=settings) as embedded,
    ):
        yield embedded


@pytest.fixture
def own_server(server: Server, _own_embedded: EmbeddedServer) -> Iterator[OwnServer]:
    """A server that only this test uses, without any of our roles."""
    own = OwnServer(_own_embedded, server.major)
    with own.superuser() as connection:
        databases = _all(connection, "select datname from pg_database")
        roles = _all(connection, "select rolname from pg_roles")
    assert not own.roles()
    yield own
    with own.superuser() as connection:
        new = _all(connection, "select datname from pg_database") - databases
        _drop(own.embedded.superuser_dsn, sorted(new))
        for role in sorted(_all(connection, "select rolname from pg_roles") - roles):
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def _all(connection: psycopg.Connection, query: LiteralString) -> set[str]:
    return {name for (name,) in connection.execute(query)}


def _drop(superuser_dsn: str, names: list[str]) -> None:
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        for name in names:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )
