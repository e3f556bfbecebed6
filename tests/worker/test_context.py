"""What a handler gets of its job, and what it may ask of its worker."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.internals import jobs
from tests.worker.scene import Scene, eventually
from trunkline import Context, Retry, SyncContext
from trunkline.errors import StaleAttempt
from trunkline.handler import JobContext


async def test_the_context_has_the_facts_of_the_job(scene: Scene) -> None:
    seen: dict[str, Any] = {}

    @scene.app.task(hard_limit="1h", max_attempts=3)
    async def work(ctx: Context) -> None:
        for name in dir(ctx):
            value = getattr(ctx, name)
            if (
                not name.startswith("_")
                and name not in {"http", "log", "result"}
                and not callable(value)
            ):
                seen[name] = value

    async with scene.working() as worker:
        job = (
            await scene.app.tasks["work"]
            .options(queue="q", tenant="t", correlation_id="c", tags=["a", "b"])
            .enqueue()
        )
        await scene.until_state(job.id, "completed")
    deadline = seen.pop("deadline")
    assert timedelta(minutes=50) < deadline - datetime.now(UTC) < timedelta(minutes=70)
    assert seen == {
        "job_id": job.id,
        "attempt": 1,
        "task": "work",
        "queue": "q",
        "worker": worker.id,
        "tenant": "t",
        "correlation_id": "c",
        "tags": ("a", "b"),
        "failures": 0,
        "max_attempts": 3,
        "last_error": None,
        "cancelled": False,
        "workflow_id": None,
    }


async def test_a_later_attempt_knows_the_error_of_the_one_before(scene: Scene) -> None:
    seen: list[tuple[int, int, Any]] = []

    @scene.app.task
    async def work(ctx: Context) -> None:
        seen.append((ctx.attempt, ctx.failures, ctx.last_error))
        if ctx.attempt == 1:
            raise Retry(after=0, reason="the first time always fails")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    assert seen[0] == (1, 0, None)
    attempt, failures, error = seen[1]
    assert (attempt, failures) == (2, 1)
    assert error["message"] == "the first time always fails"


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_is_stored_and_never_goes_back(scene: Scene, kind: str) -> None:
    steps: list[Any] = []

    def look(ctx: JobContext) -> None:
        row = scene.job(ctx.job_id)
        steps.append((row.progress, row.message, row.phase))

    @scene.app.task
    async def loop(ctx: Context) -> None:
        await ctx.progress(40, "well", phase="one")
        look(ctx)
        await ctx.progress(10)
        look(ctx)
        await ctx.progress(message="better")
        look(ctx)

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        ctx.progress(40, "well", phase="one")
        look(ctx)
        ctx.progress(10)
        look(ctx)
        ctx.progress(message="better")
        look(ctx)

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await scene.until_state(job, "completed")
    assert [step[0] for step in steps] == [40, 40, 40]
    assert steps[0] == (40, "well", "one")
    assert steps[2][1] == "better"


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_stops_a_handler_whose_job_is_to_be_cancelled(
    scene: Scene, kind: str
) -> None:
    """CP-50: with the reason of whoever asked."""
    passed: list[str] = []

    @scene.app.task
    async def loop(ctx: Context) -> None:
        await asyncio.to_thread(cancel, ctx)
        await ctx.progress(50)
        passed.append("loop")

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        cancel(ctx)
        ctx.progress(50)
        passed.append("thread")

    def cancel(ctx: JobContext) -> None:
        scene.rows("select * from trunkline.cancel(%s, %s)", ctx.job_id, "changed my mind")

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "cancelled")
    assert found.reason == "changed my mind"
    assert passed == []


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_progress_stops_a_handler_whose_job_was_lost(scene: Scene, kind: str) -> None:
    """RC-32, CP-40: it discards its result and writes nothing."""
    passed: list[str] = []
    errors: list[BaseException] = []

    def lose(ctx: JobContext) -> None:
        jobs.reassign(scene.superuser, ctx.job_id)

    @scene.app.task
    async def loop(ctx: Context) -> None:
        lose(ctx)
        try:
            await ctx.progress(50)
        except StaleAttempt as error:
            errors.append(error)
            raise
        passed.append("loop")

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        lose(ctx)
        try:
            ctx.progress(50)
        except StaleAttempt as error:
            errors.append(error)
            raise
        passed.append("thread")

    async with scene.working() as worker:
        (job,) = await scene.enqueue(kind)
        await eventually(lambda: errors, "it was told")
        await eventually(
            lambda: (
                scene.value(
                    "select detail ->> 'running' from trunkline.workers where worker = %s",
                    worker.id,
                )
                == "0"
            ),
            "the runner is free",
        )
        assert scene.state(job) == "running"
    assert passed == []


async def test_snooze_puts_the_job_off_without_a_failure(scene: Scene) -> None:
    """CP-63: what a worker does when it must wait."""
    started = threading.Event()

    @scene.app.task
    async def work(ctx: Context) -> None:
        started.set()
        ctx.snooze("10m", "the provider is busy")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "scheduled")
    assert started.is_set()
    assert (found.failures, found.deferrals) == (0, 1)
    assert timedelta(minutes=9) < found.run_at - datetime.now(UTC) < timedelta(minutes=11)
    reason = scene.value("select detail ->> 'reason' from trunkline.events where kind = 'snoozed'")
    assert reason == "the provider is busy"
