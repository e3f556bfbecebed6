"""Template databases, and a fresh copy for every test."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.internals import chance
from tests.support.servers import Server
from trunkline.embedded.server import INSTALLER

TEMPLATE = "trunkline_template"
TEMPLATE_TAP = "trunkline_template_tap"
PGTAP = Path("/usr/share/postgresql/15/extension/pgtap--1.2.0.sql")

# One worker of pytest-xdist builds a template; the others wait for it.
_BUILD_LOCK = 7_230_001
# Templates that this process knows to exist.
_known: set[tuple[str, str]] = set()
# Connections of superusers by their DSN. A new one for each test would take 5 ms of processor time.
_administrators: dict[str, psycopg.Connection[Any]] = {}

_TEST_SCHEMA = """
create schema trunkline_test;
create table trunkline_test.clock (shift interval not null);
insert into trunkline_test.clock values ('0');
create function trunkline_test.move_time(p_by interval) returns interval
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update trunkline_test.clock set shift = shift + p_by returning shift;
end;
grant usage on schema trunkline_test to public;
grant select on trunkline_test.clock to public;
"""

# The engine's own clock is kept under another name. The tests' clock adds a shift to it.
_MOVABLE_CLOCK = """
do $$
begin
  execute replace(pg_get_functiondef('trunkline.clock()'::regprocedure),
                  'trunkline.clock()', 'trunkline_test.engine_clock()');
end
$$;
create or replace function trunkline.clock() returns timestamptz language sql volatile
as $$ select trunkline_test.engine_clock() + (select shift from trunkline_test.clock) $$;
"""


@dataclass(slots=True)
class Database:
    """A database of one test, with the schema installed, dropped when the test ends."""

    server: Server
    name: str
    movable: bool = False
    _connections: list[psycopg.Connection[Any]] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        """The connection string of the installer role, which owns the database."""
        return self.server.dsn(self.name)

    @property
    def superuser_dsn(self) -> str:
        return self.server.dsn(self.name, superuser=True)

    def connect(self, role: str | None = None, *, autocommit: bool = True) -> psycopg.Connection:
        """Connect as the installer, or as the given role; closed when the test ends.

        The role is set with SET SESSION AUTHORIZATION in a superuser's session. So session_user and
        current_user are both that role, without any privilege of the installer.
        """
        connection = psycopg.connect(
            self.superuser_dsn if role else self.dsn, autocommit=True, application_name="test"
        )
        self._connections.append(connection)
        if role:
            connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(role)))
        connection.autocommit = autocommit
        return connection

    def superuser(self, *, autocommit: bool = True) -> psycopg.Connection:
        """Connect as the superuser, to read internal tables."""
        connection = psycopg.connect(self.superuser_dsn, autocommit=autocommit)
        self._connections.append(connection)
        return connection

    def move_time(self, interval: str) -> None:
        """Move the engine's clock by an interval such as '5 minutes', for all sessions at once."""
        with psycopg.connect(self.superuser_dsn, autocommit=True) as connection:
            if not self.movable:
                connection.execute(_MOVABLE_CLOCK)
                self.movable = True
            connection.execute("select trunkline_test.move_time(%s::interval)", (interval,))

    def move_to_noon(self) -> None:
        """Move the engine's clock to the next noon in UTC, so that a test that counts days is hours
        away from midnight."""
        with psycopg.connect(self.superuser_dsn, autocommit=True) as connection:
            row = connection.execute(
                "select (case when t < noon then noon else noon + interval '1 day' end - t)::text"
                " from (select t, date_trunc('day', t) + interval '12 hours' as noon"
                " from (select trunkline.clock() at time zone 'UTC' as t) as c) as n"
            ).fetchone()
        assert row is not None
        self.move_time(row[0])

    def draw(self, number: float) -> None:
        """Make every random draw of the engine return this number, in all sessions.

        With 0.5 no call is sampled, no claim serves low priorities first, and jitter is half of its
        maximum.
        """
        with psycopg.connect(self.superuser_dsn, autocommit=True) as connection:
            chance.pin(connection, number)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def ensure_template(server: Server) -> str:
    """Return the name of the template with the schema, and build it if it is missing."""

    # The tests of the embedded server must run even while the schema package is broken.
    from trunkline import schema  # noqa: PLC0415

    def build(name: str) -> None:
        schema.install(server.dsn(name))
        with psycopg.connect(server.dsn(name, superuser=True), autocommit=True) as connection:
            connection.execute(_TEST_SCHEMA)

    return _ensure(server, TEMPLATE, "template0", build)


def ensure_template_tap(server: Server) -> str:
    """Like the template, with pgTAP in schema ``tap`` and a clock that can be moved."""

    def build(name: str) -> None:
        # Runs the extension's file as plain SQL: the embedded server has no extensions.
        script = PGTAP.read_text(encoding="utf-8")
        with psycopg.connect(server.dsn(name, superuser=True), autocommit=True) as connection:
            connection.execute("create schema tap; grant usage on schema tap to public")
            connection.execute("set search_path = tap, public")
            connection.execute(script)
            connection.execute(_MOVABLE_CLOCK)

    return _ensure(server, TEMPLATE_TAP, ensure_template(server), build)


def ensure_template_with(
    server: Server, name: str, build: Callable[[str], None], *, superuser: bool = False
) -> str:
    """Like the template, plus what ``build`` adds to the database with the given DSN."""

    def add(draft: str) -> None:
        build(server.dsn(draft, superuser=superuser))

    return _ensure(server, f"{TEMPLATE}_{name}", ensure_template(server), add)


@contextmanager
def fresh(server: Server, template: str) -> Iterator[Database]:
    """Copy the template into a new database, and drop it at the end even if it is in use."""
    # If a folder overrides the server fixture, the session fixture may name a template that was
    # built on another server, so build it here if necessary.
    (ensure_template_tap if template == TEMPLATE_TAP else ensure_template)(server)
    name = f"test_{uuid.uuid4().hex}"
    _administer(
        server,
        sql.SQL("create database {} template {} owner {} strategy {}").format(
            sql.Identifier(name),
            sql.Identifier(template),
            sql.Identifier(INSTALLER),
            sql.SQL(server.copy_strategy),
        ),
    )
    copy = Database(server, name, movable=template == TEMPLATE_TAP)
    try:
        yield copy
    finally:
        copy.close()
        _end_sessions(server, name)
        _administer(server, sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def close_administrators() -> None:
    """Close the connections that this process keeps to create and drop databases."""
    while _administrators:
        _administrators.popitem()[1].close()


def _end_sessions(server: Server, name: str) -> None:
    """End the sessions of a database and wait for them, at most five seconds.

    ``drop database`` sleeps 100 ms if a session still exists, and most tests have just closed some.
    """
    sessions = sql.SQL(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = {}"
    ).format(name)
    end = time.monotonic() + 5
    while _administer(server, sessions).rowcount and time.monotonic() < end:
        time.sleep(0.002)


def _administer(server: Server, statement: sql.Composed) -> psycopg.Cursor[Any]:
    """Run a statement on a connection that this process keeps."""
    connection = _administrators.get(server.superuser_dsn)
    if connection is None:
        connection = psycopg.connect(server.dsn("postgres", superuser=True), autocommit=True)
        _administrators[server.superuser_dsn] = connection
    try:
        return connection.execute(statement)
    except psycopg.OperationalError:
        if not connection.broken:
            raise
    # A test ended all sessions of the server.
    del _administrators[server.superuser_dsn]
    return _administer(server, statement)


def _ensure(server: Server, name: str, source: str, build: Callable[[str], None]) -> str:
    if (server.superuser_dsn, name) in _known:
        return name
    _build_once(server, name, source, build)
    _known.add((server.superuser_dsn, name))
    return name


def _build_once(server: Server, name: str, source: str, build: Callable[[str], None]) -> str:
    with psycopg.connect(server.dsn("postgres", superuser=True), autocommit=True) as admin:
        admin.execute("select pg_advisory_lock(%s)", (_BUILD_LOCK,))
        rows = admin.execute("select 1 from pg_database where datname = %s", (name,))
        if rows.fetchone():
            return name
        # Renamed when it is complete, so that a failed build is not used as the template.
        draft_name = f"{name}_draft"
        draft, final = sql.Identifier(draft_name), sql.Identifier(name)
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(draft))
        admin.execute(
            sql.SQL("create database {} template {} owner {}").format(
                draft, sql.Identifier(source), sql.Identifier(INSTALLER)
            )
        )
        build(draft_name)
        admin.execute(sql.SQL("alter database {} rename to {}").format(draft, final))
        # A template to which somebody is connected cannot be copied.
        admin.execute(sql.SQL("alter database {} allow_connections false").format(final))
    return name
