"""PGMQ: SQL functions over a table per queue, a row per message; the worker is our loop."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

# The package contains the SQL of the extension, which needs no compiled code.
_ENVIRONMENT = Environment(
    "pgmq", ["pgmq[async]==1.1.4", "asyncpg==0.32.0", "psycopg[binary]==3.3.8", "uvloop==0.23.0"]
)


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    python = str(_ENVIRONMENT.python)
    producer = [python, "-m", "bench.rivals.pgmq_producer"]
    with place.empty_database("pgmq") as dsn:
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        with PostgresContender(
            key="pgmq",
            name="PGMQ",
            dsn=dsn,
            worker=[python, "-m", "bench.rivals.pgmq_worker"],
            producer=producer,
            is_empty="select not exists (select from pgmq.q_jobs)",
            # A message that was read twice counts twice.
            ended="""
            select coalesce(sum(read_ct), 0), count(distinct message ->> 'number')
            from pgmq.a_jobs
            """,
            forget="truncate pgmq.q_jobs, pgmq.a_jobs",
        ) as contender:
            yield contender


PRODUCT = Product(
    key="pgmq",
    name="PGMQ",
    language="SQL",
    settings="worker of ours: reads 1,000 messages while as many run and are archived, polls every "
    "5 ms, asyncpg, uvloop; schema from the SQL in its package; producer: ten connections; "
    "bulk: `send_batch`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("pgmq", "asyncpg", "uvloop"),
    open=_open,
    pace=15_000,
)
