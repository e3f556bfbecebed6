"""``trunkline schema`` as people and programs use it."""

from __future__ import annotations

import json

import psycopg
import pytest
from click.testing import CliRunner, Result

from trunkline import sql
from trunkline.cli.schema import schema
from trunkline.errors import DatabaseUnreachable
from trunkline.schema import script

NEWEST = len(sql.migrations())


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(schema, arguments, input=answer, catch_exceptions=False)


def test_install_verify_upgrade_uninstall(empty: str) -> None:
    installed = run("install", "--dsn", empty)
    assert installed.exit_code == 0
    assert f"Schema installed at version {NEWEST}" in installed.stdout
    # Why tables were changed over time is told at an upgrade, not to who installs.
    assert "0001_baseline" not in installed.stdout

    verified = run("verify", "--dsn", empty)
    assert (verified.exit_code, verified.stdout) == (
        0,
        "The database is equal to the shipped schema.\n",
    )

    upgraded = run("upgrade", "--dsn", empty)
    assert f"Schema already at version {NEWEST}" in upgraded.stdout

    removed = run("uninstall", "--dsn", empty, "--keep-roles", "--yes")
    assert removed.exit_code == 0
    assert "Role trunkline_owner kept: as asked" in removed.stdout
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regnamespace('trunkline')").fetchone() == (None,)


def test_verify_names_a_dropped_index_and_fails(empty: str) -> None:
    run("install", "--dsn", empty)
    with psycopg.connect(empty) as connection:
        connection.execute("drop index trunkline_internal.waiting_ready")
    verified = run("verify", "--dsn", empty)
    assert verified.exit_code == 1
    assert verified.stdout == "missing index trunkline_internal.waiting_ready\n"
    assert verified.stderr.startswith("1 difference from the shipped schema.\n")
    assert "trunkline schema sql" in verified.stderr


@pytest.mark.parametrize("dsn", ["not a connection string", "", "postgresql://127.0.0.1:1/none"])
def test_a_useless_connection_string_is_refused(dsn: str) -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        run("verify", "--dsn", dsn)
    assert caught.value.hint


def test_json_is_for_programs(empty: str) -> None:
    installed = json.loads(run("install", "--dsn", empty, "--json").stdout)
    assert (installed["before"], installed["version"]) == (0, NEWEST)
    assert installed["applied"][0] == "0001_baseline"
    assert json.loads(run("verify", "--dsn", empty, "--json").stdout) == []


def test_uninstall_asks_first(empty: str) -> None:
    run("install", "--dsn", empty)
    refused = run("uninstall", "--dsn", empty, answer="n\n")
    assert refused.exit_code == 1
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regnamespace('trunkline')").fetchone() != (None,)


def test_sql_prints_the_script_without_a_database() -> None:
    assert run("sql").stdout == script()
    assert run("sql", "--from", "1", "--supabase", "--tenant-role", "app").stdout == script(
        from_version=1, supabase=True, tenant_roles=["app"]
    )


def test_given_server_comes_from_the_environment(empty: str) -> None:
    result = CliRunner(env={"TRUNKLINE_DSN": empty}).invoke(schema, ["install"])
    assert result.exit_code == 0
    assert run("verify", "--dsn", empty).exit_code == 0
