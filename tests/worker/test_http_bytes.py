"""Quotas in bytes count what arrives over the wire, whatever becomes of the call."""

from typing import Any

import httpx2
import pytest

from tests.support.http_server import Server, answer
from tests.support.internals import usage
from tests.worker.scene import Scene
from tests.worker.test_http import KINDS, limit
from trunkline import Context, SyncContext


@pytest.mark.parametrize("kind", KINDS)
async def test_bytes_on_the_wire_are_what_a_quota_counts(scene: Scene, kind: str) -> None:
    """RF-56, RF-57, RF-135: header and body bytes, also of a call that failed half-way."""
    limit(scene, "data", '{"quota": 1000000, "quota_unit": "bytes"}')
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"x" * 300

    def half(connection: Any, _request: bytes) -> bool:
        connection.sendall(whole[:100])
        return False

    with Server(answer(b"x" * 300), half) as server:

        @scene.app.task
        async def loop(ctx: Context) -> int:
            found = await ctx.http_client(limit="data", units=50_000).get(server.url)
            with pytest.raises(httpx2.RemoteProtocolError):
                await ctx.http_client(limit="data", units=50_000).post(server.url)
            return int(found.extensions["wire_bytes"])

        @scene.app.task
        def thread(ctx: SyncContext) -> int:
            found = ctx.http_client(limit="data", units=50_000).get(server.url)
            with pytest.raises(httpx2.RemoteProtocolError):
                ctx.http_client(limit="data", units=50_000).post(server.url)
            return int(found.extensions["wire_bytes"])

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            assert (await scene.until_state(job, "completed")).result == len(whole)
    assert [entry.units for entry in usage.entries(scene.superuser)] == [len(whole), 100]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [["data"], ["api", "data"]])
async def test_a_quota_in_bytes_counts_calls_that_say_nothing_of_it(
    scene: Scene, kind: str, limits: list[str]
) -> None:
    """RF-56, RF-57: 50,000 are reserved, what arrived is counted, and the next job knows it."""
    # The second call would move what the first has taught, if it were drawn as a sample.
    scene.database.draw(0.5)
    limit(scene, "api", '{"requests_per_minute": 100}')
    limit(scene, "data", '{"quota": 1000000, "quota_unit": "bytes"}')
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"x" * 300
    spent = "select spent from trunkline.quotas where name = 'data'"
    during: list[int] = []

    def half(connection: Any, _request: bytes) -> bool:
        during.append(scene.value(spent))
        connection.sendall(whole[:100])
        return False

    with Server(answer(b"x" * 300), half) as server:

        @scene.app.task(limit=limits)
        async def loop(ctx: Context) -> None:
            await ctx.http.get(server.url)
            with pytest.raises(httpx2.RemoteProtocolError):
                await ctx.http.post(server.url)

        @scene.app.task(limit=limits)
        def thread(ctx: SyncContext) -> None:
            ctx.http.get(server.url)
            with pytest.raises(httpx2.RemoteProtocolError):
                ctx.http.post(server.url)

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            await scene.until_state(job, "completed")
        (next_job,) = await scene.enqueue(kind)
    assert scene.value(spent) == len(whole) + 100
    # What the first call took is known by the second.
    assert during == [2 * len(whole)]
    (cost,) = usage.costs_of_waiting(scene.superuser, next_job)
    assert cost is not None
    assert cost.units == len(whole)


async def test_a_provider_that_is_not_there_costs_no_bytes(scene: Scene) -> None:
    limit(scene, "data", '{"quota": 1000000, "quota_unit": "bytes"}')
    with Server() as server:
        gone = server.url

    @scene.app.task(limit="data", max_attempts=1)
    async def work(ctx: Context) -> None:
        await ctx.http.get(gone)

    async with scene.working():
        (job,) = await scene.enqueue("work")
        await scene.until_state(job, "dead")
    assert scene.value("select spent from trunkline.quotas where name = 'data'") == 0
