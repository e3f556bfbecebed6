"""Results of ctx.once: operators see and repair them, and a rerun keeps them."""

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.worker.scene import Scene
from trunkline import Context, Discard


def start(scene: Scene, *steps: dict[str, Any]) -> UUID:
    """Start a workflow of these steps."""
    graph = Jsonb({"name": "order", "steps": list(steps)})
    workflow: UUID = scene.value("select workflow_id from trunkline.start_workflow(%s)", graph)
    return workflow


def jobs_of(scene: Scene, workflow: UUID) -> list[UUID]:
    query = "select job_id from trunkline.jobs where workflow_id = %s order by created_at, job_id"
    return [row.job_id for row in scene.rows(query, workflow)]


def steps_of(scene: Scene, job: UUID) -> list[tuple[Any, ...]]:
    """Return kind, name, state and result of the steps of a job, as operators see them."""
    query = "select kind, name, state, result from trunkline.job_steps(%s)"
    return [tuple(row) for row in scene.rows(query, job)]


async def test_a_wrong_result_is_repaired_for_all_jobs_of_the_workflow(scene: Scene) -> None:
    prices = [13, 7]

    async def load() -> int:
        return prices.pop(0)

    @scene.app.task
    async def sell(ctx: Context) -> int:
        price = await ctx.once("prices", load)
        if price == 13:
            raise Discard("wrong price")
        return price

    async with scene.working():
        workflow = start(scene, {"name": "sell", "task": "sell", "items": [{}, {}]})
        jobs = jobs_of(scene, workflow)
        for job in jobs:
            assert (await scene.until_state(job, "completed", "dead")).state == "dead"
            assert steps_of(scene, job) == [("once", "prices", "recorded", 13)]
        # Without the repair, the next attempts find the same result.
        scene.rows("select * from trunkline.retry(%s)", jobs[0])
        assert (await scene.until_state(jobs[0], "completed", "dead")).state == "dead"
        assert prices == [7]
        assert scene.value("select trunkline.reset_step(%s, 'prices')", jobs[1]) == 1
        assert steps_of(scene, jobs[0]) == []
        scene.rows("select * from trunkline.retry_workflow(%s)", workflow)
        for job in jobs:
            assert (await scene.until_state(job, "completed", "dead")).result == 7
            assert steps_of(scene, job) == [("once", "prices", "recorded", 7)]


async def test_a_job_without_a_workflow_has_its_own_result(scene: Scene) -> None:
    calls: list[int] = []

    @scene.app.task
    async def sell(ctx: Context) -> int:
        await ctx.once("prices", lambda: calls.append(1))
        if len(calls) == 1:
            raise Discard("wrong price")
        return len(calls)

    async with scene.working():
        job, other = await scene.enqueue("sell", 2)
        await scene.until_ended([job, other])
        dead = job if scene.state(job) == "dead" else other
        assert scene.value("select trunkline.reset_step(%s, 'prices', '#1')", dead) == 1
        scene.rows("select * from trunkline.retry(%s)", dead)
        assert (await scene.until_state(dead, "completed")).result == 3


async def test_a_rerun_keeps_what_a_kept_step_has_recorded(scene: Scene) -> None:
    loaded: list[str] = []

    async def load(what: str) -> str:
        loaded.append(what)
        return what

    @scene.app.task
    async def plan(ctx: Context) -> str:
        return await ctx.once("prices", load, "prices")

    @scene.app.task
    async def sell(ctx: Context) -> list[str]:
        return [
            await ctx.once("prices", load, "prices"),
            await ctx.once("stock", load, "stock"),
        ]

    async def ended(workflow: UUID) -> None:
        for job in jobs_of(scene, workflow):
            assert (await scene.until_state(job, "completed", "dead")).state == "completed"

    async with scene.working():
        first = start(
            scene,
            {"name": "plan", "task": "plan"},
            {"name": "sell", "task": "sell", "after": ["plan"]},
        )
        await ended(first)
        again = "select workflow_id from trunkline.rerun_workflow(%s, 'sell')"
        second = scene.value(again, first)
        await ended(second)
        # The step that recorded the stock ran again, the one that recorded the prices did not.
        assert loaded == ["prices", "stock", "stock"]
        # So it is if the rerun is run again: the job that recorded the prices is of the first one.
        third = scene.value(again, second)
        await ended(third)
        assert loaded == ["prices", "stock", "stock", "stock"]
        (job,) = jobs_of(scene, third)
        assert scene.job(job).result == ["prices", "stock"]
