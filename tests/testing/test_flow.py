"""Limits, grants and calls to providers in tests of users' own handlers, on the real engine."""

import asyncio
from typing import Any

import pytest

from tests.support.http_server import Server, answer
from trunkline import Context, SyncContext, Trunkline
from trunkline.errors import LimitExhausted, RateLimited
from trunkline.testing import AsyncSandbox, Sandbox

app = Trunkline()


@app.task(limit="openai", cost={"tokens": 100}, concurrency=2)
async def summarise(ctx: Context, url: str) -> list[Any]:
    response = await ctx.http_client(tokens=100).get(url)
    async with ctx.grant("search", requests=2) as grant:
        again = [await grant.settle(requests=1), await grant.settle()]
    return [response.json()["usage"]["total_tokens"], *again]


@app.task(limit="openai", cost={"tokens": 100})
def plain(ctx: SyncContext, url: str) -> list[Any]:
    first = ctx.settle(tokens=10)
    response = ctx.http_client(limit="search").get(url)
    with ctx.grant("search") as grant:
        again = [grant.settle(), grant.settle()]
    return [first, response.status_code, *again]


@app.task
def impatient(ctx: SyncContext) -> None:
    with ctx.grant("search"):
        pass
    with ctx.grant("search", wait=False):
        raise AssertionError("there was room")


def tokens(sandbox: Sandbox | AsyncSandbox, name: str) -> int:
    import psycopg  # noqa: PLC0415 - as a test of a user would

    with psycopg.connect(sandbox.dsn) as connection:
        row = connection.execute(
            "select tokens_of_minute from trunkline.buckets where name = %s", (name,)
        ).fetchone()
    assert row is not None
    found: int = row[0]
    return found


_USAGE = answer(b'{"usage": {"total_tokens": 42}}')


def set_limits(sandbox: Sandbox | AsyncSandbox) -> None:
    sandbox.set_limit("openai", tokens_per_minute=1000)
    sandbox.set_limit("search", requests_per_minute=5)


def test_a_plain_test_runs_both_kinds_of_handlers() -> None:
    with Sandbox(app) as sandbox, Server(_USAGE) as server:
        set_limits(sandbox)
        assert sandbox.run_inline(summarise.request(url=server.url)) == [42, True, False]
        assert tokens(sandbox, "openai") == 42
        assert sandbox.run_inline(plain.request(url=server.url)) == [True, 200, True, False]
        assert tokens(sandbox, "openai") == 52


def test_an_asynchronous_test_does_too() -> None:
    async def test() -> None:
        async with AsyncSandbox(app) as sandbox:
            set_limits(sandbox)
            with Server(_USAGE) as server:
                found = await sandbox.run_inline(summarise.request(url=server.url))
                assert found == [42, True, False]
                found = await sandbox.run_inline(plain.request(url=server.url))
                assert found == [True, 200, True, False]

    asyncio.run(test())
    assert app.dsn is None


def test_a_refusal_is_raised_to_the_test_and_puts_the_job_off() -> None:
    refusal = answer(b"", "Retry-After: 30", status="429 Too Many Requests")
    with Sandbox(app) as sandbox, Server(refusal, refusal) as server:
        set_limits(sandbox)
        with pytest.raises(RateLimited) as caught:
            sandbox.run_inline(summarise.request(url=server.url))
        assert caught.value.retry_after == 30.0
        sandbox.set_limit("openai", tokens_per_minute=2000)
        sandbox.move_time("31s")
        plain.sync.enqueue(url=server.url)
        assert sandbox.drain().snoozed == 1


def test_a_spent_limit_is_no_failure() -> None:
    with Sandbox(app) as sandbox:
        sandbox.set_limit("search", requests_per_minute=1)
        with pytest.raises(LimitExhausted, match="requests_per_minute"):
            sandbox.run_inline(impatient.request())
