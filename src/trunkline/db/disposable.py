"""Databases for one test each, on a separate server, with a clock that can be moved.

Never use this on a server with data: it needs a superuser, and it replaces the engine's clock.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from trunkline.db.call import Call, nothing, rows_of, scalar
from trunkline.db.calls.read import detailed_jobs
from trunkline.db.translate import translated, unreachable
from trunkline.errors import JobNotRunnable
from trunkline.model import Job
from trunkline.schema import install

__all__ = [
    "OpenMap",
    "alone",
    "clock",
    "create",
    "ensure_template",
    "move_clock",
    "next_due",
    "open_maps",
    "waiting_jobs",
]

_TEMPLATE: Final = "trunkline_sandbox_template"
# One process builds the template; the others wait for it.
_BUILD_LOCK: Final = 7_230_002


class OpenMap(NamedTuple):
    """A map of a workflow that waits for jobs, and how many it has."""

    workflow: UUID
    place: int
    jobs: int


# The engine's own clock is kept under another name. The test's clock adds a shift to it.
_MOVABLE_CLOCK: Final[LiteralString] = """
create schema trunkline_sandbox;
create table trunkline_sandbox.clock (shift interval not null);
insert into trunkline_sandbox.clock values ('0');
do $$
begin
  execute replace(pg_get_functiondef('trunkline.clock()'::regprocedure),
                  'trunkline.clock()', 'trunkline_sandbox.engine_clock()');
end
$$;
create or replace function trunkline.clock() returns timestamptz language sql volatile
as $$ select trunkline_sandbox.engine_clock() + (select shift from trunkline_sandbox.clock) $$;
create function trunkline_sandbox.move_clock(p_by interval) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update trunkline_sandbox.clock set shift = shift + p_by;
end;
grant usage on schema trunkline_sandbox to public;
grant select on trunkline_sandbox.clock to public;
"""


def ensure_template(superuser: str, owner: str) -> None:
    """Build the template of all databases, once for the server."""
    with _connect(superuser, "postgres") as admin:
        admin.execute("select pg_advisory_lock(%s)", (_BUILD_LOCK,))
        template = admin.execute("select 1 from pg_database where datname = %s", (_TEMPLATE,))
        if template.fetchone():
            return
        # Renamed when it is complete, so that a failed build is not used as the template.
        draft, final = sql.Identifier(_TEMPLATE + "_draft"), sql.Identifier(_TEMPLATE)
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(draft))
        admin.execute(
            sql.SQL("create database {} template template0 owner {}").format(
                draft, sql.Identifier(owner)
            )
        )
        install(make_conninfo(superuser, user=owner, dbname=_TEMPLATE + "_draft"))
        with _connect(superuser, _TEMPLATE + "_draft") as connection:
            connection.execute(_MOVABLE_CLOCK)
        admin.execute(sql.SQL("alter database {} rename to {}").format(draft, final))
        # A template to which somebody is connected cannot be copied.
        admin.execute(sql.SQL("alter database {} allow_connections false").format(final))


@contextmanager
def create(superuser: str, owner: str) -> Iterator[tuple[str, str]]:
    """Create a database, and drop it at the end. Yields the DSNs of its owner and the superuser."""
    name = f"sandbox_{uuid.uuid4().hex}"
    database = sql.Identifier(name)
    with _connect(superuser, "postgres") as admin:
        admin.execute(
            sql.SQL("create database {} template {} owner {}").format(
                database, sql.Identifier(_TEMPLATE), sql.Identifier(owner)
            )
        )
    try:
        yield (
            make_conninfo(superuser, user=owner, dbname=name),
            make_conninfo(superuser, dbname=name),
        )
    finally:
        with _connect(superuser, "postgres") as admin:
            admin.execute(sql.SQL("drop database if exists {} with (force)").format(database))


@contextmanager
def alone(superuser_dsn: str, job: UUID) -> Iterator[None]:
    """Within the block, claims find only this job, because they skip the others, which are locked.

    If the job is not due yet, the clock is moved.
    """
    with _connect(superuser_dsn) as connection, translated(), connection.transaction():
        row = connection.execute(
            "select w.run_at - trunkline.clock() from trunkline_internal.waiting as w"
            " where w.job_id = %s",
            (job,),
        ).fetchone()
        if row is None:
            raise JobNotRunnable(
                f"Job {job} is not waiting to run",
                hint="See its state with app.jobs.get; an ended one needs app.jobs.retry first.",
            )
        if row[0].total_seconds() > 0:
            # In a separate transaction, so that the claim sees it.
            with _connect(superuser_dsn) as mover:
                mover.execute("select trunkline_sandbox.move_clock(%s)", (row[0],))
        connection.execute(
            "select from trunkline_internal.waiting as w where w.job_id <> %s for update", (job,)
        )
        yield


def move_clock(seconds: float) -> Call[None]:
    """Move the engine's clock for every session of the database."""
    return Call(
        "select trunkline_sandbox.move_clock(make_interval(secs => %s::float8))",
        (seconds,),
        nothing,
    )


def clock() -> Call[Any]:
    """Return the time by the engine's clock."""
    return Call("select trunkline.clock()", (), scalar)


def next_due() -> Call[float | None]:
    """Return in how many seconds the next scheduled job is due; None if there is none."""
    return Call(
        "select extract(epoch from min(j.run_at) - trunkline.clock())::float8"
        " from trunkline.jobs as j where j.state = 'scheduled'",
        (),
        scalar,
    )


def open_maps() -> Call[list[OpenMap]]:
    """Return the maps that wait for their jobs."""
    return Call(
        "select s.workflow_id, s.place, s.expanded from trunkline_internal.workflow_steps as s"
        " where s.kind = 'map' and s.state = 'open' and (s.items is null or s.expanded < s.items)"
        " order by s.workflow_id, s.place",
        (),
        rows_of(OpenMap),
    )


def waiting_jobs() -> Call[list[Job]]:
    """Return jobs that have not started, with their payloads, in the order of their creation.

    Only a superuser can run this: the order of jobs with the same time is only in the table itself.
    """
    return detailed_jobs(
        "select w.job_id from trunkline_internal.waiting as w"
        " order by w.created_at, w.sequence, w.ctid"
    )


def _connect(dsn: str, database: str | None = None) -> psycopg.Connection[Any]:
    target = dsn if database is None else make_conninfo(dsn, dbname=database)
    try:
        return psycopg.connect(target, autocommit=True)
    except psycopg.Error as error:
        raise unreachable(error) from error
