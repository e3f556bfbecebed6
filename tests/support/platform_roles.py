"""The roles of a platform such as Supabase, to which it gives every new object."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from tests.support.databases import Database
from tests.support.servers import Server

__all__ = ["generous_platform", "no_platform"]

# Roles are the server's: one test at a time makes and drops them.
_LOCK = 7_230_002
_DEPENDENT = """
select distinct d.datname
from pg_shdepend as s
join pg_database as d on d.oid = s.dbid
where s.refclassid = 'pg_authid'::regclass and s.refobjid = any(%s::text[]::regrole[]::oid[])
"""


@contextmanager
def generous_platform(database: Database, public: tuple[str, ...], *beside: str) -> Iterator[None]:
    """Make roles, of which the public ones get everything that the owner makes in this database."""
    roles = ", ".join((*public, *beside))
    superuser = database.superuser()
    with psycopg.connect(database.server.dsn("postgres", superuser=True), autocommit=True) as admin:
        admin.execute("select pg_advisory_lock(%s)", (_LOCK,))
        for role in (*public, *beside):
            admin.execute(f"create role {role} nologin".encode())
        for kind in ("tables", "sequences", "functions", "schemas"):
            superuser.execute(
                f"alter default privileges for role trunkline_owner grant all on {kind}"
                f" to {', '.join(public)}".encode()
            )
        yield
        # What was given away in this database goes with the roles.
        superuser.execute(f"drop owned by {roles} cascade".encode())
        _drop(admin, database.server, roles)


def _drop(admin: psycopg.Connection, server: Server, roles: str) -> None:
    """Drop the roles; installations in other databases may have granted to them meanwhile."""
    while True:
        try:
            admin.execute(f"drop role {roles}".encode())
        except psycopg.errors.DependentObjectsStillExist:
            for (name,) in admin.execute(_DEPENDENT, (roles.split(", "),)).fetchall():
                # The database may be gone by now.
                with (
                    suppress(psycopg.OperationalError),
                    psycopg.connect(server.dsn(name, superuser=True)) as other,
                ):
                    other.execute(f"drop owned by {roles} cascade".encode())
        else:
            return


@contextmanager
def no_platform(server: Server) -> Iterator[None]:
    """Keep tests that make such roles away.

    An installation grants to them, or takes from them, if the server has them: beside it they must
    not come or go.
    """
    with psycopg.connect(server.dsn("postgres", superuser=True), autocommit=True) as connection:
        connection.execute("select pg_advisory_lock_shared(%s)", (_LOCK,))
        yield
