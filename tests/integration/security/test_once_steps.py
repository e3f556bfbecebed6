"""The view of steps that run once per workflow: what it shows, and to whom."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.support.databases import Database


@pytest.fixture
def holders(database: Database) -> dict[str, Any]:
    """A workflow of each of two tenants, whose job has begun the step; the ids of the workflows."""
    operator = database.connect("trunkline_operator")
    worker = database.connect("trunkline_worker")
    operator.execute("select trunkline.register_task('report')")
    found = {}
    for tenant in "ab":
        steps = [{"name": "one", "task": "report", "queue": tenant}]
        graph = {"name": "flow", "tenant": tenant, "steps": steps}
        row = operator.execute(
            "select workflow_id from trunkline.start_workflow(%s)", (Jsonb(graph),)
        ).fetchone()
        assert row is not None
        found[tenant] = row[0]
        claim = "select job_id, attempt from trunkline.claim(%s, array[%s])"
        job = worker.execute(claim, (tenant, tenant)).fetchone()
        assert job is not None
        begin = "select outcome from trunkline.begin_once(%s, %s, %s, 1, 'data')"
        assert worker.execute(begin, (tenant, *job)).fetchone() == ("run",)
        found[f"{tenant} job"] = job
    return found


def test_the_view_shows_the_holder_and_the_result(
    database: Database, holders: dict[str, Any]
) -> None:
    reader = database.connect("trunkline_reader")
    query = (
        "select job_id, attempt, recorded_at is not null, result from trunkline.once_steps"
        " where workflow_id = %s and name = 'data'"
    )
    found = (holders["a"],)
    assert reader.execute(query, found).fetchone() == (*holders["a job"], False, None)
    database.connect("trunkline_worker").execute(
        "select trunkline.record_once('a', %s, %s, 'data', '{\"n\": 1}')", holders["a job"]
    )
    assert reader.execute(query, found).fetchone() == (*holders["a job"], True, {"n": 1})


def test_a_session_of_one_tenant_sees_its_own(database: Database, holders: dict[str, Any]) -> None:
    for role in ("producer", "operator", "reader"):
        connection = database.connect(f"trunkline_{role}")
        query = "select workflow_id from trunkline.once_steps order by workflow_id"
        assert connection.execute(query).fetchall() == [(holders["a"],), (holders["b"],)]
        connection.execute("set trunkline.tenant = 'b'")
        assert connection.execute(query).fetchall() == [(holders["b"],)]


def test_a_session_of_one_tenant_does_not_see_the_sweep_of_the_store(database: Database) -> None:
    connection = database.connect("trunkline_operator")
    query = b"select orphans from trunkline.store_sweep"
    assert connection.execute(query).fetchall() == [(0,)]
    connection.execute("set trunkline.tenant = 'b'")
    assert connection.execute(query).fetchall() == []
