"""Claims whose answers are lost, and runners that outlive what handlers and logs do to them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.locks import lock_table
from tests.worker.scene import Scene, eventually
from tests.worker.stage import stage
from trunkline import Trunkline
from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.worker import rescan as rescan_module
from trunkline.worker.report import End
from trunkline.worker.rescan import Rescan
from trunkline.worker.roster import Roster

pytestmark = pytest.mark.usefixtures("guard")


async def test_a_statement_that_waits_for_a_lock_does_not_outlive_our_patience(
    database: Database,
) -> None:
    """Its backend would not notice that nobody waits any more, and claim when the lock is gone."""
    scene = Scene(database)
    scene.register()
    scene.claim(1)
    Calls(scene.superuser).fill(1, task="work")
    connection = LastingConnection(database.dsn, name="claims")
    with psycopg.connect(database.superuser_dsn) as locker:
        lock_table(locker, "running")
        with pytest.raises(Exception, match=r"statement timeout"):
            await connection.run(work.claim("w", None, 1, ["work"], None), patience=1.0)
        assert connection.connected
    assert (await connection.run(work.pulse("w", {}))).state == "active"
    await connection.close()


async def test_jobs_of_a_claim_that_the_server_took_up_late_are_handed_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look for them comes too early; there is another one."""
    roster = Roster()
    monkeypatch.setattr("trunkline.worker.worker.Roster", lambda: roster)
    monkeypatch.setattr("trunkline.worker.roster._TAKEN_UP_LATE", 2.0)
    scene = Scene(database)

    @scene.app.task
    async def late() -> int:
        return 1

    async with scene.working(concurrency=2) as worker:
        roster.doubt()
        [first] = await scene.enqueue("late")
        await scene.until_state(first, "completed")
        assert len(roster.checks) == 1
        with scene.superuser.transaction():
            # Taken for this worker, which does not know of it.
            [taken] = scene.claim(1, worker=worker.id, task="late")
        done = await scene.until_state(taken.job_id, "completed")
        assert done.attempt > taken.attempt
        assert roster.checks == []


async def test_a_rescan_whose_answer_is_lost_leaves_a_doubt(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescan_module, "_EVERY", 0.0)
    roster = Roster()
    async with stage(Trunkline(database.dsn)) as on:
        rescan = Rescan(
            "host=/nowhere",
            "w",
            None,
            ["x"],
            executor=on.executor,
            roster=roster,
            position=lambda: "{}",
        )
        with pytest.raises(Exception, match="connect"):
            await rescan.turn()
        assert len(roster.checks) == 2
        assert not roster.rescanning
        # And none while those that nobody knows are handed back: it would take one of them.
        roster.releasing = True
        await rescan.turn()


class _FullDisk(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(f"no space left for {record.name}")


@contextmanager
def failing_log() -> Iterator[None]:
    logger, handler = logging.getLogger("trunkline.worker.executor"), _FullDisk()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


async def test_a_runner_survives_a_log_that_fails() -> None:
    """Or the worker would have one fewer, for each failure, and the job would be held for ever."""
    app = Trunkline()

    @app.task
    async def fails() -> None:
        raise ValueError("the reason")

    @app.task
    async def returns() -> int:
        return 1

    async with stage(app, concurrency=1) as on:
        with failing_log():
            report = await asyncio.wait_for(on.run("fails"), 10)
        assert report.end is End.FAIL
        assert (await asyncio.wait_for(on.run("returns"), 10)).result == "1"


async def test_a_scan_without_an_answer_does_not_delay_the_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take a minute under an old snapshot; a service manager kills before that."""
    monkeypatch.setattr(rescan_module, "_EVERY", 0.0)
    monkeypatch.setattr(rescan_module, "_LAST_WAIT", 0.1)
    scene = Scene(database)
    scene.register()
    # A queue to look into.
    Calls(scene.superuser).register("x")
    roster = Roster()
    async with stage(scene.app) as on:
        rescan = Rescan(
            database.dsn,
            "w",
            None,
            ["x"],
            executor=on.executor,
            roster=roster,
            position=lambda: "{}",
        )
        with psycopg.connect(database.superuser_dsn) as locker:
            lock_table(locker, "waiting")
            rescan.start()
            waiting = (
                "select exists (select from pg_stat_activity where wait_event_type = 'Lock'"
                " and application_name = 'trunkline rescan' and datname = current_database())"
            )
            await eventually(lambda: scene.value(waiting), "the look waits for the lock")
            await asyncio.wait_for(rescan.stop(), 10)
    assert roster.checks
    assert not roster.rescanning
