"""Waits of handlers in processes: each attempt runs in a process, and what it waits for ends it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.support.internals import steps
from tests.worker.scene import Scene, eventually


@asynccontextmanager
async def working(scene: Scene, **options: Any) -> AsyncIterator[None]:
    """Run a worker with the tasks of step_app."""
    from tests.worker import step_app  # noqa: PLC0415 - it declares tasks

    scene.app = step_app.app
    with scene.app.connect_to(scene.database.dsn):
        try:
            async with scene.working(**options):
                yield
        finally:
            await scene.app.close()


async def test_an_event_continues_a_handler_in_a_process(scene: Scene) -> None:
    async with working(scene, concurrency=1):
        (job,) = await scene.enqueue("waiting")
        await scene.until_state(job, "blocked", "dead")
        # The process is free for another job meanwhile.
        (other,) = await scene.enqueue("pid")
        assert (await scene.until_state(other, "completed", "dead")).result != os.getpid()
        sent = await scene.app.send_event(job, "go", {"by": "ada"})
        assert (sent.outcome, sent.resumed) == ("delivered", 1)
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [{"by": "ada"}, 2, 0]


async def test_a_timeout_reaches_a_handler_in_a_process(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("impatient")
        await scene.until_state(job, "scheduled", "dead")
        scene.database.move_time("2 hours")
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == "late"


async def test_a_handler_in_a_process_sleeps_without_its_process(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("sleeping")
        found = await scene.until_state(job, "scheduled", "dead")
        assert (found.state, found.reason) == ("scheduled", "suspended")
        scene.database.move_time("2 hours")
        found = await scene.until_state(job, "completed", "dead")
    assert found.result == [1, 2]
    assert [row[1] for row in steps.recorded(scene.superuser)] == ["before", "sleep"]


async def test_a_short_sleep_in_a_process_stays_in_place(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("napping")
        assert (await scene.until_state(job, "completed", "dead")).result == 1


async def test_a_cancelled_wait_of_a_process_ends_the_job(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("waiting")
        await scene.until_state(job, "blocked", "dead")
        await scene.app.jobs.cancel(job, "not needed")
        assert scene.state(job) == "cancelled"


async def test_a_handler_in_a_process_that_swallows_the_wait_is_suspended(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("stubborn")
        await scene.until_state(job, "blocked", "completed", "dead")
        await scene.app.send_event(job, "go")
        assert (await scene.until_state(job, "completed", "dead")).result == "in time"


async def test_once_runs_in_one_process_of_a_workflow(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    items = [{"payload": {"gate": str(gate)}}] * 3
    graph = {"name": "w", "steps": [{"name": "s", "task": "based", "items": items}]}
    async with working(scene, concurrency=3):
        scene.superuser.execute("select trunkline.start_workflow(%s)", (Jsonb(graph),))
        jobs = [row.job_id for row in scene.rows("select job_id from trunkline.jobs")]
        waiting = "select count(*) from trunkline.jobs where state = 'scheduled'"
        await eventually(lambda: scene.value(waiting) == 2, "two jobs wait for the third")
        (holder,) = scene.rows("select job_id from trunkline.jobs where state = 'running'")
        gate.touch()
        results = [(await scene.until_state(job, "completed", "dead")).result for job in jobs]
    assert {tuple(result) for result in results} == {(str(holder.job_id), 7)}


@pytest.mark.parametrize("task", ["parent", "changing"])
async def test_a_handler_in_a_process_gathers_jobs(scene: Scene, task: str) -> None:
    async with working(scene, concurrency=1):
        (job,) = await scene.enqueue(task)
        found = await scene.until_state(job, "completed", "dead")
    if task == "parent":
        assert found.result == [[2, "A", 4, "B"], 2]
    else:
        assert (found.state, found.last_error["code"]) == ("dead", "step_changed")
    assert len(steps.workflows(scene.superuser)) == 1


async def test_a_failed_child_is_named_in_a_process(scene: Scene) -> None:
    async with working(scene):
        (job,) = await scene.enqueue("bereft")
        found = await scene.until_state(job, "completed", "dead")
    assert found.last_error["code"] == "child_job_failed"
    assert "broken" in found.last_error["message"]
    assert found.failures == 1
