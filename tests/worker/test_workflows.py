"""Workflows with real workers: chains, sets, maps, fan-in, failures, retries, callbacks."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worker import workflow_app as tasks
from tests.worker.scene import Scene
from trunkline import Results, Trunkline, WorkflowHandle
from trunkline.errors import (
    JobFailed,
    UnknownWorkflow,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowTimeout,
)
from trunkline.model import JobState, WorkflowState

PATIENCE = 300.0


@pytest.fixture
def scene(scene: Scene) -> Scene:
    """The application of these tests, whose processes import its module."""
    scene.app.tasks.update(tasks.app.tasks)
    return scene


async def start(scene: Scene, order: Any) -> WorkflowHandle:
    """Start a workflow of the shared application in the database of the test."""
    return await scene.app.workflows.start(order)


async def outcome(scene: Scene, task: str) -> Any:
    """Return the result of the only job of a task."""
    [job] = await scene.app.jobs.list(task=task)
    return await scene.app.jobs.wait(job.id, timeout=PATIENCE)


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_map_is_joined_in_every_kind_of_handler(scene: Scene, mode: str) -> None:
    join = {
        "async": tasks.join_async,
        "thread": tasks.join_thread,
        "process": tasks.join_process,
    }[mode]
    order = scene.app.workflow("book")
    numbers = order.add(tasks.scan.request(450))
    pages = order.map(numbers.result, tasks.read.request)
    joined = order.add(join.request(pages.results), name="joined")
    double = order.add(tasks.double.request(numbers.result), after=joined)
    async with scene.working():
        run = await start(scene, order)
        status = await run.wait(timeout=PATIENCE)
        assert await run.result(joined) == ["book", "joined", 1, 450, 450 * 451 // 2, 450]
        assert await run.result(double) == 900
    assert (status.state, status.jobs, status.completed) == (WorkflowState.COMPLETED, 453, 453)
    [_, step, *_] = status.steps
    assert (step.name, step.kind, step.items, step.completed) == ("read", "map", 450, 450)
    assert (step.after, step.map_over) == (("scan",), "scan")


async def test_results_arrive_with_their_types(scene: Scene) -> None:
    order = scene.app.workflow("typed")
    page = order.add(tasks.read.request(3))
    single = order.add(tasks.title.request(page.result))
    pages = order.add_many([tasks.read.request(1), tasks.read.request(2)], name="both")
    titles = order.map(pages.results, tasks.title.request, name="titles")
    async with scene.working():
        run = await start(scene, order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(page) == tasks.Page(3, "xxx")
        assert await run.result(single) == "3:xxx"
        assert await run.results(pages) == [tasks.Page(1, "x"), tasks.Page(2, "xx")]
        assert await run.results(titles) == ["1:x", "2:xx"]
        assert await run.results("titles") == ["1:x", "2:xx"]


async def test_an_empty_list_leads_to_empty_results(scene: Scene) -> None:
    order = scene.app.workflow("empty")
    numbers = order.add(tasks.scan.request(0))
    pages = order.map(numbers.result, tasks.read.request)
    joined = order.add(tasks.join_async.request(pages.results))
    async with scene.working():
        run = await start(scene, order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(joined) == ["empty", "join_async", 1, 0, 0, None]
        assert await run.results(pages) == []


@pytest.mark.parametrize(
    "value",
    [
        {"$result": "scan"},
        {"$results": "scan", "more": 1},
        {"$value": {"$value": 1}},
        {"$item": True},
        {"deep": {"$result": "scan"}},
        [{"$result": "scan"}],
        None,
        "é😀",
    ],
)
async def test_values_that_resemble_references_arrive_unchanged(scene: Scene, value: Any) -> None:
    order = scene.app.workflow("echo")
    first = order.add(tasks.echo.request(value), name="first")
    second = order.add(tasks.echo.request(first.result), name="second")
    list_ = order.add(tasks.echo.request([value, value]), name="list")
    mapped = order.map(list_.result, tasks.echo.request, name="mapped")
    async with scene.working():
        run = await start(scene, order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(first) == value
        assert await run.result(second) == value
        assert await run.results(mapped) == [value, value]


async def test_a_failed_branch_is_named_and_the_rest_continues(scene: Scene) -> None:
    order = scene.app.workflow("torn")
    order.on_failure(tasks.ended.request(order.end, to="ann"))
    numbers = order.add(tasks.scan.request(4))
    pages = order.map(numbers.result, lambda page: tasks.read.request(page, torn=3))
    order.add(tasks.join_async.request(pages.results))
    apart = order.add(tasks.echo.request("apart"))
    async with scene.working():
        run = await start(scene, order)
        with pytest.raises(WorkflowFailed, match=r"Workflow torn .* failed at read") as error:
            await run.wait(timeout=PATIENCE)
        [failed] = error.value.failed
        assert (failed.step, failed.item) == ("read", 2)
        assert await run.result(apart) == "apart"
        assert await outcome(scene, "ended") == [
            "torn",
            "failed",
            1,
            [["read", 2, failed.reason]],
        ]
    [cancelled] = await run.jobs("join_async")
    assert (cancelled.state, cancelled.reason) == (JobState.CANCELLED, "dependency")
    [dead] = await run.jobs("read", state=JobState.DEAD)
    assert (dead.workflow_item, dead.id) == (2, failed.job)


async def test_a_retry_runs_only_the_failed_part(scene: Scene, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    order = scene.app.workflow("again")
    order.on_completed(tasks.ended.request(order.end))
    order.on_failure(tasks.echo.request("failed"))
    first = order.add(tasks.scan.request(2))
    text = order.add(tasks.fails_until.request(str(page)), after=first)
    last = order.add(tasks.echo.request(text.result), name="last")
    async with scene.working():
        run = await start(scene, order)
        with pytest.raises(WorkflowFailed):
            await run.wait(timeout=PATIENCE)
        page.write_text("found", encoding="utf-8")
        assert (await run.retry()).outcome == "retried"
        status = await run.wait(timeout=PATIENCE)
        assert await run.result(last) == "found"
        assert status.generation == 2
        assert await outcome(scene, "ended") == ["again", "completed", 2, []]
        [job] = await run.jobs(first)
        assert job.attempt == 1


async def test_a_cancelled_workflow_stops_what_runs(scene: Scene) -> None:
    order = scene.app.workflow("cancelled")
    order.on_cancel(tasks.ended.request(order.end))
    endless = order.add(tasks.forever.request())
    order.add(tasks.echo.request(1), after=endless)
    async with scene.working():
        run = await start(scene, order)
        [job] = await run.jobs(endless)
        await scene.until_state(job.id, "running")
        assert (await run.cancel("not needed")).outcome == "requested"
        with pytest.raises(WorkflowCancelled, match="was cancelled: not needed"):
            await run.wait(timeout=PATIENCE)
        assert await outcome(scene, "ended") == ["cancelled", "cancelled", 1, []]


async def test_a_deadline_fails_the_workflow(scene: Scene) -> None:
    order = scene.app.workflow("late", deadline="500ms")
    order.on_failure(tasks.ended.request(order.end))
    order.add(tasks.forever.request())
    async with scene.working():
        run = await start(scene, order)
        with pytest.raises(WorkflowFailed, match="deadline"):
            await run.wait(timeout=PATIENCE)
        assert (await outcome(scene, "ended"))[:2] == ["late", "failed"]


async def test_a_result_that_does_not_fit_makes_the_step_dead(scene: Scene) -> None:
    order = scene.app.workflow("wrong")
    words = order.add_many([tasks.echo.request(1), tasks.echo.request("two")], name="words")
    order.add(tasks.strict.request(words.results))
    word = order.add(tasks.echo.request("three"), name="word")
    order.add(tasks.one_number.request(word.result))
    async with scene.working():
        run = await start(scene, order)
        with pytest.raises(WorkflowFailed, match="failed at strict, one_number"):
            await run.wait(timeout=PATIENCE)
        for step, message in (
            ("strict", "Result 1 of step words does not fit argument numbers of strict"),
            ("one_number", "The payload does not fit one_number"),
        ):
            [job] = await run.jobs(step)
            with pytest.raises(JobFailed, match=message):
                await scene.app.jobs.wait(job.id, timeout=PATIENCE)


async def test_a_reference_to_a_missing_item_of_a_map_makes_the_step_dead(scene: Scene) -> None:
    graph = {
        "name": "short",
        "steps": [
            {"name": "scan", "task": "scan", "payload": {"count": 3}},
            {"name": "all", "task": "echo", "map": "scan", "payload": {"value": {"$item": True}}},
            *(
                {
                    "name": f"n{n}",
                    "task": "echo",
                    "payload": {"value": {"$result": "all", "item": n}},
                }
                for n in (2, 3)
            ),
        ],
    }
    async with scene.working():
        workflow = scene.value(
            "select workflow_id from trunkline.start_workflow(%s)", json.dumps(graph)
        )
        with pytest.raises(WorkflowFailed, match="failed at n3"):
            await scene.app.workflows.wait(workflow, timeout=PATIENCE)
        assert await scene.app.workflows.result(workflow, "n2") == 3
        [job] = await scene.app.workflows.jobs(workflow, "n3")
        with pytest.raises(JobFailed, match="item 3 of step all, which has no such item") as failed:
            await scene.app.jobs.wait(job.id, timeout=PATIENCE)
    assert (failed.value.error or {})["code"] == "payload_mismatch"


async def test_a_batch_calls_back_when_all_jobs_have_ended(scene: Scene) -> None:
    mails = scene.app.batch("mails")
    mails.on_completed(tasks.ended.request(mails.end))
    mails.add_many([tasks.echo.request(number) for number in range(20)])
    mails.add(tasks.scan.request(1))
    async with scene.working():
        run = await start(scene, mails)
        status = await run.wait(timeout=PATIENCE)
        assert (status.kind, status.completed) == ("batch", 21)
        assert await outcome(scene, "ended") == ["mails", "completed", 1, []]
        assert await run.results("echo") == list(range(20))


async def test_keys_return_the_existing_workflow(scene: Scene) -> None:
    order = scene.app.workflow("one", unique_key="u", idempotency_key="i")
    order.add(tasks.echo.request(1))
    first, second = await start(scene, order), await start(scene, order)
    assert (first.created, second.created, first.id == second.id) == (True, False, True)


async def test_waiting_has_a_timeout_and_unknown_workflows_are_named(scene: Scene) -> None:
    order = scene.app.workflow("waits")
    order.add(tasks.echo.request(1))
    run = await start(scene, order)
    with pytest.raises(WorkflowTimeout, match=str(run.id)):
        await run.wait(timeout=0.05)
    listed = await scene.app.workflows.list(state="queued", name="waits")
    assert [found.id for found in listed] == [run.id]
    assert await scene.app.workflows.list(name="other") == []
    missing = scene.app.workflows.handle("6f1c3a1e-0000-7000-8000-000000000000")
    with pytest.raises(UnknownWorkflow):
        await missing.get()
    with pytest.raises(UnknownWorkflow):
        await missing.wait(timeout=1)


async def test_a_plain_job_has_no_workflow(scene: Scene) -> None:
    request = tasks.join_async.options(max_attempts=1).request(Results([tasks.Page(1, "x")]))
    [job] = await scene.app.enqueue_many([request])
    async with scene.working():
        with pytest.raises(JobFailed, match="is a plain job"):
            await scene.app.jobs.wait(job.id, timeout=PATIENCE)
    assert isinstance(scene.app, Trunkline)
