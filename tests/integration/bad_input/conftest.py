"""A small world of tasks, queues and jobs in every state, and digests that show any change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from tests.support import databases
from tests.support.databases import Database
from tests.support.internals import rows
from tests.support.servers import Server


@dataclass(frozen=True, slots=True)
class World:
    """One database for a module: a refusal changes nothing, so the next test can use it."""

    database: Database
    looker: psycopg.Connection[Any]
    jobs: dict[str, str]

    def contents(self) -> dict[str, str]:
        """Return a digest of every row of every table."""
        return rows.digests(self.looker)

    def fill(self, statement: str) -> str:
        """Replace states in angle brackets with the ids of jobs in these states."""
        for name, job in self.jobs.items():
            statement = statement.replace(f"<{name}>", f"'{job}'::uuid")
        return statement


@pytest.fixture(scope="module")
def world(server: Server, template: str) -> Iterator[World]:
    with databases.fresh(server, template) as database:
        yield World(database, database.superuser(), _populate(database))


def _populate(database: Database) -> dict[str, str]:
    operator = database.connect("trunkline_operator")
    worker = database.connect("trunkline_worker")

    def enqueue(arguments: str) -> str:
        query = f"select job_id from trunkline.enqueue(p_task => 'known'{arguments})"
        row = operator.execute(query.encode()).fetchone()
        assert row is not None
        return str(row[0])

    def claim(queue: str) -> None:
        row = worker.execute(
            "select job_id from trunkline.claim(p_worker => 'w', p_queues => array[%s])", (queue,)
        ).fetchone()
        assert row is not None

    for task in ("known", "other"):
        operator.execute("select trunkline.register_task(p_task => %s)", (task,))
    jobs = {
        "ready": enqueue(", p_idempotency_key => 'k'"),
        "running": enqueue(", p_queue => 'a'"),
        "completed": enqueue(", p_queue => 'b'"),
        "dead": enqueue(", p_queue => 'c', p_unique_key => 'u'"),
    }
    for queue in "abc":
        claim(queue)
    worker.execute(
        "select trunkline.complete('w', p_jobs => array[%s::uuid], p_attempts => '{1}')",
        (jobs["completed"],),
    )
    worker.execute(
        "select trunkline.fail(p_worker => 'w', p_jobs => array[%s::uuid], p_attempts => '{1}',"
        " p_retryable => '{false}')",
        (jobs["dead"],),
    )
    # This job holds the key that a retry of the dead one would need.
    jobs["holder"] = enqueue(", p_queue => 'd', p_unique_key => 'u'")
    jobs["full"] = enqueue(", p_queue => 'full'")
    operator.execute(
        """select trunkline.set_limit('api', '{"tokens_per_minute": 1000}'),"""
        """ trunkline.set_limit('model/{model}', '{"concurrency": 1}'),"""
        """ trunkline.set_limit('deep', '{"depth_limit": 0}'),"""
        """ trunkline.set_limit('spent', '{"quota": 0}')"""
    )
    tasks = {
        "limited": "api",
        "keyed": "model/{model}",
        "lost": "nowhere",
        "crowded": "deep",
        "broke": "spent",
    }
    for task, limit in tasks.items():
        operator.execute(
            "select trunkline.register_task(p_task => %s, p_limits => array[%s])", (task, limit)
        )
    operator.execute("select trunkline.set_storage_quota(null, 10)")
    operator.execute("select trunkline.limit_queue(p_queue => 'full', p_max_depth => 1)")
    operator.execute("select trunkline.pause_queue(p_queue => 'closed', p_refuse_enqueue => true)")
    operator.close()
    worker.close()
    return jobs
