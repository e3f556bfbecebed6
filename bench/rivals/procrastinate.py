"""Procrastinate: one job per claim, ends one by one, events written by triggers, LISTEN."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

_ENVIRONMENT = Environment(
    "procrastinate",
    ["procrastinate==3.10.0", "psycopg[binary]==3.3.8", "psycopg-pool==3.3.3", "uvloop==0.23.0"],
)
_PROGRAM = "bench.rivals.procrastinate"


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    python = str(_ENVIRONMENT.python)
    producer = [python, "-m", f"{_PROGRAM}_producer"]
    with place.empty_database("procrastinate") as dsn:
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        with PostgresContender(
            key="procrastinate",
            name="Procrastinate",
            dsn=dsn,
            worker=[python, "-m", f"{_PROGRAM}_worker"],
            producer=producer,
            is_empty="""
            select not exists (
              select from procrastinate_jobs where status in ('todo', 'doing', 'aborting')
            )
            """,
            # Its own events: a job that ended twice appears twice.
            ended="""
            select count(*), count(distinct job_id)
            from procrastinate_events
            where type = 'succeeded'
            """,
            forget="""
            truncate procrastinate_jobs, procrastinate_events, procrastinate_workers cascade
            """,
        ) as contender:
            yield contender


PRODUCT = Product(
    key="procrastinate",
    name="Procrastinate",
    language="Python",
    settings="concurrency 100, psycopg's binary build with a pool of 20, uvloop; "
    "bulk: `batch_defer_async`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("procrastinate", "psycopg", "uvloop"),
    open=_open,
    pace=400,
)
