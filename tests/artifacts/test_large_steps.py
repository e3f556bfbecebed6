"""Large results of durable steps are files of the step, and so are files that steps upload."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.artifacts import large_app as tasks
from tests.artifacts.sweeping import files_of, removed
from tests.worker.scene import Scene
from trunkline import Context, Retry, SyncContext
from trunkline.artifacts import LocalStore

PATIENCE = 300.0
FIVE_MB = 5_000_000


@pytest.fixture
def stored(scene: Scene, local: LocalStore) -> Scene:
    scene.app.store = local
    scene.app.tasks.update(tasks.app.tasks)
    return scene


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_a_large_step_result_is_read_by_later_attempts(
    stored: Scene, local: LocalStore, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "log"
    async with stored.working():
        (job,) = await stored.enqueue(f"step_{kind}", log=str(log), size=FIVE_MB)
        found = await stored.app.jobs.wait(job, timeout=PATIENCE)
    assert found == ["1:", FIVE_MB + 2]
    assert log.read_text() == "run\n"
    [path] = files_of(local)
    [artifact] = await stored.app.artifacts.list(job=job)
    assert (artifact.kind, artifact.attempt, artifact.storage_path) == ("result", 1, path)
    assert (artifact.step, artifact.name[:15]) == ("ocr / page", "step-ocr-page--")
    [step] = stored.rows("select * from trunkline.job_steps(%s)", job)
    assert (step.result, step.bytes) == ({"$artifact": str(artifact.id)}, artifact.bytes)


@pytest.mark.parametrize("kind", ["async", "process"])
async def test_a_large_result_of_a_shared_step_is_read_by_all_jobs(
    stored: Scene, local: LocalStore, tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "log"
    order = stored.app.workflow("shared")
    task = getattr(tasks, f"once_{kind}")
    set_ = order.add_many([task.request(str(log), FIVE_MB) for _ in range(3)], name="set")
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await run.wait(timeout=PATIENCE)
        assert await run.results(set_) == [["1:", FIVE_MB + 2]] * 3
    assert log.read_text() == "run\n"
    assert len(files_of(local)) == 1


async def test_a_shared_result_outlives_the_job_that_made_it(
    stored: Scene, local: LocalStore, tmp_path: Path
) -> None:
    """The job that recorded it is cancelled; its other files go, this one stays."""
    recorded, cancelled = asyncio.Event(), asyncio.Event()

    @stored.app.task(max_attempts=1)
    async def first(ctx: Context) -> None:
        await ctx.once("base data", tasks.noted, str(tmp_path / "log"), FIVE_MB)
        await ctx.artifact("rest.txt", b"rest")
        recorded.set()
        await asyncio.sleep(PATIENCE)

    @stored.app.task
    async def gate() -> None:
        await cancelled.wait()

    order = stored.app.workflow("outlived")
    order.add(first.request())
    open_ = order.add(gate.request())
    order.add(tasks.once_async.request(str(tmp_path / "log"), FIVE_MB), after=open_, name="second")
    async with stored.working():
        run = await stored.app.workflows.start(order)
        await recorded.wait()
        [job] = await run.jobs("first")
        await stored.app.jobs.cancel(job.id)
        await stored.until_state(job.id, "cancelled")
        [artifact] = await stored.app.artifacts.list(job=job.id)
        assert artifact.step == "base data"
        await removed(stored, local)
        assert files_of(local) == [artifact.storage_path]
        cancelled.set()
        [second] = await run.jobs("second")
        assert await stored.app.jobs.wait(second.id, PATIENCE) == ["1:", FIVE_MB + 2]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_file_of_a_recorded_step_is_uploaded_once(
    stored: Scene, local: LocalStore, kind: str
) -> None:
    """overview 6.9: a later attempt publishes it, without a second upload."""
    uploads: list[int] = []

    @stored.app.task(max_attempts=3)
    async def loop(ctx: Context) -> None:
        async def render() -> str:
            uploads.append(ctx.attempt)
            return (await ctx.artifact("page.pdf", b"%PDF", kind="pdf")).sha256

        await ctx.step("render", render)
        if ctx.attempt < 3:
            raise Retry(0)

    @stored.app.task(max_attempts=3)
    def thread(ctx: SyncContext) -> None:
        def render() -> str:
            uploads.append(ctx.attempt)
            return ctx.artifact("page.pdf", b"%PDF", kind="pdf").sha256

        ctx.step("render", render)
        if ctx.attempt < 3:
            raise Retry(0)

    async with stored.working():
        (job,) = await stored.enqueue(kind)
        await stored.app.jobs.wait(job, PATIENCE)
    [artifact] = await stored.app.artifacts.list(job=job)
    assert uploads == [artifact.attempt] == [1]
    assert (artifact.name, artifact.step) == ("page.pdf", "render")
    assert await stored.app.artifacts.read(artifact) == b"%PDF"
    assert files_of(local) == [artifact.storage_path]


async def test_only_files_of_recorded_calls_are_published(stored: Scene) -> None:
    """Not those of a sibling that failed, nor those of a call that was tried again."""
    calls: list[str] = []

    @stored.app.task(max_attempts=1)
    async def work(ctx: Context) -> None:
        async def render(name: str) -> None:
            calls.append(name)
            await ctx.artifact(f"{name}-{calls.count(name)}.txt", name.encode())
            if name == "bad" or calls.count(name) < 2:
                raise ValueError("torn")

        await asyncio.gather(
            ctx.step("render", render, "good", key="good", retries=1),
            ctx.step("render", render, "bad", key="bad"),
            return_exceptions=True,
        )
        await ctx.artifact("plain.txt", b"plain")

    async with stored.working():
        (job,) = await stored.enqueue("work")
        await stored.app.jobs.wait(job, PATIENCE)
    found = await stored.app.artifacts.list(job=job)
    assert [(artifact.name, artifact.step) for artifact in found] == [
        ("good-2.txt", "render"),
        ("plain.txt", None),
    ]


async def test_a_reset_step_takes_its_file_with_it(
    stored: Scene, local: LocalStore, tmp_path: Path
) -> None:
    log = tmp_path / "log"

    @stored.app.task(max_attempts=1)
    async def work(ctx: Context) -> int:
        value = await ctx.step("big", tasks.noted, str(log), FIVE_MB)
        if not (tmp_path / "ready").exists():
            raise ValueError("not ready")
        return len(value)

    async with stored.working():
        (job,) = await stored.enqueue("work")
        await stored.until_state(job, "dead")
        [before] = files_of(local)
        await stored.app.jobs.retry(job)
        await stored.until_state(job, "dead")
        assert files_of(local) == [before]
        assert log.read_text() == "run\n"
        stored.rows("select trunkline.reset_step(%s, 'big')", job)
        (tmp_path / "ready").touch()
        await stored.app.jobs.retry(job)
        assert await stored.app.jobs.wait(job, PATIENCE) == FIVE_MB + 2
        assert log.read_text() == "run\nrun\n"
    await removed(stored, local)
    [artifact] = await stored.app.artifacts.list(job=job)
    assert files_of(local) == [artifact.storage_path]
