"""Which server is used: the one passed, the one in the environment, the embedded one."""

from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from trunkline.cli.database import db
from trunkline.db.dsn import resolve
from trunkline.embedded import status


def test_a_given_server_is_used_and_none_is_started(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    monkeypatch.setenv("TRUNKLINE_DSN", "postgresql://from.environment/x")
    with resolve() as dsn:
        assert dsn == "postgresql://from.environment/x"
    with resolve("postgresql://from.option/x") as dsn:
        assert dsn == "postgresql://from.option/x"
    assert not home.exists()


def test_the_embedded_server_is_the_last_resort(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    with resolve() as dsn, psycopg.connect(dsn) as connection:
        assert connection.execute("select current_database()").fetchone() == ("trunkline",)
        assert status(home).in_use
    assert not status(home).running


def test_the_commands_about_a_server_respect_a_given_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    monkeypatch.setenv("TRUNKLINE_DSN", "postgresql://127.0.0.1:1/x")
    printed = CliRunner().invoke(db, ["dsn"])
    assert printed.stdout == "postgresql://127.0.0.1:1/x\n"
    assert "TRUNKLINE_DSN is set" in CliRunner().invoke(db, ["status"]).stderr
    # Nothing listens there: psql says so, and no embedded server took its place.
    assert CliRunner().invoke(db, ["psql", "-c", "select 1"]).exit_code == 2
    assert not status(home).running
