"""The parts beside the main road: rescan, watch, duties, memory."""

import asyncio
import mmap
from datetime import timedelta
from typing import Any

import pytest

from tests.support.calls import Calls
from tests.support.internals import breaks, jobs, locks, periodic
from tests.worker.scene import Scene, a_job, eventually
from tests.worker.stage import stage
from trunkline import Trunkline
from trunkline.db.call import Call
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost
from trunkline.worker.duties import Duties
from trunkline.worker.memory import Memory, resident
from trunkline.worker.report import End
from trunkline.worker.rescan import Rescan
from trunkline.worker.roster import Roster
from trunkline.worker.watch import Watch


def accepted(position: dict[str, Any]) -> int:
    """The number up to which claims have taken everything."""
    return int(position["lanes"]["default/0"][0])


async def test_the_rescan_finds_what_a_rolled_back_claim_left_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position of the others has passed it."""
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 0.1)
    ran: list[int] = []

    @scene.app.task
    async def work(number: int) -> None:
        ran.append(number)

    calls = Calls(scene.superuser)
    calls.register("work")
    position: dict[str, Any] | None = {}
    # Until the place is accepted: transactions of other tests on this server may be in its way.
    while position is None or position == {} or "late" in position or accepted(position) < 2:
        calls.enqueue("work", payload={"number": 1})
        position = calls.claim("w", 10, position=position).position
        scene.database.move_time("1 second")
    calls.enqueue("work", payload={"number": 0})
    # As if a claim of it had been open while the others went on, and was then rolled back.
    jobs.renumber(scene.superuser, 1)
    assert calls.claim("w", 10, position=position).jobs == []
    roster = Roster()
    async with stage(scene.app) as on:
        rescan = Rescan(
            scene.database.dsn,
            "w",
            None,
            ["work"],
            executor=on.executor,
            roster=roster,
            position=lambda: "{}",
        )
        rescan.start()
        await eventually(lambda: ran, "it was found")
        await rescan.stop()
    assert ran == [0]
    assert len(roster) == 1


async def test_the_rescan_asks_for_nothing_while_all_runners_are_busy(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 0.02)
    go = asyncio.Event()

    @scene.app.task
    async def work() -> None:
        await go.wait()

    Calls(scene.superuser).register("work")
    Calls(scene.superuser).fill(2)
    async with stage(scene.app, concurrency=1) as on:
        on.submit("work")
        await eventually(lambda: on.executor.buffered == 0, "it runs")
        rescan = Rescan(
            scene.database.dsn,
            "w",
            None,
            ["work"],
            executor=on.executor,
            roster=Roster(),
            position=lambda: "{}",
        )
        looks = count_calls(monkeypatch, "trunkline.claim(")
        rescan.start()
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert looks() == 0
        go.set()
        await eventually(looks, "it looks")
        await rescan.stop()


async def test_what_the_rescan_finds_while_the_worker_ends_is_handed_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claim was under way when the end began; nobody would ever start the job."""
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 0.01)
    original = LastingConnection.run

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        answer = await original(self, call, **more)
        if "trunkline.claim(" in call.sql and answer.jobs:
            on.executor.accepting = False
        return answer

    @scene.app.task
    async def work() -> None:
        pass

    Calls(scene.superuser).register("work")
    (job,) = Calls(scene.superuser).fill(1)
    monkeypatch.setattr(LastingConnection, "run", run)
    async with stage(scene.app) as on:
        rescan = Rescan(
            scene.database.dsn,
            "w",
            None,
            ["work"],
            executor=on.executor,
            roster=Roster(),
            position=lambda: "{}",
        )
        rescan.start()
        await eventually(lambda: scene.job(job).reason == "shutting down", "it is handed back")
        await rescan.stop()
    assert (scene.job(job).state, scene.job(job).failures) == ("ready", 0)


def count_calls(monkeypatch: pytest.MonkeyPatch, function: str) -> Any:
    original = LastingConnection.run
    count = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal count
        count += function in call.sql
        return await original(self, call, **more)

    monkeypatch.setattr(LastingConnection, "run", run)
    return lambda: count


async def test_the_hard_limit_interrupts_by_monotonic_time() -> None:
    """RC-31: no heartbeat passes it."""
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task
    async def work() -> None:
        await asyncio.Event().wait()

    async with stage(app) as on:
        roster = Roster()
        now = a_job().claimed_at
        # Has not started, so there is nothing to interrupt, and no attempt to blame.
        (waiting,) = roster.add([a_job(hard_deadline=now)])
        (short,) = roster.add([a_job(hard_deadline=now + timedelta(seconds=0.3))])
        (long,) = roster.add([a_job()])
        watch = Watch(roster, on.executor, on.reports.append)
        watch.start()
        on.executor.submit([short, long])
        await on.until_reported(1)
        await watch.stop()
        assert (on.reports[0].job, on.reports[0].end) == (short.job, End.FAIL)
        assert on.reports[0].error is not None
        assert on.reports[0].error["code"] == "hard_limit_exceeded"
        assert long.stop is None
        assert waiting.stop is None


async def test_jobs_claimed_too_early_are_handed_back_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.worker.watch._STALLED", 0.2)
    app = Trunkline("postgresql://nobody@nowhere/none")
    go = asyncio.Event()

    @app.task
    async def work(long: bool) -> None:
        if long:
            await go.wait()

    async with stage(app, concurrency=2) as on:
        on.submit("work", *['{"long": false}'] * 300)
        await on.until_reported(300)
        on.reports.clear()
        assert on.executor.demand() > 2
        on.submit("work", '{"long": true}', '{"long": true}')
        early = on.submit("work", *['{"long": true}'] * 5)
        watch = Watch(Roster(), on.executor, on.reports.append)
        watch.start()
        await on.until_reported(5)
        assert [report.job for report in on.reports] == [held.job for held in early]
        assert {report.end for report in on.reports} == {End.HAND_BACK}
        assert on.executor.buffered == 0
        # Until jobs prove to be short again, nothing is claimed ahead.
        assert on.executor.demand() == 0
        await watch.stop()
        go.set()


async def test_a_buffer_that_moves_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.worker.watch._STALLED", 60.0)
    app = Trunkline("postgresql://nobody@nowhere/none")

    @app.task
    async def work() -> None:
        await asyncio.sleep(0.02)

    async with stage(app, concurrency=1) as on:
        watch = Watch(Roster(), on.executor, on.reports.append)
        watch.start()
        on.submit("work", *["{}"] * 30)
        await on.until_reported(30)
        await watch.stop()
        assert {report.end for report in on.reports} == {End.COMPLETE}


async def test_duties_run_and_report_what_failed(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    breaks.break_sweep_idempotency(scene.superuser)
    periodic.make_duties_due(scene.superuser)
    duties = Duties(scene.database.dsn, pulse=1)
    duties.start()
    await eventually(lambda: "duty sweep_idempotency failed" in caplog.text, "it is told")
    await duties.stop()
    assert scene.value(
        "select succeeded_at is not null from trunkline.duties where duty = 'reclaim'"
    )


async def test_a_worker_runs_the_duties_of_its_users(scene: Scene) -> None:
    """Nobody calls them: the worker is there for the engine's own duties anyway."""
    installer = scene.database.connect()
    installer.execute(
        "create sequence public.visits;"
        "grant usage on sequence public.visits to trunkline_owner;"
        "create function public.visit() returns bigint language sql"
        " as $$ select nextval('public.visits') $$;"
        "select trunkline.add_duty('visit', 'public.visit', '1 second')"
    )

    @scene.app.task
    async def work() -> None: ...

    async with scene.working():
        await eventually(lambda: scene.value("select last_value > 1 from public.visits"), "twice")
    assert scene.value("select failures from trunkline.duties where duty = 'visit'") == 0


async def test_after_an_outage_duties_wait_for_two_pulses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the first worker that is back takes away the jobs of all others."""
    original = LastingConnection.run
    steps: list[str | float] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        steps.append("run")
        if steps.count("run") == 2:
            raise ConnectionLost("the server is away")
        return await original(self, call, **more)

    async def pause(_self: Duties, seconds: float) -> None:
        steps.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(LastingConnection, "run", run)
    monkeypatch.setattr(Duties, "pause", pause)
    duties = Duties(scene.database.dsn, pulse=50)
    duties.start()
    await eventually(lambda: steps.count("run") >= 4, "they go on")
    await duties.stop()
    kinds = [step if step == "run" else "long" if step >= 100 else "short" for step in steps]  # type: ignore[operator]
    assert kinds[:8] == ["run", "short", "run", "short", "long", "run", "short", "run"]


async def test_duties_that_take_long_do_not_hold_up_the_end(scene: Scene) -> None:
    periodic.make_duties_due(scene.superuser)
    locker = scene.database.superuser(autocommit=False)
    locks.lock_table(locker, "duties")
    duties = Duties(scene.database.dsn, pulse=1)
    duties.start()
    await eventually(
        lambda: scene.rows(
            "select from pg_stat_activity where application_name = 'trunkline duties'"
            " and wait_event_type = 'Lock' and datname = current_database()"
        ),
        "they wait for a lock",
    )
    # The lock is still held: nothing but the stop ends the wait.
    await duties.stop()
    locker.rollback()


async def test_memory_above_the_limit_is_logged_once() -> None:
    told: list[int] = []
    memory = Memory(1, lambda: told.append(1))
    memory.start()
    await eventually(lambda: told, "it is told")
    await asyncio.sleep(0)
    await memory.stop()
    assert told == [1]


async def test_a_memory_limit_passed_while_stopping_is_no_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.worker.memory._EVERY", 3600.0)
    told: list[int] = []
    memory = Memory(1, lambda: told.append(1))
    memory.start()
    await asyncio.sleep(0)
    # Ends the pause before the next measurement.
    await memory.stop()
    assert told == []


async def test_memory_below_the_limit_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.worker.memory._EVERY", 0.01)
    looks = 0

    def measure() -> int:
        nonlocal looks
        looks += 1
        return 10

    monkeypatch.setattr("trunkline.worker.memory.resident", measure)
    told: list[int] = []
    memory = Memory(10, lambda: told.append(1))
    memory.start()
    await eventually(lambda: looks > 3 or told, "it looks")
    await memory.stop()
    assert told == []


def test_resident_memory_is_measured() -> None:
    before = resident()
    # Fresh pages: an allocation could be served from memory that was freed but is still resident.
    with mmap.mmap(-1, 50_000_000) as ballast:
        ballast.write(b"x" * 50_000_000)
        assert resident() - before > 30_000_000


async def test_a_worker_above_its_memory_limit_ends_its_jobs_and_wants_a_successor(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Exit code 75: the supervisor starts a new process."""
    monkeypatch.setattr("trunkline.worker.memory._EVERY", 0.05)
    used = 0
    monkeypatch.setattr("trunkline.worker.memory.resident", lambda: used)
    started, go = asyncio.Event(), asyncio.Event()

    @scene.app.task
    async def work() -> None:
        started.set()
        await go.wait()

    async with scene.running(concurrency=1, memory_limit=1000) as (_, running):
        first, second = await scene.enqueue("work", 2)
        await started.wait()
        used = 2000
        await eventually(lambda: "shutting down (memory limit)" in caplog.text, "it is to end")
        go.set()
        assert await running == 75
        assert scene.state(first) == "completed"
        assert scene.state(second) == "ready"


async def test_a_worker_that_ends_anyway_wants_no_successor_for_its_memory(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A supervisor or a service manager would start a process that somebody stopped."""
    monkeypatch.setattr("trunkline.worker.memory._EVERY", 0.05)
    used = 0
    told = asyncio.Event()

    def measure() -> int:
        if used:
            # The wish comes between the measurement and what follows from it.
            worker.stop("SIGTERM")
            told.set()
        return used

    monkeypatch.setattr("trunkline.worker.memory.resident", measure)
    started, go = asyncio.Event(), asyncio.Event()

    @scene.app.task
    async def work() -> None:
        started.set()
        await go.wait()

    async with scene.running(concurrency=1, memory_limit=1000, grace=3600) as (worker, running):
        (job,) = await scene.enqueue("work")
        await started.wait()
        used = 2000
        await told.wait()
        await eventually(lambda: "shutting down (SIGTERM)" in caplog.text, "it is to end")
        used = 0
        go.set()
        assert await running == 0
        assert scene.state(job) == "completed"
