"""Fills the tables quickly, past the functions."""

from collections.abc import Sequence

import psycopg
from psycopg import sql

from bench.place import TASK

__all__ = ["JOB_ID", "analyze", "checkpoint", "connect", "finished", "ready", "scheduled"]

# Ids as the engine makes them, growing with time, as if 50 jobs a millisecond had come until now.
JOB_ID = """
(trunkline_internal.new_id_prefix(p_now => v.now - (%(jobs)s - n) / 50 * interval '1 millisecond')
  || substr(gen_random_uuid()::text, 16))::uuid
"""

# A payload of about 50 bytes.
_READY = f"""
insert into trunkline_internal.waiting
  (job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, payload)
select
  {JOB_ID}, nextval('trunkline_internal.job_sequence'), v.now, v.now, 4, %(lane)s, 'ready',
  %(queue)s, %(task)s, jsonb_build_object('number', n, 'text', 'twenty bytes of text')
from generate_series(1, %(jobs)s) as n, (select clock_timestamp() as now) as v
"""

_SCHEDULED = f"""
insert into trunkline_internal.waiting
  (job_id, run_at, created_at, max_attempts, lane, state, queue, task, payload)
select
  {JOB_ID},
  v.now + n * (%(seconds)s::double precision / %(jobs)s) * interval '1 second', v.now, 4,
  (%(lanes)s::smallint[])[n %% cardinality(%(lanes)s) + 1], 'scheduled', %(queue)s, %(task)s,
  jsonb_build_object('number', n, 'text', 'twenty bytes of text')
from generate_series(1, %(jobs)s) as n, (select clock_timestamp() as now) as v
"""

_FINISHED = f"""
insert into trunkline_internal.finished
  (job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals, max_attempts,
   priority, state, queue, task, worker, payload)
select
  {JOB_ID}, v.now, v.now, v.now, v.now, 1, 0, 0, 4, 0, 'completed', %(queue)s, %(task)s,
  'worker', jsonb_build_object('number', n, 'text', 'twenty bytes of text')
from generate_series(1, %(jobs)s) as n, (select clock_timestamp() as now) as v
"""

_LANE = """
insert into trunkline_internal.lanes (queue, lane)
select %(queue)s, l
from unnest(%(lanes)s::smallint[]) as l
where not exists (
  select from trunkline_internal.lanes as k where k.queue = %(queue)s and k.lane = l
)
"""


def connect(dsn: str) -> psycopg.Connection:
    """Connect as the measures do: every statement its own transaction, prepared at once."""
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0)


def ready(connection: psycopg.Connection, jobs: int, *, queue: str, lane: int = 0) -> None:
    """Put jobs that can be claimed into a queue."""
    connection.execute(_LANE, {"queue": queue, "lanes": [lane]})
    connection.execute(_READY, {"jobs": jobs, "queue": queue, "lane": lane, "task": TASK})


def scheduled(
    connection: psycopg.Connection, jobs: int, *, queue: str, lanes: Sequence[int], seconds: float
) -> None:
    """Put jobs into a queue that become due one after the other within so many seconds."""
    connection.execute(_LANE, {"queue": queue, "lanes": list(lanes)})
    connection.execute(
        _SCHEDULED,
        {"jobs": jobs, "queue": queue, "lanes": list(lanes), "seconds": seconds, "task": TASK},
    )


def finished(connection: psycopg.Connection, jobs: int, *, queue: str) -> None:
    """Add history."""
    connection.execute(_FINISHED, {"jobs": jobs, "queue": queue, "task": TASK})


def analyze(connection: psycopg.Connection) -> None:
    """Do what autovacuum would have done by now: visibility, hint bits, statistics."""
    for table in ("waiting", "running", "finished", "lanes", "tasks"):
        connection.execute(
            sql.SQL("vacuum analyze {}").format(sql.Identifier("trunkline_internal", table))
        )


def checkpoint(connection: psycopg.Connection) -> bool:
    """Write out what the filling left, so that it is not written while we measure."""
    try:
        connection.execute("checkpoint")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
