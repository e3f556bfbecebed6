"""Log lines with the job they belong to."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.worker.scene import Scene
from trunkline import Context, SyncContext
from trunkline.handler import JobContext
from trunkline.telemetry import set_up_logging

own = logging.getLogger("my.own.code")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the log of the process goes; afterwards everything is as before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logging.getLogger("trunkline").setLevel(logging.NOTSET)
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def speak(ctx: JobContext, where: str) -> None:
    own.info("own line in %s", where)
    ctx.log.info("context line in %s", where, extra={"colour": "red"})


async def run_all(scene: Scene) -> dict[str, Any]:
    """Run one job in the loop and one in a thread; return their ids."""

    @scene.app.task
    async def in_loop(ctx: Context) -> None:
        speak(ctx, "loop")

        async def inner() -> None:
            own.info("own line in inner task")

        await asyncio.create_task(inner())

    @scene.app.task
    def in_thread(ctx: SyncContext) -> None:
        speak(ctx, "thread")

    @scene.app.task
    async def failing() -> None:
        raise ValueError("on purpose")

    found = {}
    async with scene.working(concurrency=1):
        for name in ("in_loop", "in_thread", "failing"):
            job = await scene.app.tasks[name].options(correlation_id=f"c-{name}").enqueue()
            await scene.until_state(job.id, "completed", "scheduled")
            found[name] = str(job.id)
    return found


async def test_every_line_of_a_handler_names_its_job_in_json(
    scene: Scene, stream: io.StringIO
) -> None:
    set_up_logging("json", "info", stream)
    jobs = await run_all(scene)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    by_message = {line["message"]: line for line in lines}
    for message, task in {
        "own line in loop": "in_loop",
        "context line in loop": "in_loop",
        "own line in inner task": "in_loop",
        "own line in thread": "in_thread",
        "context line in thread": "in_thread",
        "attempt 1 of failing failed: ValueError: on purpose": "failing",
    }.items():
        line = by_message[message]
        assert line["job_id"] == jobs[task], message
        assert line["attempt"] == 1
        assert line["task"] == task
        assert line["correlation_id"] == f"c-{task}"
        assert line["at"].endswith("+00:00")
        assert line["level"] in {"info", "warning"}
    assert by_message["context line in loop"]["colour"] == "red"
    assert by_message["own line in loop"]["logger"] == "my.own.code"
    assert (
        "on purpose"
        in by_message["attempt 1 of failing failed: ValueError: on purpose"]["traceback"]
    )


async def test_lines_of_the_worker_itself_belong_to_no_job(
    scene: Scene, stream: io.StringIO
) -> None:
    """TA-32: the worker is named where it begins and ends."""
    set_up_logging("json", "info", stream)
    await run_all(scene)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    about = {line["message"]: line for line in lines if line["logger"] == "trunkline.worker"}
    assert set(about) == {"worker ready", "worker stopped"}
    assert about["worker ready"]["worker"] == about["worker stopped"]["worker"]
    assert not [line for line in about.values() if "job_id" in line]


async def test_every_line_of_a_handler_names_its_job_for_people(
    scene: Scene, stream: io.StringIO
) -> None:
    set_up_logging("console", "info", stream)
    jobs = await run_all(scene)
    lines = stream.getvalue().splitlines()
    for message, task in {
        "own line in loop": "in_loop",
        "context line in thread": "in_thread",
    }.items():
        (line,) = [one for one in lines if message in one]
        for word in (f"job_id={jobs[task]}", "attempt=1", f"correlation_id=c-{task}"):
            assert word in line
        assert "\x1b" not in line


def test_a_line_about_nothing_in_particular_ends_with_its_message(stream: io.StringIO) -> None:
    set_up_logging("console", "info", stream)
    own.info("ready")
    own.info("ready", extra={"tasks": 2})
    first, second = stream.getvalue().splitlines()
    assert first.endswith(" info     ready")
    assert second.endswith(" info     ready  [tasks=2]")


async def test_levels_below_the_wanted_one_are_left_out(scene: Scene, stream: io.StringIO) -> None:
    set_up_logging("json", "warning", stream)
    await run_all(scene)
    levels = {json.loads(line)["level"] for line in stream.getvalue().splitlines()}
    assert levels <= {"warning", "error"}
    assert levels


async def test_two_jobs_at_once_do_not_mix_their_lines(scene: Scene, stream: io.StringIO) -> None:
    set_up_logging("json", "info", stream)
    both = asyncio.Barrier(2)
    threads = threading.Barrier(2)

    @scene.app.task
    async def in_loop(number: int) -> None:
        for _ in range(5):
            own.info("loop %d", number)
            await both.wait()

    @scene.app.task
    def in_thread(number: int) -> None:
        for _ in range(5):
            own.info("thread %d", number)
            threads.wait(20)

    wanted: dict[str, str] = {}
    async with scene.working(concurrency=4):
        for task in ("in_loop", "in_thread"):
            jobs = await scene.app.enqueue_many(
                [scene.app.tasks[task].request(number=number) for number in range(2)]
            )
            for number, job in enumerate(jobs):
                wanted[f"{task.removeprefix('in_')} {number}"] = str(job.id)
            await scene.until_ended([job.id for job in jobs])
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    found = [(line["message"], line["job_id"]) for line in lines if line["logger"] == own.name]
    assert len(found) == 20
    assert set(found) == set(wanted.items())
