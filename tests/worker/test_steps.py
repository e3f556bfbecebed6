"""ctx.step: recorded once, reused by later attempts, in handlers of every kind."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.internals import steps
from tests.worker.scene import Scene
from trunkline import Context, Retry, SyncContext


@dataclass
class Page:
    number: int
    text: str


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_step_is_not_run_again_by_a_later_attempt(scene: Scene, kind: str) -> None:
    runs: list[str] = []
    results: list[Page] = []

    async def ocr(number: int) -> Page:
        runs.append(f"ocr {number}")
        return Page(number, "text")

    def sync_ocr(number: int) -> Page:
        runs.append(f"ocr {number}")
        return Page(number, "text")

    @scene.app.task(max_attempts=3)
    async def loop(ctx: Context) -> int:
        results.extend([await ctx.step("ocr", ocr, number) for number in (1, 2)])
        if ctx.attempt < 3:
            raise Retry(0)
        return ctx.attempt

    @scene.app.task(max_attempts=3)
    def thread(ctx: SyncContext) -> int:
        results.extend([ctx.step("ocr", sync_ocr, number) for number in (1, 2)])
        if ctx.attempt < 3:
            raise Retry(0)
        return ctx.attempt

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == 3
    assert runs == ["ocr 1", "ocr 2"]
    assert results == [Page(1, "text"), Page(2, "text")] * 3
    assert steps.recorded(scene.superuser) == [
        ("step", "ocr", "#1", {"number": 1, "text": "text"}),
        ("step", "ocr", "#2", {"number": 2, "text": "text"}),
    ]


async def test_concurrent_steps_of_one_name_need_keys(scene: Scene) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    @scene.app.task(max_attempts=1)
    async def keyed(ctx: Context) -> list[int]:
        return await asyncio.gather(
            *(ctx.step("double", double, n, key=f"page {n}") for n in range(3))
        )

    @scene.app.task(max_attempts=9)
    async def keyless(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.step("double", double, n) for n in range(3)))

    async with scene.working():
        (good,) = await scene.enqueue("keyed")
        (bad,) = await scene.enqueue("keyless")
        assert (await scene.until_state(good, "completed", "dead")).result == [0, 2, 4]
        found = await scene.until_state(bad, "dead")
    assert found.last_error["code"] == "step_conflict"
    assert found.attempt == 1


async def test_changed_arguments_are_refused_unless_reused(scene: Scene) -> None:
    async def count(text: str) -> int:
        return len(text)

    @scene.app.task(max_attempts=9)
    async def strict(ctx: Context) -> int:
        length = await ctx.step("count", count, "x" * ctx.attempt)
        if ctx.attempt == 1:
            raise Retry(0)
        return length

    @scene.app.task(max_attempts=9)
    async def lenient(ctx: Context) -> int:
        length = await ctx.step("count", count, "x" * ctx.attempt, on_change="reuse")
        if ctx.attempt == 1:
            raise Retry(0)
        return length

    async with scene.working():
        (bad,) = await scene.enqueue("strict")
        (good,) = await scene.enqueue("lenient")
        found = await scene.until_state(bad, "dead", "completed")
        assert (await scene.until_state(good, "completed", "dead")).result == 1
    assert (found.state, found.attempt, found.last_error["code"]) == ("dead", 2, "step_changed")


async def test_a_step_is_repeated_within_the_attempt(scene: Scene) -> None:
    calls: list[int] = []

    async def flaky() -> str:
        calls.append(len(calls))
        if len(calls) < 3:
            raise ValueError("not yet")
        return "done"

    @scene.app.task(max_attempts=1)
    async def work(ctx: Context) -> str:
        return await ctx.step("flaky", flaky, retries=2)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        assert (await scene.until_state(job, "completed", "dead")).result == "done"
    assert calls == [0, 1, 2]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("wrong", "wrong_result"),
        ("unstorable", "result_not_storable"),
        ("large", "step_too_large"),
    ],
)
async def test_a_result_that_cannot_be_recorded_fails_for_good(
    scene: Scene, step: str, code: str
) -> None:
    def wrong() -> int:
        return "text"  # type: ignore[return-value]

    def unstorable() -> object:
        return object()

    def large() -> list[int]:
        return list(range(100_000))

    functions: dict[str, Any] = {"wrong": wrong, "unstorable": unstorable, "large": large}

    @scene.app.task(max_attempts=5)
    async def work(ctx: Context) -> None:
        await ctx.step(step, functions[step])

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.attempt, found.last_error["code"]) == ("dead", 1, code)


async def test_a_recorded_result_that_no_longer_fits_is_refused(scene: Scene) -> None:
    def first() -> str:
        return "text"

    def second() -> int:
        return 1

    @scene.app.task(max_attempts=5)
    async def work(ctx: Context) -> None:
        if ctx.attempt == 1:
            await ctx.step("read", first)
            raise Retry(0)
        await ctx.step("read", second)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.attempt, found.last_error["code"]) == ("dead", 2, "step_mismatch")


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_step_in_a_transaction_is_recorded_with_its_writes(scene: Scene, kind: str) -> None:
    scene.superuser.execute("create table notes (name text); grant all on notes to public")

    @scene.app.task(max_attempts=2)
    async def loop(ctx: Context) -> None:
        async with ctx.transaction() as connection:

            async def note() -> None:
                await connection.execute("insert into notes values ('kept')")

            await ctx.step("note", note)
            if ctx.attempt == 1:
                raise Retry(0)

    @scene.app.task(max_attempts=2)
    def thread(ctx: SyncContext) -> None:
        with ctx.transaction() as connection:

            def note() -> None:
                connection.execute("insert into notes values ('kept')")

            ctx.step("note", note)
            if ctx.attempt == 1:
                raise Retry(0)

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await scene.until_state(job, "completed", "dead")
    assert len(scene.rows("select from notes")) == 1
    assert len(steps.recorded(scene.superuser)) == 1


async def test_a_cancelled_job_stops_at_its_next_step(scene: Scene) -> None:
    started = asyncio.Event()
    proceed = asyncio.Event()

    async def slow() -> None:
        started.set()
        await proceed.wait()

    @scene.app.task
    async def work(ctx: Context) -> str:
        try:
            await ctx.step("slow", slow)
        finally:
            proceed.set()
        return "too far"

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await started.wait()
        await scene.app.jobs.cancel(job)
        proceed.set()
        found = await scene.until_state(job, "cancelled", "completed")
    assert found.state == "cancelled"


async def test_a_stale_attempt_records_nothing_and_is_stopped(scene: Scene) -> None:
    outcome: list[str] = []

    async def steal() -> int:
        steps.take_over(scene.superuser)
        return 1

    @scene.app.task
    async def work(ctx: Context) -> None:
        try:
            await ctx.step("steal", steal)
        except Exception as error:
            outcome.append(type(error).__name__)
            raise

    async with scene.working():
        await scene.enqueue("work")
        while not outcome:
            await asyncio.sleep(0.01)
    assert outcome == ["StaleAttempt"]
    assert steps.recorded(scene.superuser) == []


async def test_a_handler_in_a_process_has_steps(scene: Scene) -> None:
    from tests.worker import step_app  # noqa: PLC0415 - it declares tasks

    scene.app = step_app.app
    with scene.app.connect_to(scene.database.dsn):
        async with scene.working():
            (job,) = await scene.enqueue("counted")
            found = await scene.until_state(job, "completed", "dead")
        await scene.app.close()
    assert found.result == [1, 2]
    assert [row[1:3] for row in steps.recorded(scene.superuser)] == [("pid", "#1"), ("pid", "#2")]
