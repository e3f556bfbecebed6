"""/v1/jobs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.http.site import Api


def test_a_job_is_accepted_and_read_where_location_says(api: Api) -> None:
    body = {"task": "report", "payload": {"n": 1}, "tags": ["x"], "priority": 3}
    response = api.send("POST", "/v1/jobs", by="producer", json=body)
    assert response.status_code == 202
    accepted = response.json()
    assert accepted["created"] is True
    assert response.headers["location"] == accepted["href"] == f"/v1/jobs/{accepted['job_id']}"
    job = api.ok("GET", accepted["href"], by="producer")
    assert (job["state"], job["payload"], job["tags"], job["priority"]) == (
        "ready", {"n": 1}, ["x"], 3,
    )  # fmt: skip


def test_an_idempotency_key_returns_the_first_job_and_refuses_another_body(api: Api) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    body = {"task": "report", "payload": {"a": 1, "b": 2}}
    first = api.ok("POST", "/v1/jobs", by="producer", json=body, headers=key)
    again = {"task": "report", "payload": {"b": 2, "a": 1}}
    second = api.ok("POST", "/v1/jobs", by="producer", json=again, headers=key)
    assert (second["job_id"], second["created"]) == (first["job_id"], False)
    body["payload"] = {"a": 2}
    problem = api.refused(409, "POST", "/v1/jobs", by="producer", json=body, headers=key)
    assert problem["code"] == "idempotency_mismatch"


def test_pages_follow_each_other_by_link(api: Api) -> None:
    tag = uuid4().hex
    jobs = [{"task": "report", "tags": [tag]} for _ in range(5)]
    made = api.ok("POST", "/v1/jobs/many", by="producer", json={"jobs": jobs})["jobs"]
    seen: list[str] = []
    path = f"/v1/jobs?tag={tag}&limit=2"
    while path:
        response = api.send("GET", path, by="reader")
        seen += [job["id"] for job in response.json()["jobs"]]
        path = response.links.get("next", {}).get("url", "")
    assert seen == [job["job_id"] for job in reversed(made)]
    counts = api.ok("GET", f"/v1/jobs/counts?tag={tag}", by="reader")["counts"]
    assert {"state": "ready", "jobs": 5, "more": False} in counts


def test_an_unchanged_job_is_answered_with_304(api: Api) -> None:
    href = api.ok("POST", "/v1/jobs", by="producer", json={"task": "report"})["href"]
    tag = api.send("GET", href, by="reader").headers["etag"]
    unchanged = api.send("GET", href, by="reader", headers={"If-None-Match": tag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    api.ok("POST", href + "/cancel", by="producer")
    changed = api.send("GET", href, by="reader", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["state"] == "cancelled"


def test_a_job_is_reprioritised_cancelled_and_retried(api: Api) -> None:
    href = api.ok("POST", "/v1/jobs", by="producer", json={"task": "report"})["href"]
    api.ok("POST", href + "/priority", by="operator", json={"priority": 9})
    assert api.ok("GET", href, by="reader")["priority"] == 9
    cancelled = api.ok("POST", href + "/cancel", by="operator", json={"reason": "too late"})
    assert cancelled["outcome"] == "cancelled"
    response = api.send("POST", href + "/retry", by="operator", json={})
    assert response.status_code == 202
    retried = api.ok("GET", response.headers["location"], by="reader")
    assert retried["retry_of"] == href.rpartition("/")[2]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_request"),
        (b'{"task": "\xff"}', 400, "malformed_request"),
        (b'{"task": "report", "payload": {"a": ' + b"[" * 50_000, 400, "malformed_request"),
        (b"[]", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b'{"task": 3}', 422, "invalid_request"),
        (b'{"task": "report", "colour": "red"}', 422, "invalid_request"),
        (b'{"task": "report", "priority": 50}', 422, "invalid_request"),
        (b'{"task": "report", "priority": "5"}', 422, "invalid_request"),
        (b'{"task": "report", "run_at": "2030-01-01T00:00:00"}', 422, "invalid_request"),
        (b'{"task": "report\\u0000"}', 422, "invalid_request"),
        (b'{"task": "report", "payload": {"a": "\\u0000"}}', 422, "invalid_request"),
        (b'{"task": "report", "payload": []}', 422, "invalid_request"),
        (b'{"task": "nobody"}', 422, "unknown_task"),
        (b'{"task": "report", "cost": {"tokens": 1}}', 422, "invalid_cost"),
    ],
)
def test_a_bad_body_is_refused(api: Api, body: bytes, status: int, code: str) -> None:
    problem = api.refused(status, "POST", "/v1/jobs", by="producer", content=body)
    assert problem["code"] == code
    assert problem["hint"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=x", "colour=red", "state=asleep", "limit=1&limit=2",
     "created_from=yesterday", "job_ids=1", "cursor=nonsense", "task=%00"],
)  # fmt: skip
def test_a_bad_query_is_refused(api: Api, query: str) -> None:
    api.refused(422, "GET", f"/v1/jobs?{query}", by="reader")


@pytest.mark.parametrize(
    "job", ["1", "x" * 500, "..%2f..", "{00000000-0000-0000-0000-000000000000}"]
)
def test_what_is_no_id_is_refused(api: Api, job: str) -> None:
    response = api.send("GET", f"/v1/jobs/{job}", by="reader")
    assert response.status_code in {404, 422}
    assert response.headers["content-type"] == "application/problem+json"


def test_an_unknown_job_is_404(api: Api) -> None:
    assert api.refused(404, "GET", f"/v1/jobs/{uuid4()}", by="reader")["code"] == "unknown_job"


def test_a_reader_changes_nothing(api: Api) -> None:
    problem = api.refused(403, "POST", "/v1/jobs", by="reader", json={"task": "report"})
    assert problem["code"] == "not_permitted"
