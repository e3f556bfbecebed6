"""DBOS: a workflow per job, polled in batches, run in threads, one statement for each end."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["ENVIRONMENT", "PRODUCT"]

ENVIRONMENT = Environment("dbos", ["dbos==3.3.0", "psycopg[binary]==3.3.8", "sqlalchemy==2.1.8"])


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    python = str(ENVIRONMENT.python)
    worker = [python, "-m", "bench.rivals.dbos_worker"]
    with place.empty_database("dbos") as dsn:
        subprocess.run([*worker, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        with PostgresContender(
            key="dbos",
            name="DBOS",
            dsn=dsn,
            worker=worker,
            producer=[python, "-m", "bench.rivals.dbos_producer"],
            is_empty="""
            select not exists (
              select from dbos.workflow_status where status in ('ENQUEUED', 'DELAYED', 'PENDING')
            )
            """,
            # A workflow that was dequeued twice counts twice.
            ended="""
            select coalesce(sum(recovery_attempts) filter (where status = 'SUCCESS'), 0),
              count(*) filter (where status = 'SUCCESS')
            from dbos.workflow_status
            """,
            forget="""
            truncate dbos.workflow_status, dbos.workflow_input, dbos.workflow_output,
              dbos.operation_outputs cascade
            """,
        ) as contender:
            yield contender


PRODUCT = Product(
    key="dbos",
    name="DBOS",
    language="Python",
    settings="64 threads, worker_concurrency 1,000, polls every 10 ms, psycopg's binary build with "
    "a pool of 20; bulk: `enqueue_in_transaction`, 1,000 in one transaction",
    prepare=ENVIRONMENT.make,
    versions=lambda: ENVIRONMENT.versions("dbos", "psycopg", "sqlalchemy"),
    open=_open,
    pace=400,
)
