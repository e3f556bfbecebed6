"""Calls that a type checker must accept, and the types it must see. Checked, never run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import httpx2

from trunkline import (
    Backoff,
    Breaker,
    Context,
    Job,
    JobHandle,
    JobState,
    Request,
    Results,
    Schedule,
    Snooze,
    SyncContext,
    Task,
    Trunkline,
    WorkflowEnd,
    WorkflowHandle,
)
from trunkline.client import Step, StepSet, SyncJobHandle, SyncWorkflowHandle
from trunkline.handler import Grant, SyncGrant
from trunkline.model import ChangedJob, Enqueued, Explanation, WorkflowStatus
from trunkline.testing import AsyncSandbox, Drained, Sandbox


@dataclass
class Receipt:
    number: int


app = Trunkline("host=nowhere.invalid", listen_dsn=None, connections=5)


@app.task
async def bare(to: str, copies: int = 1) -> Receipt:
    return Receipt(copies)


@app.task
async def with_context(ctx: Context, to: str) -> Receipt:
    await ctx.progress(50, "half way", phase="send")
    ctx.log.info("hello")
    assert_type(ctx.attempt, int)
    assert_type(ctx.deadline, datetime)
    async with ctx.transaction() as connection:
        await connection.execute("select 1")
    return Receipt(len(to))


@app.task
def plain(number: int) -> int:
    return number


@app.task
def plain_with_context(ctx: SyncContext, *, number: int) -> list[int]:
    ctx.progress(10)
    with ctx.transaction() as connection:
        connection.execute("select 1")
    return [number]


@app.task(name="full", queue="q", lease="5m", hard_limit=timedelta(hours=1), max_attempts=3)
async def with_arguments(ctx: Context, to: str) -> None: ...


@app.task(
    backoff=Backoff(base="1s", factor=2, cap=60, jitter=0.1),
    priority=5,
    schedule=Schedule("@daily", time_zone="UTC", payload={}),
    process=True,
    audit=True,
    unique_until="claim",
    crash_limit=3,
    reclaim_on_worker_death=True,
    lost_backoff=False,
    dead_when_deferred=False,
    profile="executor",
)
def with_every_argument() -> str:
    return "done"


@app.task()
async def may_snooze(number: int) -> int | Snooze:
    return Snooze("5m") if number else 5


async def asynchronous() -> None:
    handle = await bare.enqueue("ann", copies=2)
    assert_type(handle, JobHandle[Receipt])
    assert_type(await handle.wait(timeout="30s"), Receipt)
    assert_type(handle.id, UUID)
    assert_type(handle.created, bool)
    assert_type(handle.state, JobState)
    assert_type(handle.run_at, datetime)
    assert_type(await handle.get(), Job)

    assert_type(await (await with_context.enqueue(to="ann")).wait(), Receipt)
    assert_type(await (await plain.enqueue(5)).wait(timeout=1.5), int)
    assert_type(await (await plain_with_context.enqueue(number=5)).wait(), list[int])
    assert_type(await with_arguments.enqueue(to="ann"), JobHandle[None])
    assert_type(await (await with_every_argument.enqueue()).wait(), str)
    assert_type(await (await may_snooze.enqueue(1)).wait(), int | Snooze)

    options = bare.options(
        priority=5,
        delay="1h",
        run_at=datetime.now(UTC),
        queue="q",
        unique_key="k",
        idempotency_key="i",
        tenant="t",
        correlation_id="c",
        max_attempts=2,
        tags=["a"],
        connection=object(),
    ).options(priority=None, tags=("b",), delay=timedelta(seconds=1))
    assert_type(await options.enqueue("ann", 2), JobHandle[Receipt])
    assert_type(options.request(to="ann"), Request[Receipt])

    many = await bare.enqueue_many([bare.request("a"), options.request("b")])
    assert_type(many, list[JobHandle[Receipt]])
    mixed = await app.enqueue_many([bare.request("a"), plain.request(5)])
    assert_type(mixed, list[JobHandle[Any]])


async def jobs() -> None:
    handle = await bare.enqueue("ann")
    assert_type(await app.jobs.wait(handle, timeout=5), Receipt)
    assert_type(await app.jobs.get(handle), Job)
    assert_type(await app.jobs.get("6f1c3a1e-0000-7000-8000-000000000000"), Job)
    found = await app.jobs.list(state=JobState.DEAD, task="bare", limit=5, before=handle.id)
    assert_type(found, list[Job])
    await app.jobs.list(state="ready")
    await app.jobs.list(state=["ready", JobState.RUNNING])
    assert_type(await app.jobs.cancel(handle, reason="no"), ChangedJob)
    assert_type(await app.jobs.retry(handle.id), Enqueued)
    assert_type(await app.jobs.explain(handle.id), Sequence[Explanation])
    by_name = await app.jobs.enqueue("bare", {"to": "ann"}, priority=5, delay=60)
    assert_type(by_name, JobHandle[Any])
    async with app as same:
        assert_type(same, Trunkline)


def blocking() -> None:
    handle = bare.sync.enqueue("ann", copies=2)
    assert_type(handle, SyncJobHandle[Receipt])
    assert_type(handle.wait(timeout=30), Receipt)
    assert_type(with_context.sync.options(priority=5).enqueue(to="ann").wait(), Receipt)
    assert_type(plain.sync.enqueue(5).wait(), int)
    many = bare.sync.enqueue_many([bare.request("a"), bare.sync.options(delay=5).request("b")])
    assert_type(many, list[SyncJobHandle[Receipt]])
    assert_type(
        app.sync.enqueue_many([bare.request("a"), plain.request(5)]), list[SyncJobHandle[Any]]
    )
    assert_type(app.sync.jobs.wait(handle), Receipt)
    assert_type(app.sync.jobs.get(handle.id), Job)
    with app.sync as client:
        assert_type(client.jobs.list(), list[Job])


def generic(task: Task[..., Any]) -> str:
    """Tasks can be passed on."""
    return task.name


def testing() -> None:
    with Sandbox(app) as sandbox:
        assert_type(sandbox.run_inline(bare.request("ann")), Receipt)
        assert_type(sandbox.run_inline(plain.sync.enqueue(5)), int)
        assert_type(sandbox.drain(max_jobs=5, with_scheduled=True), Drained)
        assert_type(sandbox.assert_enqueued(bare, count=1, to="ann"), list[Job])
        assert_type(sandbox.move_time("2h"), datetime)
        assert_type(sandbox.all_enqueued(), list[Job])


async def testing_asynchronously() -> None:
    async with AsyncSandbox(app) as sandbox:
        assert_type(await sandbox.run_inline(bare.request("ann")), Receipt)
        assert_type(await sandbox.run_inline(await plain.enqueue(5)), int)
        assert_type(await sandbox.drain(), Drained)


@app.task(limit="openai/{model}", concurrency={"document/{document}": 1}, fair=True)
async def calling(ctx: Context, model: str, document: str) -> int:
    async with ctx.grant("openai/{model}", tokens=5, keys={"model": model}, wait="30s") as grant:
        assert_type(grant, Grant)
        assert_type(await grant.settle(tokens=3, cost=0.5), bool)
    assert_type(await ctx.settle(tokens=3), bool)
    assert_type(ctx.http, httpx2.AsyncClient)
    answer = await ctx.http.post("https://example.com", json={}, timeout=30)
    assert_type(answer, httpx2.Response)
    client = ctx.http_client(
        limit="openai/{model}",
        keys={"model": model},
        tokens=5,
        requests=1,
        units=1000,
        wait="30s",
        settle=lambda answer: {"tokens": answer.json()["used"]},
        raise_for_limit=False,
    )
    assert_type(client, httpx2.AsyncClient)
    return (await ctx.http_client(limit=False).get("https://example.com")).status_code


@app.task(concurrency=3, breaker=Breaker(failures=5))
def calling_in_a_thread(ctx: SyncContext) -> int:
    with ctx.grant("openai") as grant:
        assert_type(grant, SyncGrant)
        assert_type(grant.settle(tokens=2), bool)
        if grant.settle(tokens=3):
            ctx.settle(units=5)
    assert_type(ctx.http, httpx2.Client)
    assert_type(ctx.http_client(tokens=5), httpx2.Client)
    return ctx.http.get("https://example.com").status_code


@app.task
async def pages_of(path: str) -> list[int]:
    return [1]


@app.task
def read_page(page: int, path: str = "") -> Receipt:
    return Receipt(page)


@app.task
def copy_receipt(receipt: Receipt, copies: int = 1) -> Receipt:
    return receipt


@app.task
async def join(ctx: Context, receipts: Results[Receipt], count: int = 0) -> str:
    async for receipt in receipts:
        assert_type(receipt, Receipt)
    assert_type(await receipts.at(-1), Receipt)
    assert_type(await receipts.all(), list[Receipt])
    if ctx.workflow_id is not None:
        place = await ctx.workflow()
        assert_type(place.step, str)
    return str(len(receipts))


@app.task
def join_plainly(ctx: SyncContext, receipts: Sequence[Receipt]) -> None:
    assert_type(receipts[0], Receipt)
    assert_type(ctx.workflow().generation, int)


@app.task
async def ended(workflow: WorkflowEnd, to: str) -> None: ...


async def workflows() -> None:
    order = app.workflow("report", deadline="2h", phases={"text": 2.5}, tags=["a"], priority=1)
    pages = order.add(pages_of.request("a.pdf"), name="pages", phase="text")
    assert_type(pages, Step[list[int]])
    assert_type(pages.result, list[int])
    receipts = order.map(pages.result, lambda page: read_page.request(page, path="a.pdf"))
    assert_type(order.map(pages.result, read_page.request, name="r"), StepSet[Receipt])
    again = order.map(receipts.results, copy_receipt.request)
    assert_type(again, StepSet[Receipt])
    assert_type(receipts, StepSet[Receipt])
    assert_type(receipts.results, Results[Receipt])
    joined = order.add(join.request(receipts.results), after=[pages, "read_page"])
    order.add(join_plainly.request(receipts.results), after=joined)
    fixed = order.add_many([read_page.request(1), read_page.request(2)], name="fixed")
    assert_type(fixed, StepSet[Receipt])
    order.chain(plain.request(1), bare.request("ann"))
    last = order.add_last(plain.request(2), name="last")
    assert_type(last, Step[int])
    order.on_failure(ended.request(order.end, to="ann"))

    run = await order.start()
    assert_type(run, WorkflowHandle)
    assert_type(await run.wait(timeout="5m"), WorkflowStatus)
    assert_type(await run.result(joined), str)
    assert_type(await run.results(receipts), Sequence[Receipt])
    assert_type(await run.rerun(from_step=joined), WorkflowHandle)
    assert_type(await app.workflows.get(run), WorkflowStatus)
    assert_type(await app.workflows.list(state="failed", name="report"), list[WorkflowStatus])
    assert_type(order.sync.start(connection=object()), SyncWorkflowHandle)
    assert_type(order.sync.start().wait(), WorkflowStatus)

    batch = app.batch("mails")
    batch.add(plain.request(1))
    batch.add_many([plain.request(1), bare.request("ann")])
    batch.on_completed(ended.request(workflow=batch.end, to="ann"))
    assert_type(await batch.start(), WorkflowHandle)
