"""Profiles are judged by what the database has, not by what was once recorded."""

from __future__ import annotations

import json
import uuid

import pytest
from psycopg import sql

from tests.cli.driving import Cli
from tests.support.databases import Database
from trunkline import profiles
from trunkline.errors import SchemaInUse

# A view, a function that producers may call, and one that also changes nothing, of each profile.
_VIEWS = {
    "clinical": "job_queue",
    "executor": "executor_jobs",
    "exports": "export_jobs",
    "studio": "jobs",
}
_GRANTED = {
    "clinical": "configured",
    "executor": "enqueue_job",
    "exports": "cancel_job",
    "studio": "cancel_job",
}
_PURE = {
    "clinical": "configured",
    "executor": "executor_status",
    "exports": "job_status",
    "studio": "read_job",
}


@pytest.fixture
def cli(database: Database) -> Cli:
    return Cli(database.dsn)


def states(cli: Cli, name: str) -> dict[str, str]:
    rows = json.loads(cli.run("profile", "status", name, "--json").stdout)
    return {f"{row['phase']}/{row['script']}": row["state"] for row in rows}


def differences(cli: Cli) -> list[str]:
    return cli.run("schema", "verify").stdout.splitlines()


@pytest.mark.parametrize("name", profiles.names())
def test_every_phase_of_a_profile_has_what_its_scripts_create(cli: Cli, name: str) -> None:
    cli.text("profile", "install", name, "--all")
    assert set(states(cli, name).values()) == {"applied"}
    assert "is equal" in cli.text("schema", "verify")
    assert cli.run("profile", "status", name).exit_code == 0


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_below_which_the_engine_went_is_broken_and_can_be_repaired(
    cli: Cli, name: str
) -> None:
    cli.text("profile", "install", name)
    with pytest.raises(SchemaInUse, match=f"profile in schema {name}"):
        cli.run("schema", "uninstall", "--keep-roles", "--yes")
    removed = cli.text("schema", "uninstall", "--keep-roles", "--yes", "--cascade")
    assert f"No longer works: profile in schema {name}" in removed
    cli.text("schema", "install")
    assert "broken" in states(cli, name).values()
    status = cli.run("profile", "status", name)
    assert status.exit_code == 1
    assert "without" in status.stdout
    verified = cli.run("schema", "verify")
    assert verified.exit_code == 1
    assert f"missing view {name}." in verified.stdout
    doctor = cli.run("doctor", "--json")
    checks = {check["check"]: check for check in json.loads(doctor.stdout)["checks"]}
    assert doctor.exit_code == 1
    assert f"missing view {name}." in checks["profiles"]["message"]
    cli.text("profile", "install", name)
    assert cli.run("profile", "status", name).exit_code == 0
    assert "is equal" in cli.text("schema", "verify")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("drop view executor.executor_job_types", "missing view executor.executor_job_types"),
        (
            "drop policy service_only on executor.executor_cycles",
            "missing policy executor.executor_cycles.service_only",
        ),
        (
            "alter table executor.executor_cycles disable row level security",
            "changed table executor.executor_cycles: row security is not set, should be set",
        ),
        (
            "alter table executor.executor_cycles no force row level security",
            "changed table executor.executor_cycles: forced row security is not set, should be set",
        ),
        (
            "alter view executor.executor_jobs owner to trunkline_installer",
            (
                "changed view executor.executor_jobs: owner is 'trunkline_installer',"
                " should be 'trunkline_owner'"
            ),
        ),
        (
            "grant execute on function executor.reclaim_stale_jobs() to public",
            "extra grant execute on function executor.reclaim_stale_jobs to public",
        ),
        (
            "revoke execute on function executor.enqueue_job from trunkline_producer",
            "missing grant execute on function executor.enqueue_job to trunkline_producer",
        ),
        (
            "revoke usage on schema executor from trunkline_worker",
            "missing grant usage on schema executor to trunkline_worker",
        ),
        (
            "grant select on executor.executor_cycles to trunkline_producer",
            "extra grant select on table executor.executor_cycles to trunkline_producer",
        ),
        (
            "grant usage on sequence executor.executor_cycles_cycle_seq to trunkline_reader",
            (
                "extra grant usage on sequence executor.executor_cycles_cycle_seq"
                " to trunkline_reader"
            ),
        ),
        (
            (
                "create or replace function executor.executor_status(p_state text) returns text"
                " language sql immutable set search_path = pg_catalog, pg_temp"
                " as $$ select 'done' $$"
            ),
            "changed function executor.executor_status: body differs",
        ),
        (
            "alter function executor.enqueue_job security invoker",
            "changed function executor.enqueue_job: security definer is not set, should be set",
        ),
        (
            "alter table executor.executor_cycles add column note text",
            "extra column executor.executor_cycles.note",
        ),
        (
            "drop function executor.run_wake_ups()",
            "missing function executor.run_wake_ups",
        ),
    ],
)
def test_verify_names_what_is_open_in_a_profile(
    cli: Cli, database: Database, change: str, named: str
) -> None:
    cli.text("profile", "install", "executor")
    database.superuser().execute(change.encode())
    assert differences(cli) == [named]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("drop view clinical.metrics", "missing view clinical.metrics"),
        (
            "revoke select on clinical.job_queue from trunkline_reader",
            "missing grant select on view clinical.job_queue to trunkline_reader",
        ),
        (
            "grant select on clinical.audit_entries to trunkline_reader",
            "extra grant select on table clinical.audit_entries to trunkline_reader",
        ),
        (
            (
                "create or replace function clinical.is_service_role() returns boolean"
                " language sql stable set search_path = pg_catalog, pg_temp as $$ select true $$"
            ),
            "changed function clinical.is_service_role: body differs",
        ),
        (
            "drop trigger refuse_audit_change on clinical.audit_entries",
            "missing trigger clinical.audit_entries.refuse_audit_change",
        ),
        ("select clinical.open_legacy_views()", None),
        ("create table clinical.notes (note text)", None),
    ],
)
def test_verify_names_what_differs_in_the_clinical_profile(
    cli: Cli, database: Database, change: str, named: str | None
) -> None:
    cli.text("profile", "install", "clinical")
    database.superuser().execute(change.encode())
    expected = [named] if named else ["The database is equal to the shipped schema."]
    assert differences(cli) == expected


@pytest.mark.parametrize("name", profiles.names())
def test_a_grant_to_a_login_is_a_difference(cli: Cli, database: Database, name: str) -> None:
    cli.text("profile", "install", name)
    view = _VIEWS[name]
    # Roles belong to the server, which other tests use at the same time.
    login = f"stranger_{uuid.uuid4().hex}"
    stranger = sql.Identifier(login)
    connection = database.superuser()
    connection.execute(sql.SQL("create role {} login").format(stranger))
    try:
        connection.execute(
            sql.SQL("grant select on {} to {}").format(sql.Identifier(name, view), stranger)
        )
        assert differences(cli) == [f"extra grant select on view {name}.{view} to {login}"]
    finally:
        connection.execute(sql.SQL("drop owned by {}").format(stranger))
        connection.execute(sql.SQL("drop role {}").format(stranger))


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_in_another_schema_is_compared_too(
    cli: Cli, database: Database, name: str
) -> None:
    cli.text("profile", "install", name, "--all", "--schema", "other")
    assert "is equal" in cli.text("schema", "verify")
    function = _GRANTED[name]
    database.superuser().execute(
        f"revoke execute on function other.{function} from trunkline_producer".encode()
    )
    assert differences(cli) == [
        f"missing grant execute on function other.{function} to trunkline_producer"
    ]


@pytest.mark.parametrize("name", profiles.names())
def test_what_differs_is_brought_back_by_applying_the_profile_again(
    cli: Cli, database: Database, name: str
) -> None:
    cli.text("profile", "install", name, "--all")
    function = _PURE[name]
    connection = database.superuser()
    connection.execute(
        f"revoke execute on function {name}.{function} from trunkline_producer".encode()
    )
    connection.execute(f"alter function {name}.{function} volatile".encode())
    verified = cli.run("schema", "verify")
    assert len(verified.stdout.splitlines()) == 2
    assert "profile install NAME --again" in verified.stderr
    cli.text("profile", "install", name, "--all", "--again")
    assert "is equal" in cli.text("schema", "verify")


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_that_is_taken_back_in_part_differs_in_nothing(cli: Cli, name: str) -> None:
    cli.text("profile", "install", name, "--all")
    cli.text("profile", "rollback", name, "--yes")
    assert "is equal" in cli.text("schema", "verify")
