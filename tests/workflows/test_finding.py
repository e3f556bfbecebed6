"""Pages of workflows are found by name, state and tenant, newest first."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.workflows.flow import Flow, job


def _found(flow: Flow, **filters: Any) -> list[UUID]:
    named = ", ".join(f"p_{name} => %s" for name in filters)
    row = flow.operator.connection.execute(
        f"select trunkline.find_workflows({named})", tuple(filters.values())
    ).fetchone()
    assert row is not None
    ids: list[UUID] = row[0]
    return ids


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["other", "queued", "running", "failed", "done"]),
        ({"names": ["done", "other", "unknown"]}, ["other", "done"]),
        ({"states": ["queued"]}, ["other", "queued"]),
        ({"states": ["running"]}, ["running"]),
        ({"states": ["running", "queued"], "names": ["running"]}, ["running"]),
        ({"states": ["completed", "running"]}, ["running", "done"]),
        ({"states": ["failed", "queued"], "limit": 2}, ["other", "queued"]),
        ({"tenant": "b"}, ["other"]),
        ({"names": []}, []),
    ],
)
def test_workflows_are_found_by_each_filter(
    flow: Flow, filters: dict[str, Any], names: list[str]
) -> None:
    ids = {"done": flow.start([job("a")], name="done").workflow_id}
    flow.run()
    ids["failed"] = flow.start([job("a")], name="failed").workflow_id
    flow.run(fail=["a"])
    ids["running"] = flow.start([job("a"), job("b")], name="running").workflow_id
    flow.worker.claim("w", 1)
    ids["queued"] = flow.start([job("a")], name="queued").workflow_id
    ids["other"] = flow.start([job("a")], name="other", tenant="b").workflow_id
    assert _found(flow, **filters) == [ids[name] for name in names]


def test_pages_follow_each_other_without_gaps(flow: Flow) -> None:
    ids = [flow.start([job("a")]).workflow_id for _ in range(5)][::-1]
    first = _found(flow, limit=2)
    second = _found(flow, limit=2, before=first[-1])
    assert [first, second] == [ids[:2], ids[2:4]]
    assert _found(flow, states=["queued"], limit=2, before=second[-1]) == ids[4:]
