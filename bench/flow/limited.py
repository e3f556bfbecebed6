"""Puts limited jobs into a database: the first of each key as users do, copies of it past that."""

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from bench.fill import JOB_ID

__all__ = ["QUEUE", "TASK", "Parts", "fill_limited", "set_limit"]

QUEUE = "flow"
TASK = "limited"

# What a limit allows, by the names of its parts.
Parts = Mapping[str, Any]

# Of each key one after the other, as they come in where many keys are busy at once.
_COPY = f"""
insert into trunkline_internal.waiting
  (job_id, sequence, run_at, created_at, max_attempts, lane, state, queue, task, tenant, payload,
   bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids)
select
  {JOB_ID}, nextval('trunkline_internal.job_sequence'), w.run_at, w.created_at,
  w.max_attempts, w.lane, w.state, w.queue, w.task, w.tenant, w.payload, w.bucket,
  w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids
from (
  select w.*, row_number() over (order by n, w.sequence) as n
  from generate_series(1, %(copies)s) as n
  cross join trunkline_internal.waiting as w
  where w.queue = %(queue)s and w.task = %(task)s
  order by n, w.sequence
  offset 0
) as w, (select clock_timestamp() as now) as v
"""


def set_limit(connection: psycopg.Connection, name: str, **parts: Any) -> None:
    """Make or change a limit."""
    connection.execute("select trunkline.set_limit(%s, %s::jsonb)", (name, json.dumps(parts)))


def fill_limited(
    connection: psycopg.Connection,
    jobs: int,
    limits: Mapping[str, Parts],
    *,
    keys: int = 1,
    task: str = TASK,
    queue: str = QUEUE,
) -> None:
    """Put jobs under these limits, by name; ``{key}`` in a name has so many values."""
    for name, parts in limits.items():
        set_limit(connection, name, **parts)
    connection.execute(
        "select trunkline.register_task(p_task => %s, p_limits => %s)", (task, list(limits))
    )
    asked = [
        {"task": task, "queue": queue, "payload": {"key": str(key), "text": "twenty bytes of text"}}
        for key in range(keys)
    ]
    connection.execute(
        "select count(*) from trunkline.enqueue_many(%s::jsonb)", (json.dumps(asked),)
    )
    copies = max(jobs // keys - 1, 0)
    connection.execute(
        _COPY, {"copies": copies, "jobs": copies * keys, "queue": queue, "task": task}
    )
