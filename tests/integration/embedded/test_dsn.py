"""Which server is used: the one passed, the one in the environment, the embedded one."""

from pathlib import Path

import psycopg
import pytest

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
