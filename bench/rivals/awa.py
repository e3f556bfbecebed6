"""Awa: jobs, claims and ends are appended to rings of partitions; a Rust core inside Python."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["PRODUCT"]

_ENVIRONMENT = Environment("awa", ["awa-pg==0.6.9", "uvloop==0.23.0"])


class _Awa(PostgresContender):
    """Resets by a new copy: Awa's own reset truncates hundreds of partitions in ten seconds."""

    def __init__(self, place: Place, clean: str) -> None:
        python = str(_ENVIRONMENT.python)
        super().__init__(
            key="awa",
            name="Awa",
            dsn=place.dsn_of("awa"),
            worker=[python, "-m", "bench.rivals.awa_worker"],
            producer=[python, "-m", "bench.rivals.awa_producer"],
            # An entry stays until its partition is done, so compare the number of entries with that
            # of ends.
            is_empty="""
            select not exists (select from awa.deferred_jobs)
              and (select count(*) from awa.ready_entries)
                = (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)
                + (select count(*) from awa.done_entries)
            """,
            # A job with two attempts counts twice.
            ended="""
            select coalesce(sum(attempt), 0), count(distinct args ->> 'number')
            from awa.terminal_jobs
            where state = 'completed'
            """,
            forget="",
        )
        self._place = place
        self._clean = clean

    def forget(self) -> None:
        self.close()
        self._place.drop("awa")
        names = [sql.Identifier(f"{self._place.prefix}_{each}") for each in ("awa", self._clean)]
        with psycopg.connect(self._place.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {} template {}").format(*names))
        self.settle()


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    with place.empty_database("awa_clean") as dsn:
        command = [str(_ENVIRONMENT.python), "-m", "bench.rivals.awa_producer", "install"]
        subprocess.run(command, check=True, cwd=ROOT, env=libpq_variables(dsn))
        with _Awa(place, "awa_clean") as contender:
            try:
                contender.forget()
                yield contender
            finally:
                contender.close()
                place.drop("awa")


PRODUCT = Product(
    key="awa",
    name="Awa",
    language="Python",
    settings="one queue in 4 partitions of 512 workers, no deadline for attempts, ended jobs kept "
    "for a minute, 20 connections, uvloop; bulk: `enqueue_many_copy`",
    prepare=_ENVIRONMENT.make,
    versions=lambda: _ENVIRONMENT.versions("awa-pg", "uvloop"),
    open=_open,
    pace=6_500,
)
