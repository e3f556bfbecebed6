"""Service keys: created, used, narrowed, revoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.http.site import Api, Site
from tests.support.internals import rows
from trunkline.errors import InvalidArgument, NeedsAllTenants, UnknownServiceKey
from trunkline.http import ApiSettings, Caller, CallerSession
from trunkline.http.authentication import service_keys
from trunkline.operate import SyncOperator


def test_a_key_is_stored_as_a_hash_and_listed_without_it(site: Site, api: Api) -> None:
    with SyncOperator(site.database.superuser_dsn) as operator:
        created = operator.keys.create("deploy", "reader", tenant="a")
        api.ok("GET", "/v1/jobs", bearer=created.key)
        (listed,) = [key for key in operator.keys.list() if key.key_id == created.key_id]
        assert (listed.name, listed.role, listed.tenant, listed.active) == (
            "deploy", "reader", "a", True,
        )  # fmt: skip
        assert listed.last_used_at is not None
        (entry,) = operator.log.list(object_name=created.key_id)
    secret = created.key.rpartition("_")[2]
    with site.database.superuser() as superuser:
        stored = [str(row) for row in rows.contents(superuser, "service_keys")]
    assert any(created.key_id in row for row in stored)
    assert secret not in "".join(stored)
    assert secret not in str(entry)


def test_a_revoked_or_expired_key_is_refused(
    site: Site, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_keys, "_FRESH", 0.0)
    with SyncOperator(site.database.superuser_dsn) as operator:
        created = operator.keys.create("short", "reader")
        api.ok("GET", "/v1/jobs", bearer=created.key)
        assert operator.keys.revoke(created.key_id) is True
        assert operator.keys.revoke(created.key_id) is False
        api.refused(401, "GET", "/v1/jobs", bearer=created.key)
        late = operator.keys.create("late", "reader", expires_at=datetime.now(UTC) + timedelta(1))
        site.database.move_time("2 days")
        try:
            api.refused(401, "GET", "/v1/jobs", bearer=late.key)
        finally:
            site.database.move_time("-2 days")
        with pytest.raises(UnknownServiceKey):
            operator.keys.revoke("nobody")


def test_another_secret_with_a_known_id_is_refused(api: Api) -> None:
    key = api.site.keys["operator"]
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    for bearer in (wrong, key[:-1], key + "x", "tlk_", "tlk_aaaaaaaaaaaa_" + "a" * 43):
        assert api.refused(401, "GET", "/v1/jobs", bearer=bearer)["code"] == "sign_in_refused"


def test_a_key_of_a_tenant_sees_its_tenant_alone(api: Api) -> None:
    own = api.ok("POST", "/v1/jobs", by="a", json={"task": "report"})["href"]
    api.ok("GET", own, by="a")
    assert api.refused(404, "GET", own, by="b")["code"] == "unknown_job"
    body = {"task": "report", "tenant": "b"}
    assert api.refused(403, "POST", "/v1/jobs", by="a", json=body)["code"] == "tenant_denied"


def test_failed_sign_ins_of_an_address_are_limited(site: Site) -> None:
    api = Api(site, ApiSettings(sign_in_failures=3))
    try:
        for _ in range(3):
            api.refused(401, "GET", "/v1/jobs", bearer="tlk_wrong")
        problem = api.refused(429, "GET", "/v1/jobs", bearer=site.keys["reader"])
        assert problem["code"] == "too_many_requests"
        response = api.send("GET", "/v1/jobs", bearer="tlk_wrong")
        assert 0 < int(response.headers["retry-after"]) <= 61
        # Requests without credentials are not affected.
        assert api.send("GET", "/ready").status_code == 200
    finally:
        api.close()


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer  ", "tlk_x"])
def test_other_credentials_are_refused(api: Api, header: str) -> None:
    api.refused(401, "GET", "/v1/jobs", headers={"Authorization": header})


def test_anonymous_callers_get_health_alone(api: Api) -> None:
    for operation in api.app.state.operations:
        path = operation.path.replace("{", "").replace("}", "")
        response = api.send(operation.method, path)
        if path.endswith("/events") and operation.method == "GET":
            # A stream also takes a ticket, for the id that this path lacks.
            assert response.status_code in {401, 422}, operation
        else:
            assert (response.status_code == 401) is not operation.is_public, operation


def test_only_an_operator_for_all_tenants_manages_keys(site: Site) -> None:
    for role in ("producer", "reader", "worker"):
        with site.database.connect(f"trunkline_{role}") as connection:
            for call in (
                "use_service_key('x')",
                "revoke_service_key('x')",
                "create_service_key('aaaaaaaaaaaa', repeat('0', 64), 'n', 'operator')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"select trunkline.{call}".encode())
    narrowed = SyncOperator(site.database.superuser_dsn, tenant="a")
    with narrowed, pytest.raises(NeedsAllTenants):
        narrowed.keys.create("n", "operator")
    with SyncOperator(site.database.superuser_dsn) as operator:
        for name, role in (("", "reader"), ("x" * 101, "reader"), ("n", "worker")):
            with pytest.raises(InvalidArgument):
                operator.keys.create(name, role)  # type: ignore[arg-type]


def test_a_route_cannot_widen_its_caller(api: Api) -> None:
    """Whatever a route passes on, the tenant and the role of the caller win."""
    hrefs = {
        name: api.ok("POST", "/v1/jobs", by=name, json={"task": "report"})["href"] for name in "ab"
    }
    caller = Caller("key", "of a", role="trunkline_producer", tenant="a")
    resources = api.app.state.resources
    session = CallerSession(caller, resources.pool, resources.store)
    operator = session.operator.acting("somebody", tenant="b")
    found = api.run(operator.jobs.find())
    assert {job.tenant for job in found.jobs} == {"a"}
    assert hrefs["b"].rpartition("/")[2] not in {str(job.id) for job in found.jobs}
