"""ctx.sleep, ctx.wait_for and ctx.once: the job gives its slot back and continues later."""

import asyncio
import contextlib
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.worker.scene import Scene, eventually
from trunkline import Context, Retry, SyncContext
from trunkline.errors import EventTimeout
from trunkline.testing import Sandbox


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_an_event_continues_a_suspended_job(scene: Scene, kind: str) -> None:
    trace: list[str] = []

    @scene.app.task(max_attempts=1)
    async def loop(ctx: Context) -> Any:
        await ctx.step("before", trace.append, "before")
        try:
            answer = await ctx.wait_for("approved")
        except Exception:
            trace.append("swallowed")
            raise
        finally:
            trace.append("finally")
        return [answer, ctx.attempt, ctx.failures]

    @scene.app.task(max_attempts=1)
    def thread(ctx: SyncContext) -> Any:
        ctx.step("before", trace.append, "before")
        try:
            answer = ctx.wait_for("approved")
        except Exception:
            trace.append("swallowed")
            raise
        finally:
            trace.append("finally")
        return [answer, ctx.attempt, ctx.failures]

    async with scene.working(concurrency=1):
        (job,) = await scene.enqueue(kind)
        await scene.until_state(job, "blocked")
        sent = await scene.app.send_event(job, "approved", {"by": "ada"})
        assert (sent.outcome, sent.resumed) == ("delivered", 1)
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [{"by": "ada"}, 2, 0]
    assert trace == ["before", "finally", "finally"]


async def test_a_suspended_job_holds_no_slot(scene: Scene) -> None:
    @scene.app.task(limit="one")
    async def parent(ctx: Context) -> Any:
        return await ctx.wait_for("answer")

    @scene.app.task(limit="one")
    async def child(ctx: Context, parent_job: str) -> None:
        await ctx.step("send", scene.app.send_event, *_target(parent_job))

    def _target(job: str) -> tuple[Any, ...]:
        from uuid import UUID  # noqa: PLC0415

        return UUID(job), "answer", 42

    scene.superuser.execute("""select trunkline.set_limit('one', '{"concurrency": 1}')""")
    async with scene.working(concurrency=2):
        (job,) = await scene.enqueue("parent")
        await scene.until_state(job, "blocked")
        await scene.enqueue("child", parent_job=str(job))
        assert (await scene.until_state(job, "completed", "dead")).result == 42


async def test_branches_of_a_gather_finish_their_steps_first(scene: Scene) -> None:
    done: list[str] = []

    async def slow(name: str) -> str:
        await asyncio.sleep(0.05)
        done.append(name)
        return name

    async def branch(ctx: Context) -> str:
        first = await ctx.step("slow", slow, "a", key="a")
        await asyncio.sleep(0.01)
        return first + await ctx.step("slow", slow, "b", key="b")

    @scene.app.task
    async def work(ctx: Context) -> Any:
        return await asyncio.gather(ctx.wait_for("go"), branch(ctx), ctx.wait_for("on"))

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "blocked")
        assert done == ["a", "b"]
        waits = scene.rows("select name from trunkline.job_steps(%s) where state = 'waiting'", job)
        assert sorted(row.name for row in waits) == ["go", "on"]
        await scene.app.send_event(job, "on", 2)
        await scene.until_state(job, "blocked")
        await scene.app.send_event(job, "go", 1)
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [1, "ab", 2]
    assert done == ["a", "b"]


async def test_a_branch_without_steps_goes_on_after_the_attempt_but_changes_nothing(
    scene: Scene,
) -> None:
    """As `gather` leaves it after an exception: nobody waits for it, and nobody cancels it."""
    leave = asyncio.Event()
    refused: dict[str, str] = {}
    ran: list[str] = []

    async def effect() -> None:
        ran.append("step")

    async def try_all(ctx: Context) -> None:
        async def in_transaction() -> None:
            async with ctx.transaction() as transaction:
                await transaction.execute("create table public.left_over ()")

        for name, call in {
            "step": lambda: ctx.step("late", effect),
            "wait": lambda: ctx.wait_for("late"),
            "progress": lambda: ctx.progress(50),
            "transaction": in_transaction,
        }.items():
            try:
                await call()
            except BaseException as error:  # noqa: BLE001 - Suspended is one
                refused[name] = type(error).__name__

    async def plain(ctx: Context) -> None:
        if ctx.attempt == 1:
            await leave.wait()
            await try_all(ctx)

    @scene.app.task
    async def work(ctx: Context) -> int:
        answer, _ = await asyncio.gather(ctx.wait_for("go"), plain(ctx))
        return int(answer)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        # It has no slot while the branch still runs, and the next attempt does not wait for it.
        await scene.until_state(job, "blocked")
        await scene.app.send_event(job, "go", 1)
        found = await scene.until_state(job, "completed", "dead")
        assert (found.result, found.attempt, refused) == (1, 2, {})
        leave.set()
        await eventually(lambda: len(refused) == 4, "each call of the branch is refused")
    assert refused == {
        "step": "Suspended",
        "wait": "Suspended",
        "progress": "StaleAttempt",
        "transaction": "StaleAttempt",
    }
    assert ran == []
    assert scene.value("select to_regclass('public.left_over')") is None
    steps = scene.rows("select name from trunkline.job_steps(%s)", job)
    assert [row.name for row in steps] == ["go"]


async def test_a_task_group_that_waits_is_suspended(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(ctx.wait_for("go"))
        return waiting.result()

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "blocked", "dead")
        await scene.app.send_event(job, "go", 1)
        assert (await scene.until_state(job, "completed", "dead")).result == 1


async def test_a_handler_that_swallows_the_suspension_is_suspended(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> str:
        with contextlib.suppress(BaseException):
            await ctx.wait_for("go")
        return "too early" if ctx.attempt == 1 else "in time"

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "blocked", "completed")
        await scene.app.send_event(job, "go")
        assert (await scene.until_state(job, "completed", "dead")).result == "in time"


async def test_a_second_wait_for_an_event_needs_a_key(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> None:
        await ctx.wait_for("go")
        await ctx.wait_for("go")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.app.send_event(job, "go")
        found = await scene.until_state(job, "completed", "dead")
    assert found.last_error["code"] == "step_conflict"


async def test_a_wait_within_a_step_is_refused(scene: Scene) -> None:
    @scene.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        await ctx.step("outer", ctx.sleep, "1h")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "completed", "dead")
    assert found.last_error["code"] == "invalid_task"


async def test_a_payload_is_read_as_its_type(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> int:
        return len(await ctx.wait_for("names", list[str]))

    async with scene.working():
        good, bad = await scene.enqueue("work", 2)
        await scene.app.send_event(good, "names", ["ada", "bob"])
        await scene.app.send_event(bad, "names", 5)
        assert (await scene.until_state(good, "completed", "dead")).result == 2
        found = await scene.until_state(bad, "dead")
    assert found.last_error["code"] == "step_mismatch"


async def test_a_short_sleep_stays_in_place(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> int:
        await ctx.sleep(seconds=0.01)
        return ctx.attempt

    async with scene.working():
        (job,) = await scene.enqueue("work")
        assert (await scene.until_state(job, "completed", "dead")).result == 1


async def test_a_cancelled_wait_ends_the_job(scene: Scene) -> None:
    @scene.app.task
    async def work(ctx: Context) -> None:
        await ctx.wait_for("go")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "blocked")
        await scene.app.jobs.cancel(job, "not needed")
    assert scene.job(job).reason == "not needed"
    assert scene.state(job) == "cancelled"


async def test_once_runs_in_one_job_of_a_workflow(scene: Scene) -> None:
    runs: list[int] = []
    proceed = asyncio.Event()

    async def base() -> int:
        runs.append(1)
        await proceed.wait()
        return 7

    @scene.app.task
    async def work(ctx: Context) -> int:
        return await ctx.once("base", base)

    graph = {"name": "w", "steps": [{"name": "s", "task": "work", "items": [{}, {}, {}]}]}
    async with scene.working():
        scene.superuser.execute("select trunkline.start_workflow(%s)", (Jsonb(graph),))
        jobs = [row.job_id for row in scene.rows("select job_id from trunkline.jobs")]
        waiting = "select count(*) from trunkline.jobs where state = 'scheduled'"
        await eventually(lambda: scene.value(waiting) == 2, "two jobs wait for the third")
        proceed.set()
        for job in jobs:
            assert (await scene.until_state(job, "completed", "dead")).result == 7
    assert runs == [1]


def test_a_sandbox_moves_time_for_sleeps_and_timeouts(scene: Scene) -> None:
    app = scene.app

    @app.task
    async def work(ctx: Context) -> str:
        await ctx.sleep(hours=3)
        try:
            await ctx.wait_for("approved", timeout="2d")
        except EventTimeout:
            return f"late, attempt {ctx.attempt}"
        return "approved"

    with Sandbox(app) as sandbox:
        job = (
            work.sync.enqueue()
            if hasattr(work, "sync")
            else app.sync.enqueue_many([work.request()])[0]
        )
        begin = sandbox.now()
        first = sandbox.drain()
        assert (first.suspended, first.total) == (1, 1)
        drained = sandbox.drain(with_scheduled=True)
        assert (drained.suspended, drained.completed) == (1, 1)
        assert app.sync.jobs.get(job.id).result == "late, attempt 3"
        assert (sandbox.now() - begin).total_seconds() >= 51 * 3600


def test_a_sandbox_sends_events(scene: Scene) -> None:
    app = scene.app

    @app.task
    def work(ctx: SyncContext) -> Any:
        return ctx.wait_for("go", key="order 7")

    with Sandbox(app) as sandbox:
        job = app.sync.enqueue_many([work.request()])[0]
        assert sandbox.drain().suspended == 1
        assert app.sync.send_event("order 7", "go", "now").outcome == "delivered"
        assert sandbox.drain().completed == 1
        assert app.sync.jobs.get(job.id).result == "now"


def test_a_retry_sleeps_only_for_the_rest(scene: Scene) -> None:
    app = scene.app

    @app.task(max_attempts=2)
    async def work(ctx: Context) -> int:
        await ctx.sleep(hours=1)
        if ctx.failures == 0:
            raise Retry(0)
        return ctx.attempt

    with Sandbox(app) as sandbox:
        job = app.sync.enqueue_many([work.request()])[0]
        assert sandbox.drain().suspended == 1
        sandbox.move_time("1h")
        drained = sandbox.drain()
        assert (drained.failed, drained.completed) == (1, 1)
        assert app.sync.jobs.get(job.id).result == 3
