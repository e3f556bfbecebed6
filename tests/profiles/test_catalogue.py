"""Profiles are judged by what the database has, not by what was once recorded."""

from __future__ import annotations

import json

import pytest

from tests.cli.driving import Cli
from tests.support.databases import Database
from trunkline import profiles
from trunkline.errors import SchemaInUse


@pytest.fixture
def cli(database: Database) -> Cli:
    return Cli(database.dsn)


def states(cli: Cli, name: str) -> dict[str, str]:
    rows = json.loads(cli.run("profile", "status", name, "--json").stdout)
    return {f"{row['phase']}/{row['script']}": row["state"] for row in rows}


def differences(cli: Cli) -> list[str]:
    return cli.run("schema", "verify").stdout.splitlines()


@pytest.mark.parametrize("name", profiles.NAMES)
def test_every_phase_of_a_profile_has_what_its_scripts_create(cli: Cli, name: str) -> None:
    cli.text("profile", "install", name, "--all")
    assert set(states(cli, name).values()) == {"applied"}
    assert "is equal" in cli.text("schema", "verify")
    assert cli.run("profile", "status", name).exit_code == 0


@pytest.mark.parametrize("name", profiles.NAMES)
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
            "missing policy executor.service_only on executor_cycles",
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
    ],
)
def test_verify_names_what_is_open_in_a_profile(
    cli: Cli, database: Database, change: str, named: str
) -> None:
    cli.text("profile", "install", "executor")
    database.superuser().execute(change.encode())
    assert differences(cli) == [named]
