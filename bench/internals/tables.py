"""Statements on internal tables that no public function or view replaces."""

from typing import LiteralString

import psycopg

from bench.place import TASK

__all__ = [
    "FORGET",
    "SOAK_ENDED",
    "SOAK_IS_DRAINED",
    "SOAK_LEFT",
    "SOAK_TABLES",
    "finished",
    "hurry_duties",
    "stop_autovacuum",
    "stored_payload",
    "truncate_waiting",
    "vacuum_finished",
]

# Removes every job, including finished ones.
FORGET: LiteralString = """
truncate trunkline_internal.waiting, trunkline_internal.running, trunkline_internal.finished
"""

# Ids grow with time as the engine's do, as if 50 jobs had arrived per millisecond until now.
_FINISHED = """
insert into trunkline_internal.finished
  (job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals, max_attempts,
   priority, state, queue, task, worker, payload)
select
  (
    trunkline_internal.new_id_prefix(
      p_now => v.now - (%(jobs)s - n) / 50 * interval '1 millisecond'
    ) || substr(gen_random_uuid()::text, 16)
  )::uuid,
  v.now, v.now, v.now, v.now, 1, 0, 0, 4, 0, 'completed', %(queue)s, %(task)s, 'worker',
  jsonb_build_object('number', n, 'text', 'twenty bytes of text')
from generate_series(1, %(jobs)s) as n, (select clock_timestamp() as now) as v
"""

_STORED = """
select avg(coalesce(pg_column_size(f.payload), pg_column_size(b.body)))
from trunkline_internal.finished as f
left join trunkline_internal.bodies as b on b.job_id = f.job_id
where f.queue = %s
"""

_HURRY = """
update trunkline_internal.duties set every = '500 milliseconds' where duty in ('promote', 'reclaim')
"""

# Ignores scheduled jobs that are not due. Uses indexes; the view of queues would count 10,000 rows.
SOAK_IS_DRAINED: LiteralString = """
select not exists (select from trunkline_internal.waiting as w where w.state = 'ready')
  and not exists (select from trunkline_internal.running)
"""

# By the number in the payload, which also identifies a job on the slate.
SOAK_ENDED: LiteralString = """
select p.part, count(*), count(distinct p.number)
from (
  select
    width_bucket(f.number, %(bounds)s::bigint[]) as part, f.number
  from (
    select (f.payload ->> 'number')::bigint as number
    from trunkline_internal.finished as f
    where f.queue <> %(history)s and f.state = 'completed'
  ) as f
) as p
group by p.part
"""

# Scheduled jobs that did not have to run: not due yet, or due while the workers stopped.
SOAK_LEFT: LiteralString = """
select width_bucket((w.payload ->> 'number')::bigint, %(bounds)s::bigint[]), count(*)
from trunkline_internal.waiting as w
where w.state in ('scheduled', 'ready')
  and w.run_at > greatest(w.created_at, clock_timestamp() - interval '1 minute')
group by 1
"""

# Dead rows, sizes and vacuums of each table; finished counts with its partitions.
SOAK_TABLES: LiteralString = """
select t.name, sum(coalesce(pg_stat_get_dead_tuples(r.relid), 0))::bigint,
  sum(pg_relation_size(r.relid))::bigint, sum(pg_indexes_size(r.relid))::bigint,
  sum(coalesce(pg_stat_get_autovacuum_count(r.relid), 0))::bigint
from unnest(%s::text[]) as t (name)
cross join lateral (
  select c.oid::regclass as relid
  from pg_class as c
  where c.oid = ('trunkline_internal.' || t.name)::regclass
  union
  select p.relid
  from pg_partition_tree(('trunkline_internal.' || t.name)::regclass) as p
) as r
group by t.name
"""


def finished(connection: psycopg.Connection, jobs: int, *, queue: str, task: str = TASK) -> None:
    """Insert completed jobs directly; to enqueue, claim and complete them would take minutes."""
    connection.execute(_FINISHED, {"jobs": jobs, "queue": queue, "task": task})


def truncate_waiting(connection: psycopg.Connection) -> None:
    """Remove every waiting job, so that each repetition starts with the same table."""
    connection.execute("truncate trunkline_internal.waiting", prepare=False)


def stop_autovacuum(connection: psycopg.Connection) -> None:
    """Disable autovacuum for the tables that a claim reads."""
    for table in ("waiting", "running"):
        connection.execute(
            f"alter table trunkline_internal.{table} set (autovacuum_enabled = off)".encode()
        )


def vacuum_finished(connection: psycopg.Connection) -> None:
    """Vacuum a long history, as autovacuum would have done while it grew."""
    connection.execute("vacuum trunkline_internal.finished")


def stored_payload(connection: psycopg.Connection, queue: str) -> float:
    """Return the mean stored size of the payloads of a queue's finished jobs, in bytes."""
    row = connection.execute(_STORED, (queue,)).fetchone()
    if row is None or row[0] is None:
        raise RuntimeError(f"No job of queue {queue} has finished")
    return float(row[0])


def hurry_duties(connection: psycopg.Connection) -> None:
    """Run the duties that detect dead workers twice a second."""
    connection.execute(_HURRY)
