"""``trunkline doctor``."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from tests.cli.driving import Cli, die
from tests.cli.terminal import PROGRAM, Terminal
from tests.support import pgbouncer
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import breaks
from tests.support.servers import Server


def checked(cli: Cli, *options: object, code: int = 0) -> dict[str, Any]:
    result = cli.run("doctor", "--json", *options)
    assert result.exit_code == code, result.stdout
    found = json.loads(result.stdout)
    assert found["ok"] == (code == 0)
    return {check["check"]: check for check in found["checks"]}


def later(cli: Cli, database: Database) -> dict[str, Any]:
    """An hour later. The clock that tests move is a change of the schema, which it says too."""
    database.move_time("1 hour")
    found = checked(cli, code=1)
    assert "trunkline.clock" in found.pop("schema verify")["message"]
    return found


def levels(found: dict[str, Any], level: str) -> set[str]:
    return {name for name, check in found.items() if check["level"] == level}


def look_after(calls: Calls) -> None:
    calls.value("select trunkline.register_worker('w', null, null, 'host', 1, '1')")
    calls.connection.execute("select trunkline.run_duties()")


def test_a_healthy_database_is_all_ok(cli: Cli, calls: Calls) -> None:
    look_after(calls)
    calls.enqueue("send")
    found = checked(cli)
    assert levels(found, "ok") == set(found)
    assert set(found) == {
        *("client", "connection", "server", "schema", "role", "clock", "schema verify", "duties"),
        *("artifacts", "breakers", "claims", "default partitions", "deferred work", "stale work"),
        *("store", "workers", "workflows"),
        "set aside",
        *("unserved jobs", "dead letters", "disk", "listen", "settings"),
    }
    shown = cli.text("doctor").splitlines()
    assert len(shown) == len(found)
    assert all(line.startswith("ok    ") for line in shown)


def test_nobody_there_is_a_warning(cli: Cli, calls: Calls, database: Database) -> None:
    calls.fill(3, task="send")
    die(calls)
    found = later(cli, database)
    assert levels(found, "fail") == set()
    assert levels(found, "warn") >= {"duties", "workers", "unserved jobs", "dead letters"}
    assert "send in mail (3)" in found["unserved jobs"]["message"]
    assert all(found[name]["hint"] for name in levels(found, "warn"))
    assert "-> Start" in cli.run("doctor").stdout


def test_the_hint_about_default_partitions_heals_a_clock_that_stepped_back(
    cli: Cli, calls: Calls, database: Database
) -> None:
    """On the day of installation there is no partition of the day before."""
    look_after(calls)
    database.move_time("-1 day")
    calls.enqueue("send")
    calls.batch("complete", "w", calls.claim().attempts)
    die(calls)
    found = checked(cli, code=1)["default partitions"]
    assert found["level"] == "warn"
    assert "finished" in found["message"]
    assert "events" in found["message"]
    command = found["hint"].partition("trunkline ")[2]
    cli.text(*command.split())
    assert checked(cli, code=1)["default partitions"]["level"] == "ok"


def test_late_duties_despite_a_living_worker_are_a_failure(
    cli: Cli, calls: Calls, database: Database
) -> None:
    later(cli, database)
    calls.value("select trunkline.register_worker('w', null, null, 'host', 1, '1')")
    found = checked(cli, code=1)
    assert found["duties"]["level"] == "fail"
    assert cli.run("doctor").exit_code == 1


def test_a_disabled_duty_is_a_warning(cli: Cli, calls: Calls) -> None:
    look_after(calls)
    cli.text("duties", "disable", "promote")
    found = checked(cli)
    assert levels(found, "warn") == {"disabled duties"}
    assert found["disabled duties"]["message"] == "promote"
    cli.text(*found["disabled duties"]["hint"].partition("trunkline ")[2].split())
    assert levels(checked(cli), "warn") == set()


def test_stale_work_switched_off_claims_and_silent_workers(
    cli: Cli, calls: Calls, database: Database
) -> None:
    look_after(calls)
    calls.enqueue("send")
    calls.claim("w")
    cli.text("settings", "set", "claims_enabled", "false")
    found = later(cli, database)
    assert levels(found, "fail") == {"stale work"}
    assert {"claims", "workers"} <= levels(found, "warn")
    assert "1 silent: w" in found["workers"]["message"]


def test_a_changed_schema_is_named(cli: Cli, database: Database) -> None:
    index = breaks.drop_index(database.superuser())
    found = checked(cli, code=1)
    assert f"missing index {index}" in found["schema verify"]["message"]


def test_a_database_without_schema(server: Server) -> None:
    found = checked(Cli(server.dsn("postgres")), code=1)
    assert found["connection"]["level"] == "ok"
    assert found["schema"]["level"] == "fail"
    assert "trunkline schema install" in found["schema"]["hint"]


def test_no_server_at_all() -> None:
    found = checked(Cli("postgresql://127.0.0.1:1/none"), code=1)
    assert levels(found, "fail") == {"server"}
    assert found["server"]["hint"]


def test_an_address_for_listening_where_nobody_is(cli: Cli, calls: Calls) -> None:
    look_after(calls)
    found = checked(cli, "--listen-dsn", "postgresql://127.0.0.1:1/none", code=1)
    assert levels(found, "fail") == {"listen"}
    assert found["listen"]["hint"]


def test_the_doctor_works_for_a_role_that_may_read_little(cli: Cli, database: Database) -> None:
    with psycopg.connect(database.superuser_dsn, autocommit=True) as admin:
        admin.execute("drop role if exists narrow")
        admin.execute("create role narrow login")
        admin.execute("grant trunkline_producer to narrow")
        try:
            found = checked(Cli(database.superuser_dsn.replace("//postgres", "//narrow", 1)))
        finally:
            admin.execute("drop role narrow")
    assert "trunkline_reader" in found["role"]["hint"]
    assert found["listen"]["level"] == "ok"


def test_a_superuser_is_warned(database: Database, calls: Calls) -> None:
    assert checked(Cli(database.superuser_dsn))["role"]["level"] == "warn"


def test_listening_through_a_pooler(database: Database, calls: Calls) -> None:
    with pgbouncer.start(database.server) as pooler:
        pooled = Cli(pooler.dsn(database.dsn))
        found = checked(pooled)
        assert "through a pooler" in found["connection"]["message"]
        assert found["listen"]["level"] == "warn"
        assert "--listen-dsn" in found["listen"]["hint"]
        direct = checked(pooled, "--listen-dsn", database.dsn)
        assert direct["listen"]["level"] == "ok"


def test_at_80_columns_long_findings_are_wrapped_and_indented(
    cli: Cli, calls: Calls, database: Database
) -> None:
    die(calls)
    with Terminal(*PROGRAM, "doctor", dsn=database.dsn, columns=80, lines=80) as terminal:
        assert terminal.end() == 0
        lines = terminal.text.splitlines()
    assert all(line.startswith(("ok    ", "warn  ", "      ")) for line in lines)
    assert "warn  dead letters: 1 not acknowledged" in lines
    hint = lines.index("warn  dead letters: 1 not acknowledged") + 1
    assert lines[hint].startswith("      -> See them with: trunkline dead list; then")
    assert lines[hint + 1].startswith("         ")
