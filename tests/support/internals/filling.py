"""Fills the tables directly, because a test of plans needs many rows quickly."""

from typing import Any

import psycopg

__all__ = ["DUE", "RUNNING", "STALE", "fill"]

DUE = 300
RUNNING = 2000
STALE = 150

_WAITING = """
insert into trunkline_internal.lanes (queue, lane) values ('default', 10), ('default', -10);
insert into trunkline_internal.waiting (
  job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, payload, unique_key
)
select
  (%(prefix)s || substr(gen_random_uuid()::text, 16))::uuid,
  nextval('trunkline_internal.job_sequence'), now(), now(), 4,
  (array[10, 0, -10])[1 + n %% 3], 'ready', 'default', 'work', '{}',
  case when n %% 10 = 0 then 'key ' || n end
from generate_series(1, %(waiting)s) as n;
insert into trunkline_internal.waiting (
  job_id, run_at, created_at, max_attempts, lane, state, queue, task, payload
)
select
  (%(prefix)s || substr(gen_random_uuid()::text, 16))::uuid,
  now() + case when n <= %(due)s then -1 else 1 end * n * interval '1 second', now(),
  4, 0, 'scheduled', 'default', 'work', '{}'
from generate_series(1, %(waiting)s / 5 + %(due)s) as n;
insert into trunkline_internal.unique_keys (profile, tenant, task, unique_key, job_id)
select 'default', '', task, unique_key, job_id
from trunkline_internal.waiting where unique_key is not null;
"""

_RUNNING = """
insert into trunkline_internal.running (
  job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at, attempt,
  failures, crashes, deferrals, max_attempts, lane, audit, queue, task, worker, payload
)
select
  (%(prefix)s || substr(gen_random_uuid()::text, 16))::uuid, n, now() - interval '1 hour',
  now() + case when n <= %(stale)s then -1 else 1 end * interval '20 minutes',
  now() + interval '1 day', now(), now(), 1, 0, 0, 0, 4, 0, false, 'default', 'work', 'w', '{}'
from generate_series(1, %(running)s) as n;
"""

_ENDED = """
insert into trunkline_internal.finished (
  job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals, max_attempts,
  priority, state, queue, task, worker, payload
)
select
  (%(prefix)s || substr(gen_random_uuid()::text, 16))::uuid,
  now() + (n %% 3) * interval '1 day', now(), now(), now(), 1, 0, 0, 4, 0, 'completed',
  'default', 'work', 'w', '{}'
from generate_series(1, %(waiting)s * 2 / 5) as n;
insert into trunkline_internal.dead (
  job_id, died_at, run_at, created_at, attempt, failures, crashes, deferrals, max_attempts,
  priority, queue, task, reason, payload
)
select
  (%(prefix)s || substr(gen_random_uuid()::text, 16))::uuid, now(), now(), now(), 4, 4, 0, 0,
  4, 0, 'default', 'work', 'attempts_exhausted', '{}'
from generate_series(1, %(waiting)s / 10) as n;
"""


def fill(superuser: psycopg.Connection[Any], *, waiting: int) -> None:
    """Insert `waiting` ready jobs in three lanes, and fixed numbers of other jobs."""
    # Ids share a prefix, as in enqueue_many: separate ids would take half of the time.
    row = superuser.execute("select trunkline_internal.new_id_prefix(p_now => now())").fetchone()
    assert row is not None
    sizes = {"waiting": waiting, "due": DUE, "running": RUNNING, "stale": STALE, "prefix": row[0]}
    with psycopg.ClientCursor(superuser) as cursor:
        for script in (_WAITING, _RUNNING, _ENDED):
            cursor.execute(script, sizes)
