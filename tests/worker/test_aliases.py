"""A renamed task: jobs under its old name are run by the new handler, under the same rules."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.worker.scene import DEADLINE, Scene, eventually
from trunkline import Context, SyncContext, Trunkline
from trunkline.errors import InvalidOptions, UnknownTask


def enqueue(scene: Scene, task: str) -> UUID:
    found: UUID = scene.value("select job_id from trunkline.enqueue(p_task => %s)", task)
    return found


async def test_a_job_under_the_old_name_is_run_by_the_new_handler(scene: Scene) -> None:
    before = Trunkline()

    @before.task(queue="images")
    async def resize(width: int) -> str: ...  # type: ignore[empty-body]

    with before.connect_to(scene.database.dsn):
        job = await resize.enqueue(width=3)
        await before.close()

    @scene.app.task(name="scale", aliases=["resize"], queue="images")
    async def scaled(ctx: Context, width: int) -> str:
        return f"{ctx.task} {width}"

    async with scene.working():
        found = await scene.until_state(job.id, "completed", "dead")
        assert found.result == "resize 3"
        (new,) = await scene.enqueue("scale", width=4)
        assert (await scene.until_state(new, "completed", "dead")).result == "scale 4"


async def test_a_running_workflow_is_finished_by_the_new_handler(scene: Scene) -> None:
    """The graph keeps the old name: of its waiting jobs, and of those that a map adds later."""
    before = Trunkline()

    @before.task
    async def sizes(count: int) -> list[int]: ...  # type: ignore[empty-body]

    @before.task(queue="images")
    async def resize(width: int) -> str: ...  # type: ignore[empty-body]

    order = before.workflow("gallery")
    found = order.add(sizes.request(count=2))
    order.add(resize.request(width=9), name="cover", after=found)
    order.map(found.result, resize.request, name="pages")
    with before.connect_to(scene.database.dsn):
        run = await order.start()
        await before.close()

    @scene.app.task(name="sizes")
    async def listed(count: int) -> list[int]:
        return list(range(count))

    @scene.app.task(name="scale", aliases=["resize"], queue="images")
    async def scaled(ctx: Context, width: int) -> str:
        return f"{ctx.task} {width}"

    async with scene.working():
        status = await scene.app.workflows.wait(run.id, timeout=DEADLINE)
    assert (status.state, status.completed) == ("completed", 4)
    assert await scene.app.workflows.result(run.id, "cover") == "resize 9"
    assert await scene.app.workflows.results(run.id, "pages") == ["resize 0", "resize 1"]


@pytest.mark.parametrize("mode", ["thread", "process"])
async def test_handlers_of_every_kind_have_aliases(scene: Scene, mode: str) -> None:
    from tests.worker import process_app  # noqa: PLC0415 - its processes import it too

    if mode == "process":
        scene.app.tasks["scale"] = process_app.app.tasks["scale"]
    else:

        @scene.app.task(name="scale", aliases=["resize"])
        def scaled(ctx: SyncContext) -> str:
            return f"ran {ctx.task}"

    async with scene.working():
        job = enqueue(scene, "resize")
        assert (await scene.until_state(job, "completed", "dead")).result == "ran resize"


async def test_the_old_name_keeps_a_policy_and_shares_the_limits(scene: Scene) -> None:
    go = asyncio.Event()

    @scene.app.task(aliases=["resize"], queue="images", concurrency=1, max_attempts=2)
    async def scale() -> None:
        await go.wait()

    async with scene.working():
        policies = scene.rows(
            "select task, queue, max_attempts, limits, alias_of from trunkline.tasks order by task"
        )
        assert [tuple(row) for row in policies] == [
            ("resize", "images", 2, ["task/scale"], "scale"),
            ("scale", "images", 2, ["task/scale"], None),
        ]
        first = enqueue(scene, "resize")
        await scene.until_state(first, "running")
        second = enqueue(scene, "scale")
        (why,) = scene.rows("select * from trunkline.explain(%s)", second)
        assert why.detail["limit"] == "task/scale"
        assert scene.state(second) == "ready"
        go.set()
        await scene.until_ended([first, second])


async def test_code_enqueues_under_the_old_name_on_a_new_database(scene: Scene) -> None:
    """allow_unknown_tasks is off: the client registers the policy of the old name."""

    @scene.app.task(aliases=["resize"], queue="images")
    async def scale() -> None: ...

    job = await scene.app.jobs.enqueue("resize")
    assert scene.job(job.id).queue == "images"
    with pytest.raises(UnknownTask):
        await scene.app.jobs.enqueue("resized")


async def test_a_worker_of_the_old_name_serves_the_task_and_all_its_names(scene: Scene) -> None:
    @scene.app.task(aliases=["resize", "shrink"])
    async def scale() -> None: ...

    @scene.app.task
    async def other() -> None: ...

    async with scene.working(tasks=("resize", "scale")) as worker:
        query = "select tasks from trunkline.workers where worker = %s"
        assert scene.value(query, worker.id) == ["scale", "resize", "shrink"]
    with pytest.raises(InvalidOptions, match="enlarge"):
        async with scene.working(tasks=("enlarge",)):
            pass


def schedules(scene: Scene) -> dict[str, Any]:
    rows = scene.rows("select schedule, task, next_run_at from trunkline.schedules")
    return {row.schedule: row for row in rows}


async def test_the_schedule_of_a_renamed_task_is_not_run_twice_nor_missed(scene: Scene) -> None:
    before = Trunkline(scene.database.dsn)

    @before.task(schedule="@hourly")
    async def resize() -> None: ...

    after = scene.app

    @after.task(schedule="@hourly", aliases=["resize"])
    async def scale() -> None: ...

    scene.app = before
    async with scene.working():
        due = schedules(scene)["resize"].next_run_at
    await before.close()
    scene.app = after
    async with scene.working():
        found = schedules(scene)
    assert [(row.schedule, row.task, row.next_run_at) for row in found.values()] == [
        ("scale", "scale", due)
    ]


async def test_a_schedule_that_names_the_old_task_goes_on(scene: Scene) -> None:
    @scene.app.task(aliases=["resize"])
    async def scale(ctx: Context) -> str:
        return ctx.task

    async with scene.working():
        scene.rows("select trunkline.set_schedule('nightly', '* * * * *', 'resize')")
        scene.database.move_time("61 seconds")
        scene.rows("select trunkline.run_schedules()")
        job = await eventually(
            lambda: scene.rows("select last_job_id from trunkline.schedules")[0].last_job_id,
            "it was due",
        )
        assert (await scene.until_state(job, "completed", "dead")).result == "resize"
        assert schedules(scene)["nightly"].task == "resize"


async def test_a_name_that_is_no_longer_an_alias_is_a_separate_task(scene: Scene) -> None:
    @scene.app.task(aliases=["resize"])
    async def scale() -> None: ...

    async with scene.working():
        pass
    scene.app = Trunkline(scene.database.dsn)

    @scene.app.task
    async def resize() -> None: ...

    async with scene.working():
        query = "select alias_of from trunkline.tasks where task = 'resize'"
        assert scene.value(query) is None
