"""The guard of a test database, and the books of its jobs."""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.support.databases import Database

__all__ = ["Books", "books", "install"]

_SCRIPT = Path(__file__).with_name("guard.sql")


class Books(NamedTuple):
    """How many jobs are where, and how many ids are there at all."""

    waiting: int
    running: int
    finished: int
    dead: int
    ids: int

    @property
    def total(self) -> int:
        return self.waiting + self.running + self.finished + self.dead


def install(database: Database) -> None:
    """Let the database refuse illegal changes of state, whoever makes them."""
    with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
        connection.execute(_SCRIPT.read_bytes())


def books(superuser: psycopg.Connection[Any]) -> Books:
    """Count all jobs in one snapshot; ``ids`` equals ``total`` unless a job is in two places."""
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
    return Books(*row)
