"""What a year leaves behind, put in at once: a long history, and many jobs for later.

The scheduled ones become due over a day, so that some do all the time, and run like the others:
each has its number on the slate.
"""

import psycopg

from bench import fill
from bench.place import TASK

__all__ = ["HISTORY", "fill_in"]

# The queue of the history: nobody ran those jobs.
HISTORY = "history"

_SCHEDULED = """
insert into trunkline_internal.waiting
  (job_id, run_at, created_at, max_attempts, lane, state, queue, task, payload)
select
  trunkline_internal.new_id(p_now => v.now), v.now + n * interval '1 day' / %(jobs)s, v.now, 4, 0,
  'scheduled', 'default', %(task)s, jsonb_build_object('number', %(first)s + n)
from generate_series(0, %(jobs)s - 1) as n, (select clock_timestamp() as now) as v
"""


def fill_in(connection: psycopg.Connection, history: int, first: int, scheduled: int) -> None:
    """Put it in, and do for the history what autovacuum would have done over that year."""
    fill.finished(connection, history, queue=HISTORY)
    connection.execute(_SCHEDULED, {"jobs": scheduled, "first": first, "task": TASK})
    connection.execute("vacuum analyze trunkline_internal.finished")
    connection.execute("analyze trunkline_internal.waiting")
    fill.checkpoint(connection)
