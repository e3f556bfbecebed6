"""Handlers that wait for a grant, do not wait, or stop waiting."""

import asyncio
import threading

import pytest

from tests.support.internals import jobs
from tests.worker.scene import Scene, eventually, timed
from tests.worker.test_grants import KINDS, bucket, hold_slot, let_go, limit, until_refused
from trunkline import Context, SyncContext
from trunkline.db.calls import work
from trunkline.errors import (
    LimitExhausted,
    StaleAttempt,
)


@pytest.mark.parametrize("kind", KINDS)
async def test_grants_wait_for_each_other(scene: Scene, kind: str) -> None:
    """CP-54: whatever number of handlers, never more at once than the limit has slots."""
    limit(scene, "api", '{"concurrency": 2}')
    lock = threading.Lock()
    inside: list[int] = [0]
    most: list[int] = []

    def enter() -> None:
        with lock:
            inside[0] += 1
            most.append(inside[0])

    def leave() -> None:
        with lock:
            inside[0] -= 1

    @scene.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.grant("api"):
            enter()
            # Nobody leaves before two have been inside at once.
            while max(most) < 2:
                await asyncio.sleep(0.001)
            leave()

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.grant("api"):
            enter()
            while max(most) < 2:
                ctx.progress(50)
            leave()

    async with scene.working(concurrency=8):
        await scene.until_ended(await scene.enqueue(kind, count=12))
    assert len(most) == 12
    assert max(most) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_does_not_wait_is_deferred_with_the_reason(
    scene: Scene, kind: str
) -> None:
    """CP-57, overview 4.11: no room is no failure; the attempt comes back when there is some."""
    limit(scene, "api", '{"requests_per_minute": 1}')
    hold_slot(scene, "api")
    errors: list[LimitExhausted] = []

    @scene.app.task
    async def loop(ctx: Context) -> None:
        try:
            async with ctx.grant("api", wait=False):
                raise AssertionError("there was room")
        except LimitExhausted as error:
            errors.append(error)
            raise

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        try:
            with ctx.grant("api", wait="1s"):
                raise AssertionError("there was room")
        except LimitExhausted as error:
            errors.append(error)
            raise

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "scheduled")
    (error,) = errors
    assert (error.code, error.reason) == ("limit_exhausted", "requests_per_minute")
    assert error.free_at is not None
    assert error.free_in is not None
    # A window and its rounding, less what the machine took to get here.
    assert 1 < error.free_in < 65
    assert (found.failures, found.deferrals) == (0, 1)
    assert abs((found.run_at - error.free_at).total_seconds()) < 30


@pytest.mark.parametrize("kind", KINDS)
async def test_a_bound_on_the_wait(scene: Scene, kind: str) -> None:
    limit(scene, "api", '{"concurrency": 1}')
    grant = hold_slot(scene, "api")
    waited: list[LimitExhausted] = []
    spans: list[float] = []

    @scene.app.task
    async def loop(ctx: Context) -> str:
        stopwatch = timed()
        try:
            async with ctx.grant("api", wait="150ms"):
                return "granted"
        except LimitExhausted as error:
            waited.append(error)
        spans.append(stopwatch())
        let_go(scene, grant)
        async with ctx.grant("api", wait="2m"):
            return "granted"

    @scene.app.task
    def thread(ctx: SyncContext) -> str:
        stopwatch = timed()
        try:
            with ctx.grant("api", wait="150ms"):
                return "granted"
        except LimitExhausted as error:
            waited.append(error)
        spans.append(stopwatch())
        let_go(scene, grant)
        with ctx.grant("api", wait="2m"):
            return "granted"

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "completed")
    assert [error.reason for error in waited] == ["concurrency"]
    assert found.result == "granted"
    assert bucket(scene, "api").refused >= 1
    # How often it asked meanwhile depends on the machine.
    assert spans[0] >= 0.15


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_is_cancelled_while_it_waits(scene: Scene, kind: str) -> None:
    limit(scene, "api", '{"concurrency": 1}')
    hold_slot(scene, "api")
    ended = threading.Event()

    @scene.app.task
    async def loop(ctx: Context) -> None:
        try:
            async with ctx.grant("api"):
                raise AssertionError("there was room")
        finally:
            ended.set()

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        try:
            with ctx.grant("api"):
                raise AssertionError("there was room")
        finally:
            ended.set()

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await until_refused(scene, "api")
        await scene.app.jobs.cancel(job, reason="not wanted")
        found = await scene.until_state(job, "cancelled")
        await eventually(ended.is_set, "the handler ended")
    assert found.reason == "not wanted"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_attempt_that_lost_its_job_does_not_go_on_waiting(scene: Scene, kind: str) -> None:
    """CP-47: the engine refuses a stale attempt, also before the worker hears of it."""
    limit(scene, "api", '{"concurrency": 1}')
    hold_slot(scene, "api")
    errors: list[BaseException] = []

    @scene.app.task
    async def loop(ctx: Context) -> None:
        try:
            async with ctx.grant("api"):
                raise AssertionError("there was room")
        except BaseException as error:
            errors.append(error)
            raise

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        try:
            with ctx.grant("api"):
                raise AssertionError("there was room")
        except BaseException as error:
            errors.append(error)
            raise

    async with scene.working() as worker:
        (job,) = await scene.enqueue(kind)
        await until_refused(scene, "api")
        scene.call(work.release(worker.id, [job], [1], "taken away"))
        await eventually(lambda: errors, "the handler was stopped")
        await eventually(lambda: scene.job(job).attempt == 2, "the next attempt began")
        assert scene.state(job) == "running"
    assert isinstance(errors[0], (StaleAttempt, asyncio.CancelledError))


SPENT = '{"quota": 100, "quota_unit": "tokens", "quota_period": "month"}'


def block(scene: Scene, how: str) -> None:
    """Leave no room at the limit, for long."""
    if how == "quota":
        limit(scene, "api", SPENT)
        scene.rows("select * from trunkline.acquire('api', '{\"tokens\": 100}')")
        return
    limit(scene, "api", '{"concurrency": 5}')
    let_go(scene, hold_slot(scene, "api"))
    if how == "paused":
        scene.rows("select trunkline.observe_limit('api', '{\"retry_after\": 120}')")
    else:
        scene.rows("select trunkline.set_limit('api', '{}', %s)", how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["quota", "maintenance", "disabled", "paused"])
async def test_no_runner_is_kept_for_what_may_last(scene: Scene, kind: str, how: str) -> None:
    """Who says nothing of waiting is put off, and comes back when there is room: no failure."""
    block(scene, how)

    @scene.app.task
    async def loop(ctx: Context) -> None:
        async with ctx.grant("api", tokens=1):
            pass

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        with ctx.grant("api", tokens=1):
            pass

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "scheduled")
        assert (found.failures, found.deferrals) == (0, 1)
        assert f"api has no room ({how})" in found.reason
        # Not in a month: a budget may be raised any time.
        left = "select extract(epoch from %s::timestamptz - trunkline.clock())"
        assert 30 < scene.value(left, found.run_at) <= 901
        limit(scene, "api", SPENT.replace("100", "500") if how == "quota" else "{}")
        scene.rows("select trunkline.set_limit('api', '{}', 'active')")
        scene.rows("select trunkline.observe_limit('api', '{\"retry_after\": 0}')")
        jobs.make_due(scene.superuser, job)
        await scene.until_state(job, "completed")


@pytest.mark.parametrize("how", ["quota", "maintenance"])
@pytest.mark.parametrize("wait", [True, "10m"])
async def test_a_call_that_asks_to_wait_waits_for_a_paused_limit(
    scene: Scene, how: str, wait: bool | str
) -> None:
    block(scene, how)

    @scene.app.task
    async def work(ctx: Context) -> None:
        async with ctx.grant("api", tokens=1, wait=wait):
            pass

    async with scene.working():
        (job,) = await scene.enqueue("work")
        if how == "quota" and wait != True:  # noqa: E712 - it may be a text
            # It will not be free by then, and that is known.
            assert (await scene.until_state(job, "scheduled")).failures == 0
            return
        await until_refused(scene, "api")
        assert scene.state(job) == "running"
        limit(scene, "api", SPENT.replace("100", "500") if how == "quota" else "{}")
        scene.rows("select trunkline.set_limit('api', '{}', 'active')")
        found = await scene.until_state(job, "completed")
    assert (found.attempt, found.deferrals) == (1, 0)


async def test_the_window_of_a_minute_is_waited_for(scene: Scene) -> None:
    limit(scene, "api", '{"requests_per_minute": 1}')
    hold_slot(scene, "api")

    @scene.app.task
    async def work(ctx: Context) -> None:
        async with ctx.grant("api"):
            pass

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await until_refused(scene, "api")
        assert scene.state(job) == "running"
