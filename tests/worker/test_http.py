"""ctx.http against a provider that counts: within its limits, settled, heard when it refuses."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.http_server import Server, answer
from tests.support.internals import flow, usage
from tests.worker import flow_app
from tests.worker.scene import Scene, ended_in_a_hurry, eventually
from trunkline import Context, SyncContext, Trunkline
from trunkline.db.pool import AsyncPool
from trunkline.errors import TenantDenied
from trunkline.worker.options import WorkerOptions
from trunkline.worker.worker import Worker
from trunkline_profiles.clinical.stubs.headers import NONSENSE
from trunkline_profiles.clinical.stubs.limits import Model
from trunkline_profiles.clinical.stubs.provider import Provider

KINDS = ["loop", "thread"]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(Model(tokens=700)) as found:
        yield found


def limit(scene: Scene, name: str, parts: str) -> None:
    scene.superuser.execute("select trunkline.set_limit(%s, %s::jsonb)", (name, parts))


def bucket(scene: Scene, name: str) -> Any:
    return scene.rows("select * from trunkline.buckets where name = %s", name)[0]


def chat(text: str = "hello") -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def url(provider: Provider) -> str:
    return provider.url + "/v1/chat/completions"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_is_charged_and_settled_with_the_usage_of_its_response(
    scene: Scene, provider: Provider, kind: str
) -> None:
    limit(scene, "openai", '{"tokens_per_minute": 10000, "requests_per_minute": 100}')

    @scene.app.task(limit="openai", cost={"tokens": 1200})
    async def loop(ctx: Context) -> int:
        answer = await ctx.http_client(tokens=1200).post(url(provider), json=chat())
        return int(answer.json()["usage"]["total_tokens"])

    @scene.app.task(limit="openai", cost={"tokens": 1200})
    def thread(ctx: SyncContext) -> int:
        answer = ctx.http_client(tokens=1200).post(url(provider), json=chat())
        return int(answer.json()["usage"]["total_tokens"])

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        assert (await scene.until_state(job, "completed")).result == 700
    found = bucket(scene, "openai")
    assert (found.tokens_of_minute, found.requests_of_minute) == (700, 1)
    assert provider.account().served == 1


async def test_processes_call_too(scene: Scene, provider: Provider) -> None:
    limit(scene, "openai", '{"tokens_per_minute": 10000}')
    with flow_app.app.connect_to(scene.database.dsn):
        scene.app = flow_app.app
        async with scene.working():
            (job,) = await scene.enqueue("calls", url=url(provider))
            assert (await scene.until_state(job, "completed")).result == 700
            # A refusal in a process of its own puts the attempt off as well.
            provider.refuse(retry_after=40)
            (job,) = await scene.enqueue("calls", url=url(provider))
            assert (await scene.until_state(job, "scheduled")).failures == 0
        await scene.app.close()
    assert bucket(scene, "openai").tokens_of_minute == 700


async def test_an_ordinary_call_asks_the_engine_twice(
    scene: Scene, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for room, once to settle; what the provider says is told only when it matters."""
    provider.set_model("gpt-4o-mini", Model(tokens=7, requests_per_minute=100))
    limit(scene, "openai", '{"requests_per_minute": 100}')
    asked: list[str] = []
    original = AsyncPool.run

    async def run(self: AsyncPool, call: Any, *more: Any) -> Any:
        if "trunkline.register" not in call.sql:
            asked.append(call.sql)
        return await original(self, call, *more)

    @scene.app.task(limit="openai")
    async def work(ctx: Context) -> None:
        monkeypatch.setattr(AsyncPool, "run", run)
        await ctx.http.post(url(provider), json=chat())
        monkeypatch.undo()

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    assert ["trunkline.acquire(" in asked[0], "trunkline.settle(" in asked[1]] == [True, True]
    assert len(asked) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("date", [False, True])
async def test_a_refusal_pauses_that_key_for_all_and_defers_the_attempt(
    scene: Scene, provider: Provider, kind: str, date: bool
) -> None:
    """RF-83, overview 4.11: 429 is no failure. Retry-After is seconds or a date."""
    provider.set_model("gpt-4o-mini", Model(date=date))
    provider.refuse(retry_after=40)
    limit(scene, "openai/{model}", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai/{model}")
    async def loop(ctx: Context, model: str) -> None:
        await ctx.http.post(url(provider), json=chat())

    @scene.app.task(limit="openai/{model}")
    def thread(ctx: SyncContext, model: str) -> None:
        ctx.http.post(url(provider), json=chat())

    async with scene.working():
        (job,) = await scene.enqueue(kind, model="a")
        found = await scene.until_state(job, "scheduled")
        assert (found.failures, found.deferrals) == (0, 1)
        assert "answered 429" in found.reason
        until = bucket(scene, "openai/a").paused_until
        left = "select extract(epoch from %s::timestamptz - trunkline.clock())"
        assert 30 < scene.value(left, until) <= 41
        assert 30 < scene.value(left, found.run_at) <= 41
        # Others of that key wait; another key goes on.
        (same,) = await scene.enqueue(kind, model="a")
        (other,) = await scene.enqueue(kind, model="b")
        await scene.until_state(other, "completed")
        assert scene.state(same) == "ready"
        assert [row.reason for row in scene.rows("select * from trunkline.explain(%s)", same)]
    assert bucket(scene, "openai/b").paused_until is None
    # The request was sent, and counts.
    assert bucket(scene, "openai/a").requests_of_minute == 1
    assert provider.account().refused == 1


async def test_a_handler_may_read_a_refusal(scene: Scene, provider: Provider) -> None:
    """A refusal that names no time pauses the limit for a moment."""
    provider.refuse(retry_after=None)
    limit(scene, "openai", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai")
    async def work(ctx: Context) -> int:
        return (
            await ctx.http_client(raise_for_limit=False).post(url(provider), json=chat())
        ).status_code

    async with scene.working():
        (job,) = await scene.enqueue("work")
        assert (await scene.until_state(job, "completed")).result == 429
    left = "select extract(epoch from paused_until - trunkline.clock()) from trunkline.buckets"
    assert 1 < scene.value(left) <= 5


async def test_an_unavailable_provider_that_names_a_time_pauses_the_limit_too(scene: Scene) -> None:
    limit(scene, "openai", '{"requests_per_minute": 100}')
    busy = answer(b"", "Retry-After: 30", status="503 Service Unavailable")
    with Server(busy) as server:

        @scene.app.task(limit="openai")
        async def work(ctx: Context) -> None:
            await ctx.http.get(server.url)

        async with scene.working():
            (job,) = await scene.enqueue("work")
            found = await scene.until_state(job, "scheduled")
    assert found.failures == 0
    assert "secret" not in found.reason
    assert bucket(scene, "openai").pause_reason == "the provider answered 503"


@pytest.mark.parametrize("nonsense", sorted(NONSENSE))
async def test_nonsense_about_limits_changes_nothing(
    scene: Scene, provider: Provider, nonsense: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider.confuse(kind=nonsense)
    limit(scene, "openai", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai")
    async def work(ctx: Context) -> int:
        return (await ctx.http.post(url(provider), json=chat())).status_code

    async with scene.working():
        (job,) = await scene.enqueue("work")
        assert (await scene.until_state(job, "completed")).result == 200
    assert bucket(scene, "openai").paused_until is None
    assert "that cannot be read" in caplog.text


async def test_a_provider_with_little_left_lowers_the_limit_for_everybody(
    scene: Scene, provider: Provider
) -> None:
    """RF-81: ours allows a hundred a minute, theirs two; the third call is not sent."""
    provider.set_model("gpt-4o-mini", Model(requests_per_minute=2))
    limit(scene, "openai", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai")
    async def work(ctx: Context) -> None:
        await ctx.http.post(url(provider), json=chat())

    @scene.app.task
    async def free() -> None:
        pass

    async with scene.working():
        for _ in range(2):
            (job,) = await scene.enqueue("work")
            await scene.until_state(job, "completed")
        left = "select extract(epoch from paused_until - trunkline.clock()) from trunkline.buckets"
        assert 10 < scene.value(left) < 65
        (third,) = await scene.enqueue("work")
        # Were it claimed, it would be before this one.
        (later,) = await scene.enqueue("free")
        await scene.until_state(later, "completed")
        assert scene.state(third) == "ready"
    assert provider.account().refused == 0


async def test_a_handler_may_report_what_a_response_cost(scene: Scene, provider: Provider) -> None:
    limit(scene, "openai", '{"tokens_per_minute": 10000}')

    @scene.app.task(limit="openai")
    async def work(ctx: Context) -> None:
        await ctx.http_client(
            tokens=1200,
            settle=lambda answer: {"tokens": answer.json()["usage"]["prompt_tokens"], "cost": 0.5},
        ).post(url(provider), json=chat())
        # A bad answer says nothing of it: what was estimated stays.
        await ctx.http_client(tokens=30, settle=lambda _: {"tokens": 1}).post(
            url(provider), json={}
        )

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "completed")
    entries = [entry for entry in usage.entries(scene.superuser) if entry.grant is not None]
    assert sorted((entry.tokens, entry.money) for entry in entries) == [(2, 0.5), (30, 0)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_provider_that_does_not_answer_fails_the_attempt_and_keeps_the_charge(
    scene: Scene, provider: Provider, kind: str
) -> None:
    """RF-76, CP-60."""
    limit(scene, "openai", '{"tokens_per_minute": 10000, "concurrency": 1}')
    provider.hold.clear()

    @scene.app.task(limit="openai", cost={"tokens": 50})
    async def loop(ctx: Context) -> None:
        await ctx.http_client(tokens=50).post(url(provider), json=chat(), timeout=0.2)

    @scene.app.task(limit="openai", cost={"tokens": 50})
    def thread(ctx: SyncContext) -> None:
        ctx.http_client(tokens=50).post(url(provider), json=chat(), timeout=0.2)

    async with scene.working():
        (job,) = await scene.enqueue(kind)
        await eventually(lambda: scene.job(job).failures == 1, "it failed")
    assert scene.job(job).last_error["code"] == "http_timeout"
    found = bucket(scene, "openai")
    assert (found.tokens_of_minute, found.in_use) == (50, 0)


async def test_a_call_may_be_outside_of_all_limits(scene: Scene) -> None:
    limit(scene, "openai", '{"requests_per_minute": 1}')
    with Server() as server:

        @scene.app.task(limit="openai")
        async def work(ctx: Context) -> None:
            for _ in range(3):
                await ctx.http_client(limit=False).get(server.url)

        async with scene.working():
            (job,) = await scene.enqueue("work")
            await scene.until_state(job, "completed")
    assert len(server.requests) == 3
    assert bucket(scene, "openai").requests_of_minute == 1
    # Calls of one worker share their connections.
    assert server.connections == 1


async def test_many_at_once_stay_within_the_limits_as_the_provider_sees_it(
    scene: Scene, provider: Provider
) -> None:
    """Invariant 6: grants of loops and threads together, three at a time and no more."""
    provider.set_model("gpt-4o-mini", Model(concurrency=3, latency=(0.0, 0.02)))
    limit(scene, "openai", '{"concurrency": 3}')
    done = threading.Semaphore(0)

    @scene.app.task
    async def loop(ctx: Context) -> None:
        await ctx.http_client(limit="openai").post(url(provider), json=chat())
        done.release()

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        ctx.http_client(limit="openai").post(url(provider), json=chat())
        done.release()

    async with scene.working(concurrency=12):
        jobs = [*await scene.enqueue("loop", count=15), *await scene.enqueue("thread", count=15)]
        await scene.until_ended(jobs)
    account = provider.account()
    assert (account.served, account.refused) == (30, 0)
    assert account.most_at_once <= 3


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_no_limit_ever_lets_through_is_dead_at_once(
    scene: Scene, kind: str
) -> None:
    limit(scene, "openai", '{"tokens_per_minute": 1000}')
    with Server() as server:

        @scene.app.task(limit="openai")
        async def loop(ctx: Context) -> None:
            await ctx.http_client(tokens=1001).get(server.url)

        @scene.app.task(limit="openai")
        def thread(ctx: SyncContext) -> None:
            ctx.http_client(tokens=1001).get(server.url)

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            found = await scene.until_state(job, "dead", "scheduled")
    assert (found.state, found.failures) == ("dead", 1)
    assert found.last_error["code"] == "cost_over_limit"
    assert server.requests == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_worker_of_one_tenant_calls_a_provider_that_all_share(
    scene: Scene, kind: str
) -> None:
    """Its session may name the shared limit for the job, also when the provider refuses."""
    limit(scene, "openai", '{"requests_per_minute": 100, "tokens_per_minute": 10000}')
    limit(scene, "other", '{"requests_per_minute": 100}')
    denied: list[str] = []

    def declare(app: Trunkline) -> None:
        @app.task(limit="openai", max_attempts=1)
        async def loop(ctx: Context, at: str) -> int:
            async with ctx.grant("openai", tokens=10) as grant:
                await grant.settle(tokens=12)
            try:
                await ctx.http_client(limit="other").get(at)
            except TenantDenied as error:
                denied.append(error.code)
            return (await ctx.http_client(raise_for_limit=False).get(at)).status_code

        @app.task(limit="openai", max_attempts=1)
        def thread(ctx: SyncContext, at: str) -> int:
            with ctx.grant("openai", tokens=10) as grant:
                grant.settle(tokens=12)
            try:
                ctx.http_client(limit="other").get(at)
            except TenantDenied as error:
                denied.append(error.code)
            return ctx.http_client(raise_for_limit=False).get(at).status_code

    refusal = answer(b"", "Retry-After: 30", status="429 Too Many Requests")
    narrowed = Trunkline(make_conninfo(scene.database.dsn, options="-c trunkline.tenant=acme"))
    declare(narrowed)
    # A deployment that is not narrowed registers the tasks; the narrowed one starts with the same.
    declare(scene.app)
    async with scene.working():
        pass
    with Server(refusal) as provider:
        async with ended_in_a_hurry(Worker(narrowed, WorkerOptions())):
            [job] = await narrowed.enqueue_many([narrowed.tasks[kind].request(at=provider.url)])
            done = await scene.until_state(job.id, "completed", "dead")
    await narrowed.close()
    assert (done.state, done.result, done.tenant) == ("completed", 429, "acme")
    assert denied == ["tenant_denied"]
    assert bucket(scene, "openai").pause_reason == "the provider answered 429"


async def test_a_missing_function_does_not_fail_a_job_that_reports_an_answer(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """A schema of another version: the provider's answer is the job's all the same."""
    limit(scene, "openai", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai", max_attempts=1)
    async def work(ctx: Context, at: str) -> int:
        return (await ctx.http_client(raise_for_limit=False).get(at)).status_code

    def busy(connection: socket.socket, request: bytes) -> bool:
        scene.superuser.execute("alter function trunkline.observe_limit rename to observe_another")
        return answer(b"", "Retry-After: 30", status="429 Too Many Requests")(connection, request)

    with Server(busy) as provider:
        async with scene.working():
            (job,) = await scene.enqueue("work", at=provider.url)
            done = await scene.until_state(job, "completed", "dead")
    assert (done.state, done.result) == ("completed", 429)
    assert "could not record" in caplog.text


async def test_a_refused_observation_does_not_fail_the_job(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Its limit went away from under it: the provider's answer is the job's all the same."""
    limit(scene, "openai", '{"requests_per_minute": 100}')

    @scene.app.task(limit="openai", max_attempts=1)
    async def work(ctx: Context, at: str) -> int:
        return (await ctx.http_client(raise_for_limit=False).get(at)).status_code

    def busy(connection: socket.socket, request: bytes) -> bool:
        flow.remove_limit(scene.superuser, "openai")
        return answer(b"", "Retry-After: 30", status="429 Too Many Requests")(connection, request)

    with Server(busy) as provider:
        async with scene.working():
            (job,) = await scene.enqueue("work", at=provider.url)
            done = await scene.until_state(job, "completed", "dead")
    assert (done.state, done.result) == ("completed", 429)
    assert "could not record" in caplog.text
