"""Two tenants try every route against each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.http.site import SECRET, Api, Site, token
from trunkline.http import ApiSettings, JwtSettings, Operation
from trunkline.operate import SyncOperator


@pytest.fixture(scope="module")
def made(site: Site) -> Iterator[dict[str, dict[str, str]]]:
    """Ids of each tenant: a job, a workflow, an artifact."""
    api = Api(site)
    found: dict[str, dict[str, str]] = {}
    for tenant in "ab":
        bearer = token(tenant=tenant)
        body = {"task": "report", "payload": {"secret": f"of {tenant}"}, "tags": [f"tag {tenant}"]}
        job = api.ok("POST", "/v1/jobs", bearer=bearer, json=body)["job_id"]
        graph = {"name": f"flow of {tenant}", "steps": [{"name": "one", "task": "report"}]}
        flow = api.ok("POST", "/v1/workflows", bearer=bearer, json=graph)["workflow_id"]
        found[tenant] = {"job": job, "workflow": flow, "artifact": artifact_of(site, tenant)}
    yield found
    api.close()


def artifact_of(site: Site, tenant: str) -> str:
    with site.database.superuser() as worker:

        def value(query: str, *arguments: Any) -> Any:
            row = worker.execute(query.encode(), arguments).fetchone()
            assert row is not None
            return row

        queue = f"files of {tenant}"
        value("select trunkline.enqueue('report', p_queue => %s, p_tenant => %s)", queue, tenant)
        worker.execute("select trunkline.register_worker('w', p_pulse_interval => '1 hour')")
        (job,) = value("select job_id from trunkline.claim('w', array[%s])", queue)
        found, path = value(
            "select artifact_id::text, path from trunkline.begin_artifact('w', %s, 1, 'song')", job
        )
        value("select trunkline.stage_artifact('w', %s, 1, %s, 7, %s)", job, path, "0" * 64)
        value("select trunkline.complete('w', array[%s::uuid], '{1}')", job)
        return str(found)


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def told(response: httpx2.Response) -> dict[str, Any]:
    """Return an answer without the ids of the request, which it may repeat."""
    answer: dict[str, Any] = json.loads(_ID.sub("id", response.text))
    answer.pop("request_id", None)
    return answer


BODIES: dict[str, dict[str, Any]] = {
    "create_job": {"task": "report"},
    "create_jobs": {"jobs": [{"task": "report"}]},
    "start_workflow": {"name": "w", "steps": [{"name": "one", "task": "report"}]},
    "start_batch": {"name": "w", "jobs": [{"task": "report"}]},
    "reprioritise_job": {"priority": 1},
    "change_jobs": {"action": "cancel", "filter": {"tenant": "b"}},
    "replay_dead": {"filter": {"tenant": "b"}},
    "send_event": {"name": "go", "key": "k"},
    "set_limit": {"parts": {"concurrency": 1}},
    "set_queue": {"ageing": True},
    "set_schedule": {"cron": "@daily", "task": "report", "tenant": "b"},
    "set_setting": {"value": "1 hour"},
}
# What anybody may read, since it says nothing of tenants.
OPEN = {"health", "ready"}
# What each kind of caller may call with success; all else is refused with 403 or 404.
OF_TENANTS = {
    "create_job", "create_jobs", "list_jobs", "count_jobs", "start_workflow", "start_batch",
    "list_dead", "list_workflows", "list_artifacts", "send_event",
}  # fmt: skip


def operations() -> list[Operation]:
    from trunkline.http.v1 import ROUTES  # noqa: PLC0415 - after the plugin has loaded

    return [operation for room in ROUTES for operation in room.operations]


def send(api: Api, operation: Operation, ids: dict[str, str], bearer: str) -> Any:
    path = operation.path.replace(":path}", "}")
    for name, is_id in operation.parameters.items():
        path = path.replace(f"{{{name}}}", ids.get(name, str(uuid4())) if is_id else "report")
    body = BODIES.get(operation.endpoint.__name__)
    if body is None and operation.body is not None:
        body = {}
    return api.send(operation.method, path, bearer=bearer, json=body)


@pytest.mark.parametrize("operation", operations(), ids=lambda found: found.endpoint.__name__)
def test_a_tenant_learns_nothing_of_another(
    api: Api, made: dict[str, dict[str, str]], operation: Operation
) -> None:
    """No row of another is seen or written, and a foreign id is an unknown one."""
    name = operation.endpoint.__name__
    bearer = token(tenant="a")
    foreign = send(api, operation, made["b"], bearer)
    unknown = send(api, operation, {}, bearer)
    if name in OPEN | OF_TENANTS:
        assert foreign.status_code < 300 or name == "health", foreign.text
        for trace in (*made["b"].values(), "of b", "tag b"):
            assert trace not in foreign.text
        return
    assert foreign.status_code in {403, 404}, foreign.text
    assert (foreign.status_code, told(foreign)) == (unknown.status_code, told(unknown))


def test_what_a_tenant_did_to_another_changed_nothing(
    api: Api, made: dict[str, dict[str, str]]
) -> None:
    for name, path in (("job", "jobs"), ("workflow", "workflows"), ("artifact", "artifacts")):
        own = api.ok("GET", f"/v1/{path}/{made['b'][name]}", bearer=token(tenant="b"))
        assert own["tenant"] == "b"
        assert own.get("state", "ready") in {"ready", "queued"}
        assert own.get("deleted_at") is None


def test_a_tenant_reads_and_cancels_its_own(api: Api, made: dict[str, dict[str, str]]) -> None:
    bearer = token(tenant="a")
    jobs = api.ok("GET", "/v1/jobs?limit=1000", bearer=bearer)["jobs"]
    assert made["a"]["job"] in {job["id"] for job in jobs}
    assert {job["tenant"] for job in jobs} == {"a"}
    path = f"/v1/jobs/{made['a']['job']}"
    assert api.ok("GET", path, bearer=bearer)["payload"] == {"secret": "of a"}
    assert api.ok("POST", f"{path}/cancel", bearer=bearer)["outcome"] == "cancelled"
    flow = f"/v1/workflows/{made['a']['workflow']}"
    assert api.ok("POST", f"{flow}/cancel", bearer=bearer)["outcome"]
    artifacts = api.ok("GET", "/v1/artifacts", bearer=bearer)["artifacts"]
    assert [artifact["id"] for artifact in artifacts] == [made["a"]["artifact"]]


@pytest.mark.parametrize("claims", [{}, {"tenant": ""}, {"tenant": None}, {"tenant": ["a"]}])
def test_a_token_without_a_tenant_does_nothing(api: Api, claims: dict[str, Any]) -> None:
    bearer = token(**claims)
    assert api.ok("GET", "/v1/jobs", bearer=bearer)["jobs"] == []
    response = api.send("POST", "/v1/jobs", bearer=bearer, json={"task": "report"})
    # A list is some text, and so the name of a tenant that has nothing.
    assert response.status_code == (202 if claims.get("tenant") else 403)


def test_a_tenant_cannot_name_another(api: Api) -> None:
    body = {"task": "report", "tenant": "b"}
    assert api.refused(403, "POST", "/v1/jobs", bearer=token(tenant="a"), json=body)


def test_claims_set_by_a_request_end_with_it(site: Site) -> None:
    """One connection serves the tenants in turn."""
    settings = ApiSettings(connections=1, jwt=JwtSettings(secret=SECRET, roles=(site.tenant_role,)))
    api = Api(site, settings)
    for _ in range(3):
        for tenant in "ab":
            jobs = api.ok("GET", "/v1/jobs", bearer=token(tenant=tenant))["jobs"]
            assert {job["tenant"] for job in jobs} <= {tenant}
        assert len(api.ok("GET", "/v1/jobs?limit=1000", by="reader")["jobs"]) > 1
    api.close()


def test_an_api_that_no_setting_names_shows_tenants_nothing(site: Site) -> None:
    """Claims are believed of configured logins alone."""
    with SyncOperator(site.database.superuser_dsn) as operator:
        before = operator.settings.get("authenticators").value
        operator.settings.set("authenticators", "somebody")
        api = Api(site)
        try:
            assert api.ok("GET", "/v1/jobs", bearer=token(tenant="a"))["jobs"] == []
            body = {"task": "report"}
            api.refused(403, "POST", "/v1/jobs", bearer=token(tenant="a"), json=body)
        finally:
            operator.settings.set("authenticators", before)
            api.close()
