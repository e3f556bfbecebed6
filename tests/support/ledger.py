"""A ledger that handlers write of their runs, and an audit that compares it with the queue.

A handler opens its own connection to the ledger, past every proxy and pooler of the test, and
retries while the server is away. So the ledger shows runs, never failures of the network.
"""

import asyncio
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import psycopg

from tests.support.databases import Database

__all__ = ["DSN_VARIABLE", "Audit", "Run", "audit", "install", "recorded", "recorded_async", "runs"]

DSN_VARIABLE = "CHAOS_LEDGER_DSN"
_PATIENCE = 180.0
_PAUSE = 0.05

_TABLES = """
create schema chaos;
create table chaos.runs (
  run_id uuid primary key,
  job_id uuid not null,
  attempt integer not null,
  pid integer not null,
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
-- Not unique by job: the audit must find a second posting, so the table must not prevent it.
create table chaos.postings (job_id uuid not null, attempt integer not null);
create table chaos.accounts (name text primary key, balance integer not null default 0);
insert into chaos.accounts (name) values ('one'), ('two');
grant usage on schema chaos to public;
grant select, insert, update on all tables in schema chaos to public;
"""

_BEGIN: LiteralString = (
    "insert into chaos.runs (run_id, job_id, attempt, pid) values (%s, %s, %s, %s) "
    "on conflict (run_id) do nothing"
)
_FINISH: LiteralString = "update chaos.runs set finished_at = clock_timestamp() where run_id = %s"

# Every job that a test enqueued, its ends and its runs.
_AUDIT = """
with ends as (
  select f.job_id, f.state, f.attempt from trunkline_internal.finished as f
  union all
  select d.job_id, 'dead', d.attempt from trunkline_internal.dead as d
),
per_job as (
  select j.job_id,
    (select count(*) from ends as e where e.job_id = j.job_id) as ends,
    (
      select count(*) from ends as e where e.job_id = j.job_id and e.state = 'completed'
    ) as completed
  from unnest(%(jobs)s::uuid[]) as j (job_id)
)
select
  array(select p.job_id from per_job as p where p.ends = 0) as unfinished,
  array(select p.job_id from per_job as p where p.ends > 1) as ended_twice,
  (select coalesce(sum(p.completed), 0)::integer from per_job as p) as completed,
  array(
    select e.job_id from ends as e
    where e.state = 'completed' and not exists (
      select from chaos.runs as r
      where r.job_id = e.job_id and r.attempt = e.attempt and r.finished_at is not null
    )
  ) as completed_without_run,
  array(
    select e.job_id from ends as e
    where e.state = 'completed' and exists (
      select from chaos.runs as r where r.job_id = e.job_id and r.attempt > e.attempt
    )
  ) as run_after_completion,
  array(
    select r.job_id from chaos.runs as r group by r.job_id, r.attempt having count(*) > 1
  ) as attempt_run_twice
"""


class Run(NamedTuple):
    """One start of a handler."""

    job: UUID
    attempt: int
    pid: int
    finished: bool


class Audit(NamedTuple):
    """Lists that must be empty, and the number of completed jobs."""

    unfinished: list[UUID]
    ended_twice: list[UUID]
    completed: int
    completed_without_run: list[UUID]
    run_after_completion: list[UUID]
    attempt_run_twice: list[UUID]

    @property
    def faults(self) -> dict[str, list[UUID]]:
        """The lists that are not empty: jobs lost, ended twice, or completed without a run."""
        return {
            name: value
            for name, value in self._asdict().items()
            if isinstance(value, list) and value
        }


def install(database: Database) -> None:
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute(_TABLES)


def audit(superuser: psycopg.Connection[Any], jobs: list[UUID]) -> Audit:
    """Compare the ends of these jobs with the runs of their handlers, in one snapshot."""
    row = superuser.execute(_AUDIT, {"jobs": jobs}).fetchone()
    assert row is not None
    return Audit(*row)


def runs(superuser: psycopg.Connection[Any], *jobs: UUID) -> list[Run]:
    """Return the runs of these jobs in the order of their starts."""
    rows = superuser.execute(
        "select job_id, attempt, pid, finished_at is not null from chaos.runs "
        "where job_id = any(%s) order by started_at",
        (list(jobs),),
    ).fetchall()
    return [Run(*row) for row in rows]


@contextmanager
def recorded(job: UUID, attempt: int) -> Iterator[None]:
    """Record a run of a plain handler; after an exception it stays unfinished."""
    run = uuid.uuid4()
    _write(_BEGIN, (run, job, attempt, os.getpid()))
    yield
    _write(_FINISH, (run,))


@asynccontextmanager
async def recorded_async(job: UUID, attempt: int) -> AsyncIterator[None]:
    """Record a run of a handler that is a coroutine."""
    run = uuid.uuid4()
    await _write_async(_BEGIN, (run, job, attempt, os.getpid()))
    yield
    await _write_async(_FINISH, (run,))


_local = threading.local()
_shared: dict[str, Any] = {}


def _write(statement: LiteralString, values: tuple[Any, ...]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            connection = getattr(_local, "connection", None)
            if connection is None or connection.closed:
                connection = psycopg.connect(os.environ[DSN_VARIABLE], autocommit=True)
                _local.connection = connection
            connection.execute(statement, values)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            _local.connection = None
            time.sleep(_PAUSE)
        else:
            return


async def _write_async(statement: LiteralString, values: tuple[Any, ...]) -> None:
    deadline = time.monotonic() + _PATIENCE
    lock = _shared.setdefault("lock", asyncio.Lock())
    while True:
        try:
            async with lock:
                connection = _shared.get("connection")
                if connection is None or connection.closed:
                    connection = await psycopg.AsyncConnection.connect(
                        os.environ[DSN_VARIABLE], autocommit=True
                    )
                    _shared["connection"] = connection
                await connection.execute(statement, values)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            _shared["connection"] = None
            await asyncio.sleep(_PAUSE)
        else:
            return
