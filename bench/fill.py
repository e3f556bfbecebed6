"""Fills a database through the engine's public functions, so it works with any version."""

from collections.abc import Sequence

import psycopg

from bench.place import TASK

__all__ = ["analyze", "checkpoint", "connect", "ready", "scheduled"]

# Jobs of one statement. The server builds the document, which is as fast as a plain insert.
_BATCH = 10_000

# A payload of about 50 bytes. Keys alternate, as if many keys were busy at once.
_READY = """
select count(*)
from trunkline.enqueue_many((
  select jsonb_agg(jsonb_build_object('task', %(task)s::text, 'queue', %(queue)s::text, 'payload',
    case
      when %(keys)s::integer is null then jsonb_build_object('number', n)
      else jsonb_build_object('key', (n %% %(keys)s::integer)::text)
    end || '{"text": "twenty bytes of text"}'
  ) order by n)
  from generate_series(%(first)s::bigint, %(last)s::bigint) as n
))
"""

_SCHEDULED = """
select count(*)
from trunkline.enqueue_many((
  select jsonb_agg(jsonb_build_object(
    'task', %(task)s::text, 'queue', %(queue)s::text,
    'run_at', %(begin)s::timestamptz + (n + 1) * %(apart)s::double precision * interval '1 second',
    'priority', (%(priorities)s::integer[])[n %% cardinality(%(priorities)s::integer[]) + 1],
    'payload', jsonb_build_object('number', %(number)s::bigint + n)
  ) order by n)
  from generate_series(%(first)s::bigint, %(last)s::bigint) as n
))
"""


def connect(dsn: str) -> psycopg.Connection:
    """Connect as the measures do: each statement is a transaction, prepared at its first use."""
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0)


def ready(
    connection: psycopg.Connection,
    jobs: int,
    *,
    queue: str,
    task: str = TASK,
    keys: int | None = None,
) -> None:
    """Enqueue jobs that are ready; with keys, each payload has a ``key``, one of that many."""
    values = {"task": task, "queue": queue, "keys": keys}
    for first in range(0, jobs, _BATCH):
        last = min(first + _BATCH, jobs) - 1
        connection.execute(_READY, {**values, "first": first, "last": last})


def scheduled(
    connection: psycopg.Connection,
    jobs: int,
    *,
    queue: str,
    seconds: float,
    priorities: Sequence[int] = (0,),
    number: int = 0,
) -> None:
    """Enqueue jobs that become due one after the other within this many seconds.

    Their payloads count up from ``number``.
    """
    begin = (connection.execute("select clock_timestamp()").fetchone() or (None,))[0]
    values = {
        "task": TASK,
        "queue": queue,
        "begin": begin,
        "apart": seconds / jobs,
        "priorities": list(priorities),
        "number": number,
    }
    for first in range(0, jobs, _BATCH):
        last = min(first + _BATCH, jobs) - 1
        connection.execute(_SCHEDULED, {**values, "first": first, "last": last})


def analyze(connection: psycopg.Connection) -> None:
    """Do the work of autovacuum: visibility, hint bits, statistics."""
    connection.execute("vacuum analyze", prepare=False)


def checkpoint(connection: psycopg.Connection) -> bool:
    """Write dirty pages now, so that they are not written during the measure."""
    try:
        connection.execute("checkpoint")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
