"""Two worker processes with different code serve one task, as during a rolling deploy."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.support.processes import REPOSITORY
from tests.support.worker_process import WorkerProcess
from tests.worker.scene import Scene, eventually
from trunkline import Trunkline

# The worker that is to stay out of the way runs one job, `hold`, until the test lets it go.
VERSION = """
import asyncio
from pathlib import Path
from trunkline import Trunkline

app = Trunkline()

@app.task
async def hold() -> None:
    while not Path({go!r}).exists():
        await asyncio.sleep(0.02)

{task}
"""
BEFORE = {
    "async": "@app.task\nasync def send(to: str) -> str:\n    return f'plain {to}'\n",
    "thread": "@app.task\ndef send(to: str) -> str:\n    return f'plain {to}'\n",
    "process": "@app.task(process=True)\ndef send(to: str) -> str:\n    return f'plain {to}'\n",
}
AFTER = "@app.task\nasync def send(to: str, colour: str) -> str:\n    return f'{colour} {to}'\n"


@dataclass
class Deploy:
    """One database, and workers started from versions of a module."""

    scene: Scene
    folder: Path
    started: list[WorkerProcess] = field(default_factory=list)

    def start(self, version: str, task: str) -> tuple[WorkerProcess, str]:
        """A worker of that code, ready; with the name under which it is registered."""
        home = self.folder / version
        home.mkdir(exist_ok=True)
        (home / "shop.py").write_text(VERSION.format(go=str(self.folder / "go"), task=task))
        worker = WorkerProcess(
            "shop:app",
            "--concurrency",
            "1",
            environment={
                "TRUNKLINE_DSN": self.scene.database.dsn,
                "PYTHONPATH": f"{home}:{REPOSITORY}",
            },
            log=self.folder / f"{version}.log",
        )
        self.started.append(worker)
        (name,) = worker.until_ready(self.scene.superuser)
        return worker, name

    async def busy(self, version: str, task: str) -> tuple[WorkerProcess, str]:
        """The same, alive and with no room for another job."""
        worker, name = self.start(version, task)
        job = self.enqueue("hold")
        await eventually(lambda: self.scene.job(job).worker == name, "it runs the job that holds")
        return worker, name

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def enqueue(self, task: str) -> UUID:
        found: UUID = self.scene.value("select job_id from trunkline.enqueue(p_task => %s)", task)
        return found

    def events(self, job: UUID, kind: str) -> list[Any]:
        return self.scene.rows(
            "select worker, detail from trunkline.events where job_id = %s and kind = %s", job, kind
        )


@pytest.fixture
def deploy(scene: Scene, tmp_path: Path) -> Iterator[Deploy]:
    # Without jitter a job comes back after exactly a minute: both workers still count as alive.
    scene.database.draw(0.0)
    scene.superuser.execute("select trunkline.set_setting('pulse_misses', '100')")
    deployed = Deploy(scene, tmp_path)
    try:
        yield deployed
    finally:
        for worker in deployed.started:
            worker.destroy()


def old_code() -> Trunkline:
    app = Trunkline()

    @app.task
    async def send(to: str) -> str: ...  # type: ignore[empty-body]

    return app


def new_code() -> Trunkline:
    app = Trunkline()

    @app.task
    async def send(to: str, colour: str) -> str: ...  # type: ignore[empty-body]

    return app


async def produce(app: Trunkline, deploy: Deploy, **payload: Any) -> UUID:
    """Enqueue with that version of the code."""
    with app.connect_to(deploy.scene.database.dsn):
        handle = await app.tasks["send"].enqueue(**payload)
        await app.close()
    return handle.id


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_job_of_new_code_waits_out_the_old_workers(deploy: Deploy, mode: str) -> None:
    scene = deploy.scene
    _, new = await deploy.busy("new", AFTER)
    old_worker, old = deploy.start("old", BEFORE[mode])
    job = await produce(new_code(), deploy, to="ann", colour="red")
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    assert (found.state, found.failures, found.deferrals) == ("scheduled", 0, 1)
    reason = (
        f"field colour of the payload does not fit the code of {old};"
        f" {new} has another version of send"
    )
    assert found.reason == reason
    (event,) = deploy.events(job, "released")
    assert (event.worker, event.detail["reason"]) == (old, reason)
    (why,) = scene.rows("select * from trunkline.explain(%s) where reason = 'scheduled'", job)
    assert why.detail["reason"] == reason
    await eventually(lambda: old_worker.says("send", "colour", new), "the old worker logs it")

    old_worker.signal(signal.SIGTERM)
    assert old_worker.until_ended() == 0
    deploy.let_go()
    scene.database.move_time("61 seconds")
    found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.result, found.failures) == ("completed", "red ann", 0)


async def test_a_job_of_old_code_waits_out_the_new_workers(deploy: Deploy) -> None:
    scene = deploy.scene
    _, old = await deploy.busy("old", BEFORE["async"])
    new_worker, new = deploy.start("new", AFTER)
    job = await produce(old_code(), deploy, to="ann")
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    assert (found.state, found.failures, found.deferrals) == ("scheduled", 0, 1)
    assert found.reason.startswith(f"field colour of the payload does not fit the code of {new};")
    await eventually(lambda: new_worker.says("send", "colour", old), "the new worker logs it")

    new_worker.signal(signal.SIGTERM)
    assert new_worker.until_ended() == 0
    deploy.let_go()
    scene.database.move_time("61 seconds")
    found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.result, found.failures) == ("completed", "plain ann", 0)


async def test_a_job_is_dead_once_the_other_worker_has_died(deploy: Deploy) -> None:
    scene = deploy.scene
    new_worker, new = await deploy.busy("new", AFTER)
    _, old = deploy.start("old", BEFORE["async"])
    job = await produce(new_code(), deploy, to="ann", colour="red")
    assert (await scene.until_state(job, "scheduled", "dead", "completed")).state == "scheduled"

    new_worker.destroy()
    scene.database.move_time("10 minutes")
    alive = "select alive from trunkline.workers where worker = %s"
    assert [row.alive for row in scene.rows(alive, new)] in ([], [False])
    found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.reason, found.failures) == ("dead", "not_retryable", 1)
    assert (found.last_error["code"], found.last_error["field"]) == ("payload_mismatch", "colour")
    assert [event.worker for event in deploy.events(job, "failed")] == [old]


async def test_a_wrong_type_is_dead_at_once_whatever_other_workers_live(deploy: Deploy) -> None:
    scene = deploy.scene
    await deploy.busy("new", AFTER)
    worker, _ = deploy.start("old", BEFORE["async"])
    payloads = ['{"to": 5}', '{"to": 5, "colour": "red"}']
    enqueue = "select job_id from trunkline.enqueue(p_task => 'send', p_payload => %s::jsonb)"
    for payload in payloads:
        job = scene.value(enqueue, payload)
        found = await scene.until_state(job, "scheduled", "dead", "completed")
        assert (found.state, found.attempt, found.reason) == ("dead", 1, "not_retryable")
    await eventually(lambda: worker.says("attempt 1 of send failed"), "it is logged")


async def test_a_job_that_fits_nobody_is_dead_at_once(deploy: Deploy) -> None:
    """All workers have the same code: nobody could run it later."""
    scene = deploy.scene
    await deploy.busy("one", AFTER)
    worker, _ = deploy.start("two", AFTER)
    job = await produce(old_code(), deploy, to="ann")
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    assert (found.state, found.attempt, found.failures) == ("dead", 1, 1)
    assert found.last_error["field"] == "colour"
    await eventually(
        lambda: worker.says("attempt 1 of send failed", "PayloadMismatch"), "it is logged"
    )


async def test_workers_report_signatures_that_differ_with_the_code(deploy: Deploy) -> None:
    names = [
        deploy.start("one", AFTER)[1],
        deploy.start("two", AFTER)[1],
        deploy.start("old", BEFORE["thread"])[1],
        deploy.start("same", BEFORE["process"])[1],
    ]
    rows = deploy.scene.rows("select worker, signatures from trunkline.workers")
    signatures = {row.worker: row.signatures for row in rows}
    one, two, old, same = (signatures[name] for name in names)
    assert one == two

    def schema(signatures: dict[str, str]) -> dict[str, list[str]]:
        """The fingerprints of payload and result, without the third, that of the code."""
        return {task: text.split(":")[:2] for task, text in signatures.items()}

    assert schema(old) == schema(same)
    assert schema(one)["hold"] == schema(old)["hold"]
    assert schema(one)["send"] != schema(old)["send"]
    codes = [{text.split(":")[2] for text in each.values()} for each in (one, two, old, same)]
    assert [len(code) for code in codes] == [1, 1, 1, 1]
    assert len(set.union(*codes)) == 3


# The result of `read` changes its type. Each of the handlers reads one that the other code stored.
READ = """
from trunkline import Context

async def look(to: str) -> {kind}:
    return {value}

@app.task
async def read(to: str) -> {kind}:
    return {value}

@app.task
async def send(read: {kind}) -> str:
    return f"{{read}}"

@app.task
async def stepwise(ctx: Context, to: str) -> str:
    found = await ctx.step("look", look, to)
    await ctx.wait_for("go")
    return f"{{found}}"

@app.task
async def parent(ctx: Context, to: str) -> str:
    [found] = await ctx.gather_jobs([read.request(to)])
    await ctx.wait_for("go")
    return f"{{found}}"
"""
NUMBER = READ.format(kind="int", value="7")
TEXT = READ.format(kind="str", value="'red'")
RESULTS = {
    "stepwise": ("step_mismatch", "the result of step look"),
    "parent": ("step_mismatch", "the result of a job of read"),
    "send": ("payload_mismatch", "the result of step read"),
}


WAITS = "select name from trunkline.job_steps(%s) where state = 'waiting'"
LETTER = {
    "name": "letter",
    "steps": [
        {"name": "read", "task": "read", "payload": {"to": "ann"}},
        {
            "name": "send",
            "task": "send",
            "payload": {"read": {"$result": "read"}},
            "queue": "later",
        },
    ],
}


async def stored_by_new_code(deploy: Deploy, task: str, code: str = TEXT) -> UUID:
    """Let a worker with new code store a result and end, and return the job that will read it."""
    scene = deploy.scene
    scene.superuser.execute("select trunkline.pause_queue('later')")
    worker, _ = deploy.start("first", code)
    if task == "send":
        scene.superuser.execute("select trunkline.start_workflow(%s)", (Jsonb(LETTER),))
        (row,) = scene.rows("select job_id from trunkline.jobs where task = 'send'")
        job: UUID = row.job_id
        await scene.until_state(job, "ready")
    else:
        enqueue = "select job_id from trunkline.enqueue(p_task => %s, p_payload => %s)"
        job = scene.value(enqueue, task, Jsonb({"to": "ann"}))
        await eventually(
            lambda: scene.state(job) == "blocked" and scene.rows(WAITS, job)[0].name == "go",
            "it waits for the event",
        )
    worker.signal(signal.SIGTERM)
    assert worker.until_ended() == 0
    return job


def continue_job(deploy: Deploy, job: UUID, task: str) -> None:
    """Let a worker run the job that reads the result."""
    if task == "send":
        deploy.scene.superuser.execute("select trunkline.resume_queue('later')")
    else:
        deploy.scene.value("select outcome from trunkline.send_event('go', '1', %s)", job)


@pytest.mark.parametrize("task", RESULTS)
async def test_a_result_that_old_code_cannot_read_waits_for_new_code(
    deploy: Deploy, task: str
) -> None:
    scene = deploy.scene
    job = await stored_by_new_code(deploy, task)
    _, new = await deploy.busy("new", TEXT)
    old_worker, old = deploy.start("old", NUMBER)
    attempt = scene.job(job).attempt
    continue_job(deploy, job, task)
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    assert (found.state, found.attempt, found.failures) == ("scheduled", attempt + 1, 0)
    what = RESULTS[task][1]
    reason = f"{what} does not fit the code of {old}; {new} has another version of {task}"
    assert (found.reason, found.deferrals) == (reason, 1)
    await eventually(lambda: old_worker.says(task, what, new), "the old worker logs it")

    old_worker.signal(signal.SIGTERM)
    assert old_worker.until_ended() == 0
    deploy.let_go()
    scene.database.move_time("61 seconds")
    found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.result, found.failures) == ("completed", "red", 0)


# Only the annotation of the step's function differs, in a module of its own.
PAGES = "async def look(to: str) -> {kind}:\n    return {value}\n"
READS_PAGES = """
import pages
from trunkline import Context

@app.task
async def stepwise(ctx: Context, to: str) -> str:
    found = await ctx.step("look", pages.look, to)
    await ctx.wait_for("go")
    return f"{found}"
"""


def write_pages(deploy: Deploy, version: str, **code: str) -> None:
    home = deploy.folder / version
    home.mkdir()
    (home / "pages.py").write_text(PAGES.format(**code))


async def test_a_step_result_waits_for_code_that_differs_only_in_the_function_of_the_step(
    deploy: Deploy,
) -> None:
    scene = deploy.scene
    for version in ("first", "new"):
        write_pages(deploy, version, kind="str", value="'red'")
    write_pages(deploy, "old", kind="int", value="7")
    job = await stored_by_new_code(deploy, "stepwise", READS_PAGES)
    _, new = await deploy.busy("new", READS_PAGES)
    old_worker, old = deploy.start("old", READS_PAGES)
    continue_job(deploy, job, "stepwise")
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    assert (found.state, found.failures, found.deferrals) == ("scheduled", 0, 1)
    assert found.reason == (
        f"the result of step look does not fit the code of {old};"
        f" {new} has another version of stepwise"
    )

    # Nobody could read it once only workers with that code are left.
    deploy.started[-2].destroy()
    scene.database.move_time("20 minutes")
    write_pages(deploy, "same", kind="int", value="7")
    deploy.start("same", READS_PAGES)
    found = await scene.until_state(job, "dead", "completed")
    assert (found.state, found.reason, found.failures) == ("dead", "not_retryable", 1)
    assert found.last_error["result"] == "the result of step look"
    await eventually(lambda: old_worker.says("look"), "the old worker logs it")


@pytest.mark.parametrize("task", RESULTS)
async def test_a_result_that_no_code_can_read_makes_the_job_dead(deploy: Deploy, task: str) -> None:
    scene = deploy.scene
    job = await stored_by_new_code(deploy, task)
    await deploy.busy("one", NUMBER)
    deploy.start("two", NUMBER)
    continue_job(deploy, job, task)
    found = await scene.until_state(job, "scheduled", "dead", "completed")
    code, what = RESULTS[task]
    assert (found.state, found.reason, found.failures) == ("dead", "not_retryable", 1)
    assert (found.last_error["code"], found.last_error["result"]) == (code, what)
