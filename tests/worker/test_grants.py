"""ctx.grant and ctx.settle: calls within a handler take of limits, and settle what they took."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.internals import rows, usage
from tests.worker import flow_app
from tests.worker.scene import Scene, eventually
from trunkline import Context, SyncContext
from trunkline.errors import (
    CostOverLimit,
    DatabaseUnreachable,
    InvalidCost,
    InvalidTask,
    LimitKeyMissing,
    UnknownLimit,
)

KINDS = ["loop", "thread"]


def limit(scene: Scene, name: str, parts: str) -> None:
    scene.superuser.execute("select trunkline.set_limit(%s, %s::jsonb)", (name, parts))


def hold_slot(scene: Scene, name: str) -> UUID:
    """Take a slot from outside of any job."""
    found = scene.rows("select * from trunkline.acquire(%s)", name)[0]
    assert found.granted
    grant: UUID = found.grant_id
    return grant


def let_go(scene: Scene, grant: UUID) -> None:
    assert scene.value("select trunkline.settle(%s)", grant) == "settled"


def bucket(scene: Scene, name: str) -> Any:
    return scene.rows("select * from trunkline.buckets where name = %s", name)[0]


async def until_refused(scene: Scene, name: str) -> None:
    """Wait until somebody has asked in vain."""
    await eventually(lambda: (bucket(scene, name).refused or 0) > 0, "somebody waits")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_grant_is_charged_and_settled_with_what_was_taken(scene: Scene, kind: str) -> None:
    """CP-58: the keys of the name are filled in from the payload, or from what is given."""
    limit(scene, "api/{model}", '{"tokens_per_minute": 1000, "concurrency": 5}')
    seen: list[Any] = []

    @scene.app.task
    async def loop(ctx: Context, model: str) -> None:
        async with ctx.grant("api/{model}", tokens=100) as grant:
            seen.append((bucket(scene, "api/small").tokens_of_minute, grant.id))
            seen.append([await grant.settle(tokens=40), await grant.settle(tokens=1)])
        async with ctx.grant("api/{model}", tokens=100, keys={"model": "large"}):
            seen.append((bucket(scene, "api/large").in_use, bucket(scene, "api/small").in_use))

    @scene.app.task
    def thread(ctx: SyncContext, model: str) -> None:
        with ctx.grant("api/{model}", tokens=100) as grant:
            seen.append((bucket(scene, "api/small").tokens_of_minute, grant.id))
            seen.append([grant.settle(tokens=40), grant.settle(tokens=1)])
        with ctx.grant("api/{model}", tokens=100, keys={"model": "large"}):
            seen.append((bucket(scene, "api/large").in_use, bucket(scene, "api/small").in_use))

    async with scene.working():
        (job,) = await scene.enqueue(kind, model="small")
        await scene.until_state(job, "completed")
    (charged, grant), answers, slots = seen
    assert charged == 100
    assert answers == [True, False]
    assert slots == (1, 0)
    assert bucket(scene, "api/small").tokens_of_minute == 40
    # Nobody settled it: what was estimated stays charged, and the slot is free.
    assert (bucket(scene, "api/large").tokens_of_minute, bucket(scene, "api/large").in_use) == (
        100,
        0,
    )
    assert scene.value("select trunkline.settle(%s)", grant) == "already"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_keeps_the_estimate_unless_it_was_settled(scene: Scene, kind: str) -> None:
    """CP-60: failure ncan ever allow everything back."""
    limit(scene, "api/{model}", '{"tokens_per_minute": 1000}')

    @scene.app.task
    async def loop(ctx: Context, model: str) -> None:
        async with ctx.grant("api/{model}", tokens=100) as grant:
            if model == "told":
                await grant.settle(tokens=7)
            raise ValueError("after the call")

    @scene.app.task
    def thread(ctx: SyncContext, model: str) -> None:
        with ctx.grant("api/{model}", tokens=100) as grant:
            if model == "told":
                grant.settle(tokens=7)
            raise ValueError("after the call")

    async with scene.working():
        jobs = [(await scene.enqueue(kind, model=model))[0] for model in ("told", "untold")]
        for job in jobs:
            await eventually(lambda job=job: scene.job(job).failures == 1, "it failed")  # type: ignore[misc]
            assert scene.job(job).last_error["message"] == "after the call"
    assert bucket(scene, "api/told").tokens_of_minute == 7
    assert bucket(scene, "api/untold").tokens_of_minute == 100
    assert rows.count(scene.superuser, "grants") == 2
    assert usage.unsettled_grants(scene.superuser) == 0


async def test_a_claim_that_took_of_the_limit_is_the_grant(scene: Scene) -> None:
    """Nothing is charged twice; a second call is."""
    limit(scene, "api", '{"tokens_per_minute": 1000}')
    seen: list[int] = []

    @scene.app.task(limit="api", cost={"tokens": 100})
    async def work(ctx: Context) -> None:
        async with ctx.grant("api", tokens=100):
            seen.append(bucket(scene, "api").tokens_of_minute)
        async with ctx.grant("api", tokens=100):
            seen.append(bucket(scene, "api").tokens_of_minute)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    assert seen == [100, 200]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_claim_charged_is_settled(scene: Scene, kind: str) -> None:
    limit(scene, "api", '{"tokens_per_minute": 1000}')
    seen: list[bool] = []

    @scene.app.task(limit="api", cost={"tokens": 100})
    async def loop(ctx: Context) -> None:
        seen.extend([await ctx.settle(tokens=30, cost=0.25), await ctx.settle(tokens=1)])

    @scene.app.task(limit="api", cost={"tokens": 100})
    def thread(ctx: SyncContext) -> None:
        seen.extend([ctx.settle(tokens=30, cost=0.25), ctx.settle(tokens=1)])

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await scene.until_state(job, "completed")
    assert seen == [True, False]
    assert bucket(scene, "api").tokens_of_minute == 30
    entries = [entry for entry in usage.entries(scene.superuser) if entry.job == job]
    assert [(entry.tokens, entry.money) for entry in entries] == [(30, 0.25)]


async def test_processes_have_the_same(scene: Scene) -> None:
    limit(scene, "api/{model}", '{"tokens_per_minute": 1000}')
    limit(scene, "busy", '{"concurrency": 1}')
    hold_slot(scene, "busy")
    with flow_app.app.connect_to(scene.database.dsn):
        scene.app = flow_app.app
        async with scene.working():
            (granted,) = await scene.enqueue("granted", model="a")
            assert (await scene.until_state(granted, "completed")).result == [True, False]
            (settled,) = await scene.enqueue("settled", model="b")
            assert (await scene.until_state(settled, "completed")).result == [True, False]
            (impatient,) = await scene.enqueue("impatient")
            assert (await scene.until_state(impatient, "scheduled")).failures == 0
            (patient,) = await scene.enqueue("patient")
            await eventually(lambda: bucket(scene, "busy").refused > 1, "it waits")
            await scene.app.jobs.cancel(patient)
            assert (await scene.until_state(patient, "cancelled")).failures == 0
        await scene.app.close()
    assert bucket(scene, "api/a").tokens_of_minute == 40
    assert bucket(scene, "api/b").tokens_of_minute == 30


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda ctx: ctx.grant("nowhere"), UnknownLimit),
        (lambda ctx: ctx.grant("api/{model}"), LimitKeyMissing),
        (lambda ctx: ctx.grant("api/{model}", keys={"model": ""}), LimitKeyMissing),
        (lambda ctx: ctx.grant("api/x", tokens=1001), CostOverLimit),
        (lambda ctx: ctx.grant("api/x", tokens=-1), InvalidCost),
        (lambda ctx: ctx.grant("api/x", tokens=1.5), InvalidCost),
        (lambda ctx: ctx.grant("api/x", requests=True), InvalidCost),
    ],
)
async def test_what_cannot_be_granted_is_refused(
    scene: Scene, ask: Callable[[Context], Any], error: type[Exception]
) -> None:
    limit(scene, "api/{model}", '{"tokens_per_minute": 1000}')
    limit(scene, "api/x", '{"tokens_per_minute": 1000}')
    seen: list[BaseException] = []

    @scene.app.task
    async def work(ctx: Context) -> None:
        try:
            async with ask(ctx):
                raise AssertionError("it was granted")
        except Exception as refused:  # noqa: BLE001 - the test looks at it
            seen.append(refused)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    assert [type(one) for one in seen] == [error]


async def test_each_kind_of_handler_has_its_kind_of_with(scene: Scene) -> None:
    limit(scene, "api", '{"concurrency": 1}')

    @scene.app.task(max_attempts=1)
    async def loop(ctx: Context) -> None:
        with ctx.grant("api"):  # type: ignore[attr-defined]
            pass

    @scene.app.task(max_attempts=1)
    def thread(ctx: SyncContext) -> None:
        async def inside() -> None:
            async with ctx.grant("api"):  # type: ignore[attr-defined]
                pass

        asyncio.run(inside())

    async with scene.working():
        for kind, place in (
            ("loop", "in an `async def` handler"),
            ("thread", "in a plain handler"),
        ):
            (job,) = await scene.enqueue(kind)
            found = await scene.until_state(job, "dead")
            assert found.last_error["code"] == InvalidTask.code
            assert place in found.last_error["message"]


async def test_a_server_that_is_away_does_not_spoil_a_call_that_is_paid_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TA-36: the work is not done again; the estimate stays charged."""
    from trunkline.worker.backends import LoopBackend  # noqa: PLC0415 - replaced below

    limit(scene, "api", '{"tokens_per_minute": 1000}')
    original = LoopBackend.run

    async def run(self: LoopBackend, call: Any) -> Any:
        if "trunkline.settle(" in call.sql:
            raise DatabaseUnreachable("away")
        return await original(self, call)

    monkeypatch.setattr(LoopBackend, "run", run)

    @scene.app.task
    async def work(ctx: Context) -> str:
        async with ctx.grant("api", tokens=100) as grant:
            assert await grant.settle(tokens=40) is False
        return "done"

    async with scene.working():
        (job,) = await scene.enqueue("work")
        assert (await scene.until_state(job, "completed")).result == "done"
    assert bucket(scene, "api").tokens_of_minute == 100
    assert "its estimate stays charged" in caplog.text


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda ctx: ctx.grant("nowhere"), "unknown_limit"),
        (lambda ctx: ctx.grant("api/{model}"), "limit_key_missing"),
        (lambda ctx: ctx.grant("api/x", tokens=1001), "cost_over_limit"),
        (lambda ctx: ctx.grant("api/x", tokens=-1), "invalid_cost"),
    ],
)
async def test_what_can_never_be_granted_is_dead_at_once(
    scene: Scene, ask: Callable[[Context], Any], code: str
) -> None:
    """Another attempt would ask for the same."""
    limit(scene, "api/{model}", '{"tokens_per_minute": 1000}')
    limit(scene, "api/x", '{"tokens_per_minute": 1000}')

    @scene.app.task
    async def work(ctx: Context) -> None:
        async with ask(ctx):
            raise AssertionError("it was granted")

    async with scene.working():
        (job,) = await scene.enqueue("work")
        found = await scene.until_state(job, "dead", "scheduled")
    assert (found.state, found.attempt, found.last_error["code"]) == ("dead", 1, code)
