"""Claiming: the flag of who sleeps, late commits, due jobs, and answers that were lost."""

import asyncio
from typing import Any

import pytest

from tests.support.calls import Calls
from tests.support.internals import rows
from tests.support.internals.workers import flag_version, sleep_flags
from tests.worker.scene import Scene, eventually
from trunkline.db.call import Call
from trunkline.db.calls import work as calls_of_work
from trunkline.db.lasting import LastingConnection
from trunkline.db.listener import Listener
from trunkline.errors import ConnectionLost
from trunkline.worker.wakeup import Wakeup


@pytest.fixture
def quiet(scene: Scene) -> Scene:
    """The scene with one task, whose jobs run until `go` is set."""

    @scene.app.task
    async def work() -> None:
        pass

    return scene


async def until_asleep(scene: Scene) -> None:
    await eventually(lambda: sleep_flags(scene.superuser), "a worker sleeps")


async def test_an_idle_worker_asks_to_be_notified(quiet: Scene) -> None:
    async with quiet.working(queues=("default", "other")) as worker:
        await until_asleep(quiet)
        await eventually(lambda: len(sleep_flags(quiet.superuser)) == 2, "one flag for each queue")
        flags = [("default", worker.id), ("other", worker.id)]
        assert sleep_flags(quiet.superuser) == flags


async def test_an_idle_worker_is_woken_by_new_work(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by looking: the next look would be far away."""
    monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", ())
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (3600.0,))
    async with quiet.working() as worker:
        await until_asleep(quiet)
        for _ in range(3):
            (job,) = await quiet.enqueue("work")
            found = await quiet.until_state(job, "completed")
            assert found.worker == worker.id
            assert (found.claimed_at - found.run_at).total_seconds() < 60


async def test_a_job_that_commits_late_is_found_by_the_late_scans(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The enqueue looked for sleepers before there was one, so nobody is notified."""
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (3600.0,))
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 3600.0)
    quiet.superuser.execute("select trunkline.register_task('work')")
    producer = quiet.database.connect(autocommit=False)
    job = Calls(producer).enqueue("work").job_id
    original = LastingConnection.run
    slept = committed = False

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal slept, committed
        answer = await original(self, call, **more)
        slept = slept or "trunkline.sleep(" in call.sql
        if slept and not committed and call.sql == calls_of_work.CLAIM:
            # The worker has asked to be notified and looked once more, in vain.
            producer.commit()
            committed = True
        return answer

    async def hear_nothing(self: Wakeup) -> None:
        self.hears = True
        await self.stopping.wait()

    monkeypatch.setattr(Wakeup, "turn", hear_nothing)
    monkeypatch.setattr(LastingConnection, "run", run)
    async with quiet.working():
        await eventually(lambda: committed, "the late commit")
        # All other looks are an hour away.
        await quiet.until_state(job, "completed")


async def test_a_worker_that_is_busy_for_a_while_takes_the_request_back(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.claimer._BUSY", 0.1)
    async with quiet.working(concurrency=2) as worker:
        await until_asleep(quiet)
        first = flag_version(quiet.superuser)
        busy = asyncio.create_task(keep_busy(quiet))
        await eventually(lambda: sleep_flags(quiet.superuser) == [], "the flag is taken back")
        busy.cancel()
        await asyncio.wait({busy})
        await until_asleep(quiet)
        # Another flag, of the same worker.
        assert flag_version(quiet.superuser) != first
        assert [name for _, name in sleep_flags(quiet.superuser)] == [worker.id]


async def keep_busy(scene: Scene) -> None:
    while True:
        await scene.enqueue("work", 50)


async def test_a_little_work_does_not_take_the_request_back(quiet: Scene) -> None:
    async with quiet.working() as worker:
        await until_asleep(quiet)
        flag = flag_version(quiet.superuser)
        for _ in range(3):
            (job,) = await quiet.enqueue("work")
            await quiet.until_state(job, "completed")
        assert flag_version(quiet.superuser) == flag
        assert [name for _, name in sleep_flags(quiet.superuser)] == [worker.id]


async def test_a_job_is_picked_up_when_it_is_due(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody notifies then: the worker knows the time from its request."""
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (3600.0,))
    monkeypatch.setattr("trunkline.worker.duties._EVERY", 3600.0)
    async with quiet.working():
        await until_asleep(quiet)
        soon = await quiet.app.tasks["work"].options(delay="1500ms").enqueue()
        later = await quiet.app.tasks["work"].options(delay="2500ms").enqueue()
        for job in (soon, later):
            found = await quiet.until_state(job.id, "completed")
            late = (found.claimed_at - found.run_at).total_seconds()
            # All other looks are an hour away.
            assert 0 <= late < 60


async def test_a_free_runner_gets_work_while_others_are_busy_for_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TA-33: also when the first claim brought fewer jobs than there are runners."""
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 3600.0)
    go = asyncio.Event()
    running: list[int] = []

    @scene.app.task
    async def work(long: bool = True) -> None:
        running.append(1)
        if long:
            await go.wait()

    async with scene.app:
        await scene.app.enqueue_many([])
    Calls(scene.superuser).register("work")
    await scene.enqueue("work", 3)
    async with scene.working(concurrency=5):
        await eventually(lambda: len(running) == 3, "three run")
        await until_asleep(scene)
        (quick,) = await scene.enqueue("work", long=False)
        await scene.until_state(quick, "completed")
        # While the three were still at it.
        assert rows.count(scene.superuser, "running") == 3
        assert len(running) == 4
        go.set()


async def test_jobs_of_a_claim_whose_answer_was_lost_are_handed_back(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server believes that this worker has them, and it lives: only it can tell."""
    original = LastingConnection.run
    lost = 0

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal lost
        answer = await original(self, call, **more)
        if call.sql == calls_of_work.CLAIM and answer.jobs and lost < 2:
            lost += 1
            await self.close()
            raise ConnectionLost("the answer never arrived")
        return answer

    monkeypatch.setattr(LastingConnection, "run", run)
    async with quiet.working(concurrency=4):
        jobs = await quiet.enqueue("work", 4)
        await quiet.until_ended(jobs)
        found = [quiet.job(job) for job in jobs]
    assert lost == 2
    assert {job.state for job in found} == {"completed"}
    assert {job.failures for job in found} == {0}
    assert "of a claim whose answer was lost" in caplog.text


async def test_jobs_of_a_claim_that_the_server_takes_up_late_are_handed_back(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second check is due then, whenever an idle worker would look next."""
    monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", ())
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (3600.0,))
    monkeypatch.setattr("trunkline.worker.roster._TAKEN_UP_LATE", 2.0)
    original = LastingConnection.run
    steps: list[str] = []

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        if call.sql == calls_of_work.CLAIM and steps == ["enqueued"]:
            steps.append("lost")
            await self.close()
            raise ConnectionLost("nobody knows whether it arrived")
        answer = await original(self, call, **more)
        if "release_forgotten" in str(call.sql) and steps[-1:] == ["lost"]:
            steps.append("taken up")
            Calls(quiet.superuser).claim(worker.id)
        return answer

    monkeypatch.setattr(LastingConnection, "run", run)
    async with quiet.working() as worker:
        await until_asleep(quiet)
        steps.append("enqueued")
        (job,) = await quiet.enqueue("work")
        found = await quiet.until_state(job, "completed")
    assert steps == ["enqueued", "lost", "taken up"]
    assert (found.attempt, found.failures) == (2, 0)


async def test_known_jobs_are_not_handed_back_after_an_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LastingConnection.run
    broken = False

    async def run(self: LastingConnection, call: Call[Any], **more: Any) -> Any:
        nonlocal broken
        if call.sql == calls_of_work.CLAIM and started.is_set() and not broken:
            broken = True
            raise ConnectionLost("gone")
        return await original(self, call, **more)

    started, go = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    @scene.app.task
    async def work(number: int) -> None:
        runs.append(number)
        started.set()
        await go.wait()

    monkeypatch.setattr(LastingConnection, "run", run)
    async with scene.working(concurrency=3):
        (first,) = await scene.enqueue("work", number=1)
        await started.wait()
        (second,) = await scene.enqueue("work", number=2)
        await eventually(lambda: len(runs) == 2, "the second runs")
        go.set()
        await scene.until_ended([first, second])
    assert broken
    assert sorted(runs) == [1, 2]


async def test_a_worker_serves_only_its_queues_and_tasks(scene: Scene) -> None:
    @scene.app.task(queue="mine")
    async def wanted() -> None:
        pass

    @scene.app.task(queue="mine")
    async def unwanted() -> None:
        pass

    Calls(scene.superuser).register("unwanted")
    async with scene.working(queues=("mine",), tasks=("wanted",)):
        (other_task,) = await scene.enqueue("unwanted")
        elsewhere = await scene.app.tasks["wanted"].options(queue="theirs").enqueue()
        (job,) = await scene.enqueue("wanted")
        await scene.until_state(job, "completed")
        await until_asleep(scene)
        assert scene.state(other_task) == "ready"
        assert scene.state(elsewhere.id) == "ready"


async def test_queues_are_served_in_the_order_given(scene: Scene) -> None:
    ran: list[str] = []

    @scene.app.task
    async def work(name: str) -> None:
        ran.append(name)

    Calls(scene.superuser).register("work")
    task = scene.app.tasks["work"]
    await scene.app.enqueue_many(
        [task.options(queue=queue).request(name=queue) for queue in ["a", "b", "c"] * 5]
    )
    async with scene.working(queues=("b", "c", "a"), concurrency=1):
        await eventually(lambda: len(ran) == 15, "all ran")
    assert ran == ["b"] * 5 + ["c"] * 5 + ["a"] * 5


async def test_a_listener_that_never_connects_does_not_keep_from_working(
    quiet: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listen(_self: Listener) -> bool:
        raise ConnectionLost("no way")

    monkeypatch.setattr(Listener, "listen", listen)
    async with quiet.working() as worker:
        (job,) = await quiet.enqueue("work")
        found = await quiet.until_state(job, "completed")
        assert (found.worker, found.attempt) == (worker.id, 1)
