"""Views show a session of one tenant nothing by which others could be known."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.support.databases import Database

Connection = psycopg.Connection[Any]
ROLES = ("producer", "worker", "operator", "reader")


@pytest.fixture
def everybody(database: Database) -> Connection:
    """A session that acts for all tenants; names of tenant b contain the word secret."""
    connection = database.superuser()
    for call in (
        "set_limit('secret/{tenant}', '{\"requests_per_minute\": 9, \"quota\": 9}')",
        "set_limit('secret', '{\"breaker_failures\": 9}')",
        "register_task('secret_task', p_limits => array['secret', 'secret/{tenant}'])",
        "register_task('secret_other_task')",
        "register_task('own_task')",
        "register_task('own_finished_task')",
        "register_task('own_yearly_task')",
        "register_task('other_task')",
        "limit_queue('secret_queue', 9)",
        "enqueue('secret_task', p_tenant => 'b', p_queue => 'secret_queue')",
        "register_worker('secret_worker')",
        "claim('secret_worker', array['secret_queue'])",
        "enqueue('secret_task', p_tenant => 'b', p_queue => 'secret_queue')",
        "set_schedule('secret_schedule', '@yearly', 'secret_task', p_tenant => 'b')",
        "set_schedule('secret_shared', '@yearly', 'secret_other_task')",
        "set_schedule('own_schedule', '@yearly', 'own_yearly_task', p_tenant => 'a')",
        "enqueue('own_task', p_tenant => 'a')",
        "enqueue('own_finished_task', p_tenant => 'a', p_queue => 'own_queue')",
    ):
        connection.execute(f"select trunkline.{call}".encode())
    connection.execute(
        "with c as materialized (select * from trunkline.claim('w', array['own_queue']))"
        " select trunkline.complete('w', array[c.job_id], array[c.attempt]) from c"
    )
    return connection


def narrowed(database: Database, role: str) -> Connection:
    connection = database.connect(f"trunkline_{role}")
    connection.execute("select set_config('trunkline.tenant', 'a', false)")
    return connection


def readable(connection: Connection) -> list[str]:
    rows = connection.execute(
        "select c.relname from pg_class as c where c.relnamespace = 'trunkline'::regnamespace"
        " and c.relkind = 'v' and has_table_privilege(c.oid, 'select') order by 1"
    )
    return [name for (name,) in rows]


def text(connection: Connection, view: str) -> str:
    rows = connection.execute(f"select v::text from trunkline.{view} as v".encode())
    return "\n".join(row for (row,) in rows)


@pytest.mark.parametrize("role", ROLES)
def test_no_view_shows_names_of_others(
    database: Database, everybody: Connection, role: str
) -> None:
    connection = narrowed(database, role)
    views = readable(connection)
    assert "tasks" in views
    assert [view for view in views if "secret" in text(connection, view)] == []


def test_the_same_views_show_them_to_a_session_for_all(
    database: Database, everybody: Connection
) -> None:
    operator = database.connect("trunkline_operator")
    shown = {view for view in readable(operator) if "secret" in text(operator, view)}
    assert shown >= {
        *("jobs", "tasks", "limits", "buckets", "queues", "schedules", "workers", "quotas"),
        *("breakers", "stale_monitor"),
    }


@pytest.mark.parametrize("role", ROLES)
def test_tasks_are_those_of_the_tenant_s_jobs_and_schedules(
    database: Database, everybody: Connection, role: str
) -> None:
    rows = narrowed(database, role).execute("select task from trunkline.tasks order by task")
    assert [task for (task,) in rows] == ["own_finished_task", "own_task", "own_yearly_task"]


def test_a_task_that_is_not_shown_works_by_its_name(
    database: Database, everybody: Connection
) -> None:
    producer = narrowed(database, "producer")
    producer.execute("select trunkline.register_task('other_task')")
    row = producer.execute("select (trunkline.enqueue('other_task')).created").fetchone()
    assert row == (True,)
    worker = narrowed(database, "worker")
    worker.execute("select trunkline.register_task('other_task')")
    rows = worker.execute("select task from trunkline.claim('w', p_tasks => '{other_task}')")
    assert rows.fetchall() == [("other_task",)]
    shown = producer.execute("select task from trunkline.tasks where task = 'other_task'")
    assert shown.fetchall() == [("other_task",)]
