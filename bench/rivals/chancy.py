"""Chancy: a row per job, claims in batches, one statement for each end."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

_ENVIRONMENT = Environment("chancy", ["chancy==0.26.0", "psycopg[binary]==3.3.8", "uvloop==0.23.0"])


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    python = str(_ENVIRONMENT.python)
    producer = [python, "-m", "bench.rivals.chancy_producer"]
    with place.empty_database("chancy") as dsn:
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        with PostgresContender(
            key="chancy",
            name="Chancy",
            dsn=dsn,
            worker=[python, "-m", "bench.rivals.chancy_worker"],
            producer=producer,
            is_empty="""
            select not exists (
              select from chancy_jobs where state in ('pending', 'running', 'retrying')
            )
            """,
            ended="""
            select count(*) filter (where state = 'succeeded' and attempts = 1),
              count(distinct id) filter (where state = 'succeeded')
            from chancy_jobs
            """,
            forget="truncate chancy_jobs",
        ) as contender:
            yield contender


PRODUCT = Product(
    key="chancy",
    name="Chancy",
    language="Python",
    settings="concurrency 500 on one loop, eager polling, ends written every 0.1 s, plugins for "
    "leadership, recovery and pruning only, psycopg's binary build with a pool of 10, uvloop; "
    "bulk: `push_many`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("chancy", "psycopg", "uvloop"),
    open=_open,
    pace=2_500,
)
