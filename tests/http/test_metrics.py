"""/metrics, /health and /ready."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.site import Api, Site
from trunkline.http import ApiSettings
from trunkline.operate import SyncOperator


def families(api: Api) -> dict[str, dict[tuple[str, ...], float]]:
    response = api.send("GET", "/metrics", by="reader")
    assert response.status_code == 200, response.text
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(response.text)
    }


def test_metrics_say_what_the_views_say(site: Site, api: Api) -> None:
    for _ in range(3):
        api.ok("POST", "/v1/jobs", by="producer", json={"task": "report", "queue": "counted"})
    with SyncOperator(site.database.superuser_dsn) as operator:
        operator.limits.set("api", {"concurrency": 3, "quota": 100, "breaker_failures": 5})
        operator.duties.run("promote")
    found = families(api)
    assert found["trunkline_jobs"]["counted", "ready"] == 3
    assert found["trunkline_duty_runs"][("promote",)] >= 1
    assert found["trunkline_limit_in_use"][("api",)] == 0
    assert found["trunkline_connections"][(site.login,)] >= 1
    assert found["trunkline_connections_allowed"][()] > 10
    assert found["trunkline_table_bytes"][("waiting",)] > 0


def test_metrics_need_a_caller_for_all_tenants_or_a_setting(site: Site, api: Api) -> None:
    api.refused(401, "GET", "/metrics")
    api.refused(403, "GET", "/metrics", bearer=api.tenant("a"))
    public = Api(site, ApiSettings(public_metrics=True))
    try:
        assert public.send("GET", "/metrics").status_code == 200
    finally:
        public.close()


def test_promtool_accepts_the_metrics(api: Api) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is in Debian's package prometheus")
    text = api.send("GET", "/metrics", by="reader").content
    command = [promtool, "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def test_health_is_503_until_no_duty_is_late(site: Site, api: Api) -> None:
    with SyncOperator(site.database.superuser_dsn) as operator:
        operator.duties.run_due()
        assert api.send("GET", "/health").json() == {"status": "ok", "late_duties": 0}
        assert api.send("GET", "/ready").status_code == 200
        site.database.move_time("2 days")
        later = Api(site)
        try:
            response = later.send("GET", "/health")
            assert response.status_code == 503
            assert response.json()["late_duties"] > 0
            assert later.send("GET", "/ready").status_code == 200
        finally:
            later.close()
            site.database.move_time("-2 days")


def test_a_database_that_is_away_is_503_without_its_address(site: Site) -> None:
    api = Api(site, dsn="postgresql://nobody@127.0.0.1:1/nothing")
    try:
        assert api.send("GET", "/health").status_code == 503
        assert api.send("GET", "/ready").status_code == 503
        problem = api.refused(503, "GET", "/v1/jobs", by="reader")
        assert problem["retryable"] is True
        assert "127.0.0.1" not in str(problem)
    finally:
        api.close()
