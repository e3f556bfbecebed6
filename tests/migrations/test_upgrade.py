"""An upgrade keeps every row and every worker; the result equals an installation of today."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.migrations.conftest import NewDatabase
from tests.migrations.forward import engine_after, install_only, upgrade_to
from tests.migrations.rows import empty_tables, fill, read_all
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from tests.support.waiting import until
from tests.support.worker_process import WorkerProcess
from trunkline import sql
from trunkline.schema import install, upgrade, verify
from trunkline.schema.catalog import read
from trunkline.schema.plan import Options
from trunkline.schema.runner import bring_up_to_date
from trunkline.schema.session import connect
from trunkline.schema.verify import compare

SHIPPED = sql.migrations()
LATER = len(SHIPPED) + 1


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The engine of a later release."""
    return engine_after(tmp_path / "later")


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with rows of every kind."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        fill(connection)
    return database


@pytest.mark.parametrize("number", range(1, LATER + 1))
def test_upgraded_equals_fresh(new_database: NewDatabase, later: Path, number: int) -> None:
    fresh, upgraded = new_database(), new_database()
    bring_up_to_date(fresh, Options(root=later), from_nothing=True)
    install_only(upgraded, sql.migrations(later)[:number])
    report = upgrade_to(upgraded, later)
    assert (report.before, report.version) == (number, LATER)
    with connect(fresh) as one, connect(upgraded) as other:
        assert compare(read(one), read(other)) == []


def test_repeated_upgrade_changes_nothing(empty: str) -> None:
    install(empty)
    with connect(empty) as connection:
        before = read(connection)
    assert upgrade(empty).applied == ()
    with connect(empty) as connection:
        assert read(connection) == before
    assert verify(empty) == []


def test_an_upgrade_keeps_rows_of_every_kind(filled: Database, later: Path) -> None:
    superuser = filled.superuser()
    before = read_all(superuser)
    assert empty_tables(before) == []
    assert [one.number for one in upgrade_to(filled.dsn, later).applied] == [LATER]
    after = read_all(superuser)
    assert after.pop("origins") == []
    assert {row["origin"] for row in after["waiting"]} == {"before"}
    _without(after, "waiting", "running", "finished", "dead", column="origin")
    _without(after, "tasks", column="owner")
    after["settings"] = [row for row in after["settings"] if row["name"] != "origin"]
    assert after == before


def test_jobs_from_before_an_upgrade_go_on(filled: Database, later: Path) -> None:
    upgrade_to(filled.dsn, later)
    calls = Calls(filled.connect())
    jobs = calls.connection.execute(
        "select job_id, attempt, worker from trunkline.jobs where state = 'running'"
    ).fetchall()
    running = [Attempt(*row) for row in jobs]
    attempts = [attempt for attempt in running if attempt.worker == "held"]
    assert len(attempts) == 7
    ended = calls.batch("complete", "held", attempts)
    assert {verdict.verdict for verdict in ended} == {"ok"}
    (uploading,) = [attempt for attempt in running if attempt.worker == "files"]
    calls.batch("complete", "files", [uploading])
    named = "select name from trunkline.artifacts where job_id = %s"
    assert calls.value(named, uploading.job) == "b.txt"
    [mapped] = [attempt for attempt in running if attempt.worker == "lists"]
    [listed] = calls.batch("complete", "lists", [mapped])
    assert listed.verdict == "ok"
    claimed = calls.claim("new", 10, queues=["later"])
    assert sorted(row.task for row in claimed.rows) == ["paid", "plain", "plain", "plain"]
    ended = calls.batch("complete", "new", claimed.attempts)
    assert [verdict.verdict for verdict in ended] == ["ok"] * 4
    again = calls.enqueue("plain", idempotency_key="first", payload={"n": 1}, queue="later")
    assert not again.created
    assert not calls.enqueue("plain", unique_key="one", tenant="acme").created
    dead = calls.value("select job_id from trunkline.dead_letters where task = 'doomed'")
    assert calls.change("retry", dead).state == "ready"


@pytest.fixture
def worker(database: Database, tmp_path: Path) -> Iterator[WorkerProcess]:
    started = WorkerProcess(
        "tests.migrations.upgrade_app:app",
        environment={"TRUNKLINE_DSN": database.dsn},
        log=tmp_path / "worker.log",
    )
    yield started
    started.destroy()


def test_a_worker_lives_through_an_upgrade(
    database: Database, later: Path, worker: WorkerProcess, tmp_path: Path
) -> None:
    observer = database.connect()
    worker.until_ready(observer)
    calls = Calls(observer)
    calls.register("wait")
    files = [tmp_path / "first", tmp_path / "second"]
    jobs = [calls.enqueue("wait", payload={"path": str(file)}).job_id for file in files[:1]]
    _until_state(observer, jobs[0], "running")
    upgrade_to(database.dsn, later)
    files[0].touch()
    _until_state(observer, jobs[0], "completed")
    files[1].touch()
    jobs.append(calls.enqueue("wait", payload={"path": str(files[1])}).job_id)
    _until_state(observer, jobs[1], "completed")
    worker.require_alive()


def _until_state(observer: psycopg.Connection[Any], job: object, state: str) -> None:
    query = "select state = %s from trunkline.jobs where job_id = %s"
    until(lambda: observer.execute(query, (state, job)).fetchone() == (True,), f"it is {state}")


def _without(rows: dict[str, list[dict[str, Any]]], *tables: str, column: str) -> None:
    for table in tables:
        for row in rows[table]:
            del row[column]
