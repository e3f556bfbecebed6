"""A platform such as Supabase: its public roles get rights on every new object."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support import databases, servers
from tests.support.databases import Database
from tests.support.servers import Server
from trunkline.embedded import acquire

__all__ = ["GATEWAY", "PUBLIC", "platform_server", "project"]

PUBLIC = ("anon", "authenticated", "service_role")
# The login of the platform that sets the claims of callers.
GATEWAY = "authenticator"
_STRANGER = "somebody"


@contextmanager
def platform_server(like: Server) -> Iterator[Server]:
    """Start a server that has the platform's roles.

    Roles belong to the whole server, and an installation grants and revokes rights of the
    platform's roles if they exist. On the suite's servers, they would affect the installations of
    other tests.
    """
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-", dir=servers.memory()) as folder,
        acquire(Path(folder) / "pg", bindir=like.bindir, settings=servers.SETTINGS) as embedded,
    ):
        with psycopg.connect(embedded.superuser_dsn, autocommit=True) as connection:
            for role in (*PUBLIC, _STRANGER):
                connection.execute(f"create role {role} nologin".encode())
            connection.execute(
                f"create role {GATEWAY} login noinherit in role {', '.join(PUBLIC)}".encode()
            )
        server = Server(like.major, embedded.superuser_dsn, embedded.dsn, like.bindir)
        servers.let_create_databases(server)
        yield server


@contextmanager
def project(server: Server, *public: str) -> Iterator[Database]:
    """Create a database in which the public roles get all rights on the owner's objects."""
    with databases.fresh(server, databases.ensure_template(server)) as database:
        superuser = database.superuser()
        for kind in ("tables", "sequences", "functions", "schemas"):
            superuser.execute(
                f"alter default privileges for role trunkline_owner grant all on {kind}"
                f" to {', '.join(public)}".encode()
            )
        yield database
