"""ctx.gather_jobs: children start with the wait, and their end continues the parent."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.internals import steps
from tests.worker.scene import Scene
from trunkline import Backoff, Context, Discard, Retry, SyncContext


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_results_arrive_in_the_order_of_the_requests(scene: Scene, kind: str) -> None:
    @scene.app.task
    async def double(number: int) -> int:
        return 2 * number

    @scene.app.task
    async def name(text: str) -> str:
        return text.upper()

    def requests() -> list[Any]:
        return [double.request(1), name.request("a"), double.request(2), name.request("b")]

    @scene.app.task
    async def loop(ctx: Context) -> Any:
        return [await ctx.gather_jobs(requests()), ctx.attempt]

    @scene.app.task
    def thread(ctx: SyncContext) -> Any:
        return [ctx.gather_jobs(requests()), ctx.attempt]

    async with scene.working(concurrency=1):
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [[2, "A", 4, "B"], 2]
    assert steps.workflows(scene.superuser) == [("batch", "completed", job)]


async def test_parent_and_child_under_one_limit_do_not_deadlock(scene: Scene) -> None:
    @scene.app.task(limit="one")
    async def child(number: int) -> int:
        return number

    @scene.app.task(limit="one")
    async def parent(ctx: Context) -> int:
        return sum(await ctx.gather_jobs([child.request(n) for n in range(5)]))

    scene.superuser.execute("""select trunkline.set_limit('one', '{"concurrency": 1}')""")
    async with scene.working():
        (job,) = await scene.enqueue("parent")
        assert (await scene.until_state(job, "completed", "dead")).result == 10


async def test_a_failed_child_is_named(scene: Scene) -> None:
    @scene.app.task
    async def child(number: int) -> int:
        if number == 2:
            raise Discard("broken")
        return number

    @scene.app.task(max_attempts=5)
    async def parent(ctx: Context) -> Any:
        return await ctx.gather_jobs([child.request(n) for n in range(4)])

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        found = await scene.until_state(job, "completed", "dead")
    (dead,) = scene.rows(
        "select job_id from trunkline.jobs where task = 'child' and state = 'dead'"
    )
    assert found.last_error["code"] == "child_job_failed"
    assert str(dead.job_id) in found.last_error["message"]
    assert "broken" in found.last_error["message"]
    assert found.failures == 1


@pytest.mark.parametrize("detach", [False, True])
async def test_children_end_with_their_parent_unless_detached(scene: Scene, detach: bool) -> None:
    @scene.app.task
    async def child() -> None: ...

    @scene.app.task
    async def parent(ctx: Context) -> None:
        request = child.options(queue="elsewhere").request()
        await ctx.gather_jobs([request], detach=detach)

    async with scene.working(queues=["default"]):
        (job,) = await scene.enqueue("parent")
        await scene.until_state(job, "blocked")
        await scene.app.jobs.cancel(job)
    scene.superuser.execute("select trunkline.run_duty('advance_workflows')")
    assert steps.children_state(scene.superuser) == ["ready" if detach else "cancelled"]


async def test_levels_of_jobs_are_limited(scene: Scene) -> None:
    @scene.app.task(max_attempts=5)
    async def nested(ctx: Context, level: int) -> int:
        task: Any = scene.app.tasks["nested"]
        (depth,) = await ctx.gather_jobs([task.request(level=level + 1)])
        return int(depth)

    async with scene.working():
        (job,) = await scene.enqueue("nested", level=0)
        found = await scene.until_state(job, "completed", "dead")
    assert found.last_error["code"] == "child_job_failed"
    errors = scene.rows("select last_error ->> 'code' as code from trunkline.dead_letters")
    assert sorted(row.code for row in errors) == ["child_job_failed"] * 10 + ["jobs_too_deep"]


async def test_an_unsuitable_option_of_a_child_is_refused(scene: Scene) -> None:
    @scene.app.task
    async def child() -> None: ...

    @scene.app.task(max_attempts=1)
    async def parent(ctx: Context) -> None:
        await ctx.gather_jobs([child.options(tenant="other").request()])

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        found = await scene.until_state(job, "completed", "dead")
    assert found.last_error["code"] == "invalid_argument"


async def test_no_jobs_give_no_results(scene: Scene) -> None:
    @scene.app.task
    async def parent(ctx: Context) -> Any:
        return [await ctx.gather_jobs([]), ctx.attempt]

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        assert (await scene.until_state(job, "completed", "dead")).result == [[], 1]


async def test_an_attempt_that_is_lost_after_the_start_finds_its_children(scene: Scene) -> None:
    seen: list[UUID] = []

    @scene.app.task
    async def child() -> int:
        return 1

    @scene.app.task(backoff=Backoff(base=0, factor=1, cap=0, jitter=0))
    async def parent(ctx: Context) -> Any:
        seen.append(ctx.job_id)
        try:
            return [await ctx.gather_jobs([child.request()]), ctx.attempt]
        finally:
            if ctx.attempt == 1:
                raise RuntimeError("lost")

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        found = await scene.until_state(job, "completed", "dead")
    assert found.result[0] == [1]
    assert len(steps.workflows(scene.superuser)) == 1


@pytest.mark.parametrize("recorded", [False, True], ids=["waiting", "recorded"])
@pytest.mark.parametrize("kind", ["loop", "thread"])
@pytest.mark.parametrize("second", [[1, 2], [1, 2, 4], [1, 2, 3, 4], [1, 3, 2]], ids=str)
async def test_an_attempt_that_asks_for_other_jobs_is_dead(
    scene: Scene, kind: str, second: list[int], recorded: bool
) -> None:
    @scene.app.task
    async def child(number: int) -> int:
        return number

    # The second attempt records the children of the first, unless it asks for others.
    changed_in = 3 if recorded else 2

    def requests(attempt: int) -> list[Any]:
        return [child.request(n) for n in ([1, 2, 3] if attempt < changed_in else second)]

    @scene.app.task(max_attempts=5)
    async def loop(ctx: Context) -> list[int]:
        found = await ctx.gather_jobs(requests(ctx.attempt))
        if ctx.attempt < changed_in:
            raise Retry(0)
        return found

    @scene.app.task(max_attempts=5)
    def thread(ctx: SyncContext) -> list[int]:
        found = ctx.gather_jobs(requests(ctx.attempt))
        if ctx.attempt < changed_in:
            raise Retry(0)
        return found

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        found = await scene.until_state(job, "completed", "dead")
    assert (found.state, found.attempt, found.reason) == ("dead", changed_in, "not_retryable")
    assert found.last_error["code"] == "step_changed"
    assert len(steps.workflows(scene.superuser)) == 1


async def test_other_requests_receive_the_results_of_the_jobs_that_were_started(
    scene: Scene,
) -> None:
    @scene.app.task
    async def double(number: int) -> int:
        return 2 * number

    @scene.app.task
    async def name(text: str) -> str:
        return text.upper()

    @scene.app.task
    async def loop(ctx: Context) -> list[Any]:
        requests: list[Any] = [double.request(1), name.request("a"), double.request(2)]
        if ctx.attempt > 1:
            requests = [double.request(5)]
        return await ctx.gather_jobs(requests, on_change="reuse")

    async with scene.working():
        (job,) = await scene.enqueue("loop")
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [2, 4, "A"]


async def test_options_and_the_order_of_a_set_may_change(scene: Scene) -> None:
    # As strings would in two processes, these numbers come in another order.
    sets = [{0, 8}, {8, 0}]
    assert list(sets[0]) != list(sets[1])

    @scene.app.task
    async def child(numbers: set[int]) -> int:
        return len(numbers)

    @scene.app.task
    async def parent(ctx: Context) -> list[int]:
        request = child.options(priority=ctx.attempt).request(sets[ctx.attempt - 1])
        return await ctx.gather_jobs([request])

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        assert (await scene.until_state(job, "completed", "dead")).result == [2]


async def test_an_operator_resets_the_jobs_of_a_changed_handler(scene: Scene) -> None:
    @scene.app.task
    async def child(number: int) -> int:
        if number == 13:
            raise Discard("unlucky")
        return number

    @scene.app.task
    async def parent(ctx: Context) -> list[int]:
        numbers = [13] if ctx.attempt == 1 else [1, 2]
        return await ctx.gather_jobs([child.request(n) for n in numbers])

    async with scene.working():
        (job,) = await scene.enqueue("parent")
        found = await scene.until_state(job, "completed", "dead")
        assert found.last_error["code"] == "step_changed"
        assert scene.value("select trunkline.reset_step(%s, 'jobs')", job) == 1
        scene.rows("select * from trunkline.retry(%s)", job)
        assert (await scene.until_state(job, "completed")).result == [1, 2]
