"""Numbers of a session that acts for one tenant, behind more jobs of others than are read."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from tests.cli.driving import Cli
from tests.support.databases import Database

Check = tuple[bool, dict[str, int]]
READ = 10_000


def deferred(database: Database, tenant: str, jobs: int) -> None:
    """Let so many jobs of a tenant be put off for a day."""
    connection = database.superuser()
    for _ in range(max(1, jobs // 1000)):
        connection.execute(
            "select count(*) from trunkline.enqueue_many((select jsonb_agg(jsonb_build_object("
            " 'task', 'report', 'tenant', %s::text)) from generate_series(1, %s::int)))",
            (tenant, min(jobs, 1000)),
        )
        connection.execute(
            "with c as materialized (select * from trunkline.claim('w', p_limit => 1000))"
            " select count(*) from trunkline.snooze('w', (select array_agg(c.job_id) from c),"
            " (select array_agg(c.attempt) from c),"
            " (select array_agg(interval '1 day') from c))"
        )


def health(connection: psycopg.Connection[Any]) -> Check:
    row = connection.execute(
        "select ok, detail from trunkline.health() where \"check\" = 'deferred work'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def prepare(database: Database) -> None:
    database.superuser().execute(
        "select trunkline.register_task('report'), trunkline.register_worker('w')"
    )


def test_health_counts_own_deferred_jobs_exactly_if_there_are_few(database: Database) -> None:
    prepare(database)
    deferred(database, "ours", 1)
    own = database.connect("trunkline_operator")
    own.execute("select set_config('trunkline.tenant', 'ours', false)")
    database.move_time("10 days")
    assert health(own) == (False, {"jobs": 1})


def test_health_reports_that_jobs_of_others_may_hide_own_ones(database: Database) -> None:
    prepare(database)
    deferred(database, "theirs", READ)
    database.move_time("1 hour")
    deferred(database, "ours", 1)
    database.move_time("10 days")
    everybody = database.connect("trunkline_operator")
    assert health(everybody) == (False, {"jobs": READ, "counted_up_to": READ})
    own = database.connect("trunkline_operator")
    own.execute("select set_config('trunkline.tenant', 'ours', false)")
    assert health(own) == (True, {"jobs": 0, "counted_up_to": 0})
    checks = Cli(f"{database.dsn}&options=-ctrunkline.tenant%3Dours").run("doctor", "--json")
    messages = {check["check"]: check["message"] for check in json.loads(checks.stdout)["checks"]}
    assert messages["deferred work"] == "none among those deferred the longest"
