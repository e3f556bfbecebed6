"""Oban for Python: a row per job, claims in batches, one statement for each end, LISTEN."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import Place
from bench.rivals.environment import Environment, EnvironmentMissing
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

_ENVIRONMENT = Environment(
    "oban", ["oban==0.7.0", "psycopg[binary]==3.3.8", "uvloop==0.23.0"], python_version="3.12"
)


def _prepare() -> None:
    # It requires a newer Python than ours, which is not downloaded if it is missing.
    os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")
    try:
        _ENVIRONMENT.make()
    except EnvironmentMissing as error:
        if "No interpreter found" in str(error):
            raise EnvironmentMissing("it requires Python 3.12, which is not installed") from None
        raise


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    python = str(_ENVIRONMENT.python)
    producer = [python, "-m", "bench.rivals.oban_producer"]
    with place.empty_database("oban") as dsn:
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        with PostgresContender(
            key="oban",
            name="Oban for Python",
            dsn=dsn,
            worker=[python, "-m", "bench.rivals.oban_worker"],
            producer=producer,
            is_empty="""
            select not exists (
              select from oban_jobs
              where state in ('available', 'scheduled', 'executing', 'retryable', 'suspended')
            )
            """,
            # A job with two attempts counts twice.
            ended="""
            select coalesce(sum(attempt) filter (where state = 'completed'), 0),
              count(distinct args ->> 'number') filter (where state = 'completed')
            from oban_jobs
            """,
            forget="truncate oban_jobs",
        ) as contender:
            yield contender


PRODUCT = Product(
    key="oban",
    name="Oban for Python",
    language="Python",
    settings="limit 500, psycopg's binary build with a pool of 10 to 20, uvloop, Python 3.12; "
    "bulk: `enqueue_many`",
    prepare=_prepare,
    versions=lambda: _ENVIRONMENT.versions("oban", "psycopg", "uvloop"),
    open=_open,
    pace=1_800,
)
