"""A whole worker: its start, what it declares, and what it refuses."""

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import sql

from tests.support.internals import periodic
from tests.worker.scene import Scene, eventually
from trunkline import Context, Schedule, Trunkline
from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.errors import DatabaseUnreachable, InvalidOptions, InvalidTask
from trunkline.worker import Worker
from trunkline.worker.options import WorkerOptions, new_worker_id


@pytest.fixture
def quiet(scene: Scene) -> Scene:
    @scene.app.task
    async def work() -> None:
        pass

    return scene


def test_each_start_has_its_own_id() -> None:
    """TA-32."""
    ids = {new_worker_id("host") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(rf"host-{os.getpid()}-[0-9a-f]{{8}}", one) for one in ids)
    assert len(new_worker_id("x" * 500)) <= 200
    assert new_worker_id(None) != new_worker_id(None)


async def test_a_worker_is_registered_with_what_it_serves(quiet: Scene) -> None:
    """TA-32: known to operators under the id that its log has."""
    async with quiet.working(queues=("a", "b"), name="press") as worker:
        (row,) = quiet.rows("select * from trunkline.workers")
        assert row.worker == worker.id
        assert worker.id.startswith("press-")
        assert (row.state, row.pid, row.queues, row.tasks) == (
            "active",
            os.getpid(),
            ["a", "b"],
            ["work"],
        )
        await eventually(
            lambda: quiet.value("select detail ->> 'running' from trunkline.workers") == "0",
            "the first pulse",
        )


async def test_numbers_of_the_work_done_are_in_the_pulse(quiet: Scene) -> None:
    async with quiet.working():
        await quiet.until_ended(await quiet.enqueue("work", 7))
        await eventually(
            lambda: quiet.value("select detail ->> 'complete' from trunkline.workers") == "7",
            "the numbers arrive",
        )
        detail = quiet.value("select detail from trunkline.workers")
    assert (detail["running"], detail["unrecorded"], detail["stale"]) == (0, 0, 0)
    assert detail["memory"] > 1_000_000


async def test_a_worker_registers_its_tasks_before_it_claims(scene: Scene) -> None:
    @scene.app.task(max_attempts=7, queue="special")
    async def work() -> None:
        pass

    async with scene.working():
        row = scene.rows("select * from trunkline.tasks where task = 'work'")[0]
        assert row.max_attempts == 7
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "completed")
    assert found.queue == "special"


@pytest.fixture
def scheduled(scene: Scene) -> Scene:
    @scene.app.task(schedule="*/5 * * * *")
    async def often() -> None:
        pass

    @scene.app.task(schedule=Schedule("0 9 * * *", time_zone="Europe/Paris", payload={"n": 1}))
    async def daily(n: int) -> None:
        pass

    return scene


async def test_declared_schedules_are_set_at_the_start(scheduled: Scene) -> None:
    async with scheduled.working():
        rows = scheduled.rows(
            "select schedule, cron, time_zone, task, payload, paused from trunkline.schedules"
            " order by schedule"
        )
    assert [tuple(row) for row in rows] == [
        ("daily", "0 9 * * *", "Europe/Paris", "daily", {"n": 1}, False),
        ("often", "*/5 * * * *", "UTC", "often", {}, False),
    ]


async def test_an_operators_pause_survives_a_restart(scheduled: Scene) -> None:
    async with scheduled.working():
        scheduled.rows("select trunkline.pause_schedule('often')")
    async with scheduled.working():
        paused = "select paused from trunkline.schedules where schedule = %s"
        assert scheduled.value(paused, "often")
        assert not scheduled.value(paused, "daily")


@contextmanager
def login(scene: Scene, *roles: str) -> Iterator[str]:
    """A connection string for somebody with only these roles."""
    name = f"login_{scene.database.name}"
    scene.superuser.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    for role in roles:
        grant = sql.SQL("grant {} to {}")
        scene.superuser.execute(grant.format(sql.Identifier(role), sql.Identifier(name)))
    try:
        yield re.sub(r"//[^@]*@", f"//{name}@", scene.database.dsn)
    finally:
        scene.superuser.execute(sql.SQL("drop owned by {0}").format(sql.Identifier(name)))
        scene.superuser.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


async def test_without_the_role_for_it_a_schedule_is_only_warned_about(
    scheduled: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with login(scheduled, "trunkline_worker", "trunkline_producer") as dsn:
        async with scheduled.working(dsn=dsn):
            (job,) = await scheduled.enqueue("often")
            await scheduled.until_state(job, "completed")
        assert scheduled.value("select count(*) from trunkline.schedules") == 0
    assert "the schedule of often was not set" in caplog.text
    assert "trunkline_operator" in caplog.text


async def test_a_due_schedule_is_run_by_the_worker(scene: Scene) -> None:
    ran = asyncio.Event()

    @scene.app.task(schedule="* * * * *")
    async def minutely() -> None:
        ran.set()

    async with scene.working():
        periodic.make_schedules_due(scene.superuser)
        periodic.make_duties_due(scene.superuser)
        assert await ran.wait()


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"concurrency": -3},
        {"processes": 0},
        {"threads": 0},
        {"grace": -1.0},
        {"grace": float("nan")},
        {"queues": ()},
        {"queues": "default"},
        {"tasks": ()},
        {"tasks": "work"},
    ],
    ids=str,
)
def test_options_with_which_no_worker_can_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptions, match=next(iter(options))) as caught:
        WorkerOptions(**options)
    assert caught.value.hint


async def test_tasks_that_the_application_does_not_have_are_refused() -> None:
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task
    async def work() -> None:
        pass

    with pytest.raises(InvalidOptions, match="no task other, third") as caught:
        Worker(app, WorkerOptions(tasks=("work", "third", "other")))
    assert "work" in caught.value.hint


async def test_an_application_without_tasks_is_refused() -> None:
    with pytest.raises(InvalidTask, match="no tasks") as caught:
        Worker(Trunkline("postgresql://nobody@nowhere/none"))
    assert "@app.task" in caught.value.hint


async def test_a_server_that_cannot_be_reached_is_reported_at_the_start() -> None:
    app = Trunkline("postgresql://nobody@127.0.0.1:1/none")

    @app.task
    async def work() -> None:
        pass

    with pytest.raises(DatabaseUnreachable):
        await Worker(app).run()


async def test_many_jobs_run_once_each(scene: Scene) -> None:
    """CP-28, in the loop and in threads, while every part does its work."""
    ran: list[int] = []

    @scene.app.task
    async def in_loop(number: int) -> None:
        ran.append(number)

    @scene.app.task
    def in_thread(number: int) -> None:
        ran.append(number)

    async with scene.working(concurrency=20):
        requests = [
            scene.app.tasks["in_loop" if number % 2 else "in_thread"].request(number=number)
            for number in range(1000)
        ]
        jobs = await scene.app.enqueue_many(requests)
        await scene.until_ended([job.id for job in jobs])
    assert sorted(ran) == list(range(1000))


async def test_two_workers_share_the_work(scene: Scene) -> None:
    """CP-28: N claimers never get the same job."""
    seen: list[tuple[int, str]] = []

    @scene.app.task
    async def work(ctx: Context, number: int) -> None:
        seen.append((number, str(ctx.job_id)))
        await asyncio.sleep(0.001)

    async with scene.working(concurrency=5), scene.working(concurrency=5):
        requests = [scene.app.tasks["work"].request(number=number) for number in range(300)]
        jobs = await scene.app.enqueue_many(requests)
        await scene.until_ended([job.id for job in jobs])
        workers = scene.value("select count(distinct worker) from trunkline.jobs")
    assert sorted(number for number, _ in seen) == list(range(300))
    assert workers == 2


async def test_every_part_goes_on_after_all_connections_were_killed(quiet: Scene) -> None:
    async with quiet.working() as worker:
        await quiet.until_ended(await quiet.enqueue("work", 2))
        killed = quiet.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where pid <> pg_backend_pid() and datname = current_database()"
            " and application_name like 'trunkline %'"
        )
        assert len(killed) >= 4
        await quiet.app.close()
        jobs = await quiet.enqueue("work", 5)
        await quiet.until_ended(jobs)
        seen = quiet.value("select seen_at from trunkline.workers where worker = %s", worker.id)
        await eventually(
            lambda: quiet.value(
                "select seen_at > %s from trunkline.workers where worker = %s", seen, worker.id
            ),
            "the pulse goes on",
        )


async def test_a_lasting_connection_opens_again_after_a_break(scene: Scene) -> None:
    """A second use after a break connects anew, and closing twice is fine."""
    connection = LastingConnection(scene.database.dsn, name="trunkline claimer")
    assert await connection.run(work.pulse_interval()) == 1.0
    scene.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'trunkline claimer' and datname = current_database()"
    )
    await eventually(lambda: not connection.connected, "the break is noticed while it is idle")
    assert await connection.run(work.pulse_interval()) == 1.0
    await connection.close()
    await connection.close()
    assert not connection.connected
