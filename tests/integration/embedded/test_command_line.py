"""``trunkline db`` as a user runs it."""

import shutil
import subprocess
import sys
from pathlib import Path

import psycopg

from tests.support.processes import User, trunkline
from trunkline.embedded import status


def test_start_status_dsn_psql_stop(home: Path) -> None:
    assert trunkline(home, "db", "status").returncode == 3
    assert trunkline(home, "db", "status", "--json").returncode == 3
    nothing = trunkline(home, "db", "dsn")
    assert nothing.returncode == 3
    assert "Code: embedded_not_running" in nothing.stderr
    assert not home.exists()

    started = trunkline(home, "db", "start")
    assert started.returncode == 0, started.stderr
    assert "PostgreSQL 18 is up" in started.stdout
    state = trunkline(home, "db", "status")
    assert state.returncode == 0
    assert "kept up  yes" in state.stdout
    assert "in use   no" in state.stdout

    for option in ([], ["--tcp"]):
        string = trunkline(home, "db", "dsn", *option).stdout.strip()
        with psycopg.connect(string) as connection:
            row = connection.execute("select current_user, current_database()").fetchone()
            assert row == ("trunkline_installer", "trunkline")

    psql = trunkline(home, "db", "psql", "-At", "-c", "select 6 * 7")
    assert psql.stdout.strip() == "42"
    wrong = trunkline(home, "db", "psql", "-c", "select nonsense", "-v", "ON_ERROR_STOP=1")
    assert wrong.returncode != 0
    assert "nonsense" in wrong.stderr
    assert status(home).running

    assert trunkline(home, "db", "stop").stdout.strip() == "Server stopped."
    assert trunkline(home, "db", "status").returncode == 3
    assert trunkline(home, "db", "stop").stdout.strip() == "The server was not running."
    down = trunkline(home, "db", "dsn")
    assert down.returncode == 3
    assert down.stdout.startswith("postgresql://")


def test_the_string_works_with_plain_psql(home: Path) -> None:
    trunkline(home, "db", "start")
    string = trunkline(home, "db", "dsn").stdout.strip()
    psql = shutil.which("psql")
    assert psql, "the tests need psql on PATH; tools/system_packages.sh brings it"
    result = subprocess.run(
        [psql, string, "-Atc", "select current_user"], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "trunkline_installer"


def test_a_started_server_outlives_its_users(home: Path) -> None:
    trunkline(home, "db", "start")
    with User(home) as user:
        user.report()
        refused = trunkline(home, "db", "stop")
        assert refused.returncode == 1
        assert "Code: embedded_in_use" in refused.stderr
        assert "--force" in refused.stderr
    assert status(home).pinned
    with User(home) as user:
        user.report()
        assert trunkline(home, "db", "stop", "--force").returncode == 0
        assert not status(home).running


def test_without_start_psql_leaves_nothing_running(home: Path) -> None:
    assert trunkline(home, "db", "psql", "-Atc", "select 1").stdout.strip() == "1"
    assert not status(home).running


def test_refusals_carry_hint_and_code(home: Path, tmp_path: Path) -> None:
    refused = trunkline(home, "db", "start", environment={"TRUNKLINE_PG_BINDIR": str(tmp_path)})
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert [line.split(":")[0] for line in refused.stderr.splitlines()] == ["Error", "Hint", "Code"]


def test_help_needs_no_database_driver(home: Path) -> None:
    program = "from trunkline.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "schema" in result.stdout
    assert "trunkline.errors" in result.stderr
    assert "psycopg" not in result.stderr
    assert not home.exists()
