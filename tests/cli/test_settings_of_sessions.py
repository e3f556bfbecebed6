"""Settings that stop work: overridden on our own connections, named where that is impossible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.cli.driving import Cli
from tests.support import pgbouncer
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import locks
from tests.support.pgbouncer import PgBouncer
from tests.support.waiting import until


@pytest.fixture
def pooler(database: Database) -> Iterator[PgBouncer]:
    with pgbouncer.start(database.server) as made:
        yield made


def set_for_database(database: Database, name: str, value: str) -> None:
    database.superuser().execute(
        sql.SQL("alter database {} set {} = {}").format(
            sql.Identifier(database.name), sql.Identifier(name), sql.Literal(value)
        )
    )


def settings(dsn: str) -> tuple[int, list[dict[str, Any]]]:
    result = Cli(dsn).run("doctor", "--json")
    checks = json.loads(result.stdout)["checks"]
    return result.exit_code, [check for check in checks if check["check"] == "settings"]


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("default_transaction_isolation", "serializable", "fail"),
        ("default_transaction_read_only", "on", "fail"),
        ("statement_timeout", "4000", "warn"),
        ("lock_timeout", "4000", "warn"),
    ],
)
def test_the_doctor_names_what_cannot_be_set_behind_a_pooler(
    database: Database, pooler: PgBouncer, name: str, value: str, level: str
) -> None:
    set_for_database(database, name, value)
    code, [finding] = settings(pooler.dsn(database.dsn))
    assert (code, finding["level"]) == (1 if level == "fail" else 0, level)
    assert f"{name} is {value}" in finding["message"]
    assert f"database {database.name}" in finding["message"]
    # Not promised where it is not so.
    assert "our own" not in finding["message"]
    assert finding["hint"] == f'Run: alter database "{database.name}" reset {name};'
    # A direct connection sets it, so that nothing fails there.
    _, [direct] = settings(database.dsn)
    assert direct["level"] == "warn"
    assert "our own direct connections set what they need" in direct["message"]


def test_the_doctor_names_row_security_behind_a_pooler(
    database: Database, pooler: PgBouncer
) -> None:
    """Not even the version of the schema can be read there."""
    set_for_database(database, "row_security", "off")
    result = Cli(pooler.dsn(database.dsn)).run("doctor", "--json")
    [finding] = [c for c in json.loads(result.stdout)["checks"] if c["check"] == "schema"]
    assert (result.exit_code, finding["level"]) == (1, "fail")
    assert "row_security is off" in finding["message"]
    assert "reset row_security" in finding["hint"]


def test_a_pooler_by_itself_is_no_finding(database: Database, pooler: PgBouncer) -> None:
    code, [finding] = settings(pooler.dsn(database.dsn))
    assert (code, finding["level"]) == (0, "ok")


@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout", "transaction_timeout"])
def test_a_timeout_of_the_database_does_not_end_a_command_that_waits(
    database: Database, cli: Cli, calls: Calls, name: str
) -> None:
    if name == "transaction_timeout" and database.server.major < 17:
        pytest.skip("from PostgreSQL 17 on")
    observer = database.superuser()
    cli.text("limits", "set", "slow", "--concurrency", "1")
    holder = database.connect(autocommit=False)
    holder.execute("select trunkline.set_limit('slow', '{\"concurrency\": 2}')")
    set_for_database(database, name, "200ms")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cli.text, "limits", "set", "slow", "--concurrency", "3")
        until(
            lambda: waiting.done() or _waits_long(observer, holder), "it waits beyond the timeout"
        )
        holder.commit()
        assert "slow" in waiting.result()


def _waits_long(observer: psycopg.Connection[Any], holder: psycopg.Connection[Any]) -> bool:
    """Whether somebody has waited for the holder for a second."""
    row = observer.execute(
        "select clock_timestamp() - a.query_start > interval '1 second'"
        " from pg_stat_activity as a where %s = any (pg_blocking_pids(a.pid))",
        (holder.info.backend_pid,),
    ).fetchone()
    return row is not None and bool(row[0])


def test_a_timeout_of_transactions_does_not_end_an_installation(database: Database) -> None:
    if database.server.major < 17:
        pytest.skip("from PostgreSQL 17 on")
    observer = database.superuser()
    holder = database.superuser(autocommit=False)
    locks.lock_table(holder, "settings")
    set_for_database(database, "transaction_timeout", "500ms")
    cli = Cli(database.dsn)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cli.text, "schema", "upgrade", "--lock-timeout", "300")
        until(
            lambda: waiting.done() or _waits_long(observer, holder), "it waits beyond the timeout"
        )
        holder.commit()
        assert "functions and views applied" in waiting.result()
