"""`operator.diagnose()`; what the doctor adds to it is tried in tests/cli."""

from __future__ import annotations

import asyncio

from psycopg.types.json import Jsonb

from tests.operate.conftest import Scene, dsn_as
from tests.support import pgbouncer
from trunkline.errors import ConnectionLost
from trunkline.operate import AsyncOperator, Finding, SyncOperator

CHECKS = [
    *("server", "schema", "role", "clock", "settings", "duties", "artifacts", "breakers"),
    "claims",
    *("default partitions", "deferred work", "set aside", "stale work"),
    *("workflows", "workers", "store"),
    *("unserved jobs", "dead letters", "disk"),
]


def by_check(operator: SyncOperator) -> dict[str, Finding]:
    return {finding.check: finding for finding in operator.diagnose()}


def test_an_operator_and_a_reader_get_the_findings_of_all_checks(scene: Scene) -> None:
    scene.bury(2)
    for operator in (scene.operator, scene.as_role("reader")):
        findings = by_check(operator)
        assert list(findings) == CHECKS
        dead = findings["dead letters"]
        assert (dead.level, dead.message) == ("warn", "2 not acknowledged")
        assert dead.hint is not None
        assert "trunkline dead list" in dead.hint
        assert findings["workers"].hint == "Start one with: trunkline worker APP"
        assert findings["server"].level == "ok"


def test_the_asynchronous_operator_yields_the_same_findings(scene: Scene) -> None:
    async def checks() -> list[str]:
        dsn = dsn_as(scene.database, "operator")
        async with AsyncOperator(dsn, connections=1) as operator:
            return [finding.check async for finding in operator.diagnose()]

    assert asyncio.run(checks()) == CHECKS


def test_a_check_that_the_role_may_not_make_is_a_finding(scene: Scene) -> None:
    findings = list(scene.as_role("producer").diagnose())
    refused = [finding for finding in findings if finding.message.startswith("this role may not")]
    assert len(refused) > 1
    for finding in refused:
        assert (finding.check, finding.level) == ("role", "warn")
        assert finding.hint == "Grant it trunkline_operator or trunkline_reader."
    # The others are made nevertheless.
    assert {"server", "settings", "disk"} <= {finding.check for finding in findings}


def test_a_setting_is_a_failure_only_behind_a_pooler(scene: Scene) -> None:
    database = scene.database
    database.superuser().execute(
        f"alter database {database.name} set default_transaction_read_only = on".encode()
    )
    with SyncOperator(database.superuser_dsn) as direct:
        assert by_check(direct)["settings"].level == "warn"
    with (
        pgbouncer.start(database.server) as pooler,
        SyncOperator(pooler.dsn(database.superuser_dsn)) as pooled,
    ):
        finding = by_check(pooled)["settings"]
    assert finding.level == "fail"
    assert finding.message.startswith("default_transaction_read_only is on, set by database ")


def test_a_lost_connection_is_a_finding_of_the_check_it_ended(scene: Scene) -> None:
    operator = SyncOperator(dsn_as(scene.database, "operator"), connections=1)
    with operator:
        findings = operator.diagnose()
        assert next(findings).check == "server"
        scene.database.superuser().execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'trunkline operate' and datname = current_database()"
        )
        rest = list(findings)
    (lost,) = [finding for finding in rest if ConnectionLost.code in finding.message]
    assert (lost.check, lost.level) == ("server", "fail")
    assert rest[-1].check == "disk"


def _register(scene: Scene, worker: str, host: str, store: str | None) -> None:
    scene.calls.connection.execute(
        "select trunkline.register_worker(%s, p_host => %s, p_detail => %s)",
        (worker, host, Jsonb({} if store is None else {"store": store})),
    )


def test_a_folder_that_workers_on_two_hosts_use_is_a_warning(scene: Scene) -> None:
    _register(scene, "plain", "one", None)
    assert by_check(scene.operator)["store"].message == "no live worker has one"
    _register(scene, "w1", "one", "file:///srv/files")
    _register(scene, "w2", "one", "file:///srv/files")
    finding = by_check(scene.operator)["store"]
    assert (finding.level, finding.message) == ("ok", "file:///srv/files")
    _register(scene, "w3", "two", "file:///srv/files")
    finding = by_check(scene.operator)["store"]
    assert finding.level == "warn"
    assert finding.message == "file:///srv/files is a folder, and workers on one, two use it"
    assert finding.hint is not None
    assert "s3://bucket/prefix" in finding.hint
    # A worker that has stopped does not count.
    scene.calls.connection.execute("select trunkline.stop_worker('w3')")
    assert by_check(scene.operator)["store"].level == "ok"


def test_a_bucket_may_be_used_from_two_hosts_but_two_stores_may_not(scene: Scene) -> None:
    _register(scene, "w1", "one", "s3://files")
    _register(scene, "w2", "two", "s3://files")
    assert by_check(scene.operator)["store"].level == "ok"
    _register(scene, "w3", "two", "s3://other")
    finding = by_check(scene.operator)["store"]
    assert finding.level == "warn"
    assert finding.message == "live workers use different stores: s3://files, s3://other"
