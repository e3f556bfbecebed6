"""The guard of a test database, and counts of its jobs."""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server

__all__ = ["JobCounts", "ensure_template", "install", "job_counts"]

_SCRIPT = Path(__file__).with_name("guard.sql")


class JobCounts(NamedTuple):
    """The number of jobs in each table, and of distinct ids."""

    waiting: int
    running: int
    finished: int
    dead: int
    ids: int

    @property
    def total(self) -> int:
        return self.waiting + self.running + self.finished + self.dead


def install(database: Database) -> None:
    """Make the database refuse illegal changes of state from any role."""
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute(_SCRIPT.read_bytes())


def ensure_template(server: Server) -> str:
    """Return the name of a template whose copies have the guard from the start."""

    def build(superuser_dsn: str) -> None:
        with psycopg.connect(superuser_dsn, autocommit=True) as connection:
            connection.execute(_SCRIPT.read_bytes())

    return databases.ensure_template_with(server, "guarded", build, superuser=True)


def job_counts(superuser: psycopg.Connection[Any]) -> JobCounts:
    """Count all jobs in one snapshot; ``ids`` equals ``total`` unless a job is in two tables."""
    row = superuser.execute(
        "select count(*) filter (where place = 'waiting'), "
        "count(*) filter (where place = 'running'), count(*) filter (where place = 'finished'), "
        "count(*) filter (where place = 'dead'), count(distinct job_id) from ("
        "select 'waiting' as place, job_id from trunkline_internal.waiting "
        "union all select 'running', job_id from trunkline_internal.running "
        "union all select 'finished', job_id from trunkline_internal.finished "
        "union all select 'dead', job_id from trunkline_internal.dead) as j"
    ).fetchone()
    assert row is not None
    return JobCounts(*row)
