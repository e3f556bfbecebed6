"""Results in the store are read back wherever results are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.artifacts import large_app as tasks
from tests.worker.scene import Scene
from trunkline import Context
from trunkline.artifacts import LocalStore
from trunkline.errors import JobFailed, WorkflowFailed

PATIENCE = 300.0
KINDS = ["async", "thread", "process"]


@pytest.fixture
def stored(scene: Scene, local: LocalStore) -> Scene:
    scene.app.store = local
    scene.app.tasks.update(tasks.app.tasks)
    return scene


def _begins(*numbers: int) -> list[str]:
    return [f"{number}:" for number in numbers]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_result_arrives_as_an_argument(stored: Scene, kind: str) -> None:
    order = stored.app.workflow("large")
    first = order.add(tasks.write.request(1), name="first")
    one = order.add(getattr(tasks, f"one_{kind}").request(first.result))
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(one) == ["1:", len(tasks.text(1))]
        assert await run.result(first) == tasks.text(1)
        [job] = await run.jobs(first)
        assert (await stored.app.jobs.get(job.id)).result == tasks.text(1)
        assert (await stored.app.artifacts.list(job=job.id))[0].kind == "result"


@pytest.mark.parametrize("kind", KINDS)
async def test_large_results_of_a_set_arrive_in_pages(stored: Scene, kind: str) -> None:
    """The last ones do not fit into the memory of a page with the first ones."""
    sizes = [tasks.SIZE, 100, tasks.SIZE, 20_000_000, 20_000_000]
    order = stored.app.workflow("large set")
    written = order.add_many(
        [tasks.write.request(number, size) for number, size in enumerate(sizes)], name="written"
    )
    many = order.add(getattr(tasks, f"many_{kind}").request(written.results))
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(many) == [_begins(0, 1, 2, 3, 4), "4:"]


async def test_a_list_argument_and_a_map_over_a_set_have_large_results(stored: Scene) -> None:
    order = stored.app.workflow("lists")
    requests = [tasks.write.request(number) for number in range(3)]
    written = order.add_many(requests, name="written")
    whole = order.add(tasks.whole.request(written.results))
    mapped = order.map(written.results, tasks.one_thread.request)
    echoed = order.map(written.results, tasks.echo.request)
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(whole) == _begins(0, 1, 2)
        size = len(tasks.text(0))
        assert await run.results(mapped) == [["0:", size], ["1:", size], ["2:", size]]
        assert await run.results(echoed) == [tasks.text(number) for number in range(3)]
        sync = stored.app.sync.workflows.handle(run.id)
        assert sync.results("echo") == [tasks.text(number) for number in range(3)]


async def test_a_map_runs_over_a_list_in_the_store(stored: Scene) -> None:
    """Three chunks: 2,500 elements of 150 bytes, and again in a rerun from the map."""
    order = stored.app.workflow("long list")
    listed = order.add(tasks.listed.request(2500, 150))
    numbers = order.map(listed.result, tasks.number_of.request, name="numbers")
    total = order.add(tasks.total.request(numbers.results))
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await run.wait(timeout=PATIENCE)
        assert await run.result(total) == 2500 * 2499 // 2
        again = await run.rerun(from_step="numbers")
        await again.wait(timeout=PATIENCE)
        assert await again.result("total") == 2500 * 2499 // 2
    [job] = await run.jobs(listed)
    assert [found.kind for found in await stored.app.artifacts.list(job=job.id)] == ["result"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (tasks.listed.request(10_001, 30), "map_too_large"),
        (tasks.document.request(), "map_in_store"),
    ],
)
async def test_a_map_over_what_it_cannot_use_says_why(
    stored: Scene, source: Any, reason: str
) -> None:
    order = stored.app.workflow("no map")
    listed = order.add(source)
    order.map(listed.result, tasks.number_of.request, name="numbers")
    async with stored.working():
        run = await stored.app.workflows.start(order)
        with pytest.raises(WorkflowFailed):
            await run.wait(timeout=PATIENCE)
    [_, step] = (await run.get()).steps
    assert (step.state, step.reason) == ("failed", reason)


@pytest.mark.parametrize("kind", KINDS)
async def test_child_jobs_return_large_results(stored: Scene, kind: str) -> None:
    async with stored.working():
        (job,) = await stored.enqueue(f"gather_{kind}", jobs=2)
        size = len(tasks.text(0))
        assert await stored.app.jobs.wait(job, timeout=PATIENCE) == [["0:", size], ["1:", size]]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_transaction_completes_with_a_large_result(stored: Scene, kind: str) -> None:
    async with stored.working():
        (job,) = await stored.enqueue(f"in_transaction_{kind}")
        assert await stored.app.jobs.wait(job, timeout=PATIENCE) == tasks.text(7)


async def test_a_forged_reference_reads_no_other_file(stored: Scene) -> None:
    """Neither as an argument, nor among the results, nor through the client."""

    @stored.app.task
    async def victim(ctx: Context) -> str:
        await ctx.artifact("secret.json", b'"secret"', kind="result")
        return tasks.text(9)

    async with stored.working():
        job = await victim.enqueue()
        await job.wait()
        for artifact in [*(await job.artifacts()), None]:
            forged = str(uuid4() if artifact is None else artifact.id)
            order = stored.app.workflow("forged")
            one = order.add(tasks.forge.request(forged), name="one")
            set_ = order.add_many([tasks.forge.request(forged)], name="set")
            echo = order.add(tasks.echo.request(one.result), name="echo")
            whole = order.add(tasks.echo.request(set_.results), name="whole")
            run = await stored.app.workflows.start(order)
            await run.wait(timeout=PATIENCE)
            value = {"$artifact": forged}
            assert await run.result(one) == await run.result(echo) == value
            assert await run.results(set_) == await run.result(whole) == [value]
            [forger] = await run.jobs(one)
            assert (await stored.app.jobs.get(forger.id)).result == value
            assert await stored.app.jobs.wait(forger.id) == value


async def test_a_result_whose_file_is_gone_is_shown_as_a_reference(stored: Scene) -> None:
    async with stored.working():
        (job,) = await stored.enqueue("write", number=1)
        assert await stored.app.jobs.wait(job) == tasks.text(1)
    [artifact] = await stored.app.artifacts.list(job=job)
    assert await stored.app.artifacts.delete(artifact)
    assert (await stored.app.jobs.get(job)).result == {"$artifact": str(artifact.id)}


async def test_without_a_store_a_large_result_is_refused(scene: Scene, tmp_path: Path) -> None:
    scene.app.tasks.update(tasks.app.tasks)
    async with scene.working():
        (job,) = await scene.enqueue("write", number=1)
        (step,) = await scene.enqueue("step_async", log=str(tmp_path / "log"), size=tasks.SIZE)
        with pytest.raises(JobFailed, match="too large"):
            await scene.app.jobs.wait(job)
        with pytest.raises(JobFailed, match="result of the step is too large"):
            await scene.app.jobs.wait(step)
