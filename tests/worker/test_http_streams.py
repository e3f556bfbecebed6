"""Answers that are read in parts, redirects and interruptions: slots and charges stay right."""

import asyncio
import socket
import threading

import httpx2
import pytest

from tests.support.http_server import Answer, Server, answer
from tests.worker.scene import Scene, eventually
from tests.worker.test_http import KINDS, bucket, limit
from trunkline import Context, SyncContext
from trunkline.handler.grants import AsyncGrants

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PART = b"5\r\nparts\r\n"


def streamed(more: threading.Event, *, ends: bool = True) -> Answer:
    """Sends a part, and the rest when it may; or ends without it."""

    def reply(connection: socket.socket, _request: bytes) -> bool:
        connection.sendall(HEAD + PART)
        more.wait(60)
        if ends:
            connection.sendall(PART + b"0\r\n\r\n")
        return ends

    return reply


@pytest.mark.parametrize("kind", KINDS)
async def test_a_streamed_answer_holds_its_slot_until_it_ends(scene: Scene, kind: str) -> None:
    limit(scene, "openai", '{"concurrency": 1, "tokens_per_minute": 1000}')
    more = threading.Event()
    during: list[int] = []

    def look() -> None:
        during.append(bucket(scene, "openai").in_use)
        more.set()

    with Server(streamed(more)) as server:

        @scene.app.task
        async def loop(ctx: Context) -> int:
            http = ctx.http_client(limit="openai", tokens=70)
            size = 0
            async with http.stream("GET", server.url) as parts:
                async for part in parts.aiter_bytes():
                    size += len(part)
                    look()
            during.append(bucket(scene, "openai").in_use)
            return size

        @scene.app.task
        def thread(ctx: SyncContext) -> int:
            http = ctx.http_client(limit="openai", tokens=70)
            size = 0
            with http.stream("GET", server.url) as parts:
                for part in parts.iter_bytes():
                    size += len(part)
                    look()
            during.append(bucket(scene, "openai").in_use)
            return size

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            assert (await scene.until_state(job, "completed")).result == 10
    assert during == [1, 1, 0]
    # A stream does not say what it took: the estimate stays charged.
    assert bucket(scene, "openai").tokens_of_minute == 70


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["left", "cut"])
async def test_a_stream_that_ends_early_gives_its_slot_back(
    scene: Scene, kind: str, how: str
) -> None:
    """Left by the handler after the first part, or cut by the provider; bytes are settled."""
    limit(scene, "openai", '{"concurrency": 1}')
    limit(scene, "data", '{"quota": 1000000, "quota_unit": "bytes"}')
    more = threading.Event()
    during: list[int] = []
    with Server(streamed(more, ends=False)) as server:

        @scene.app.task(limit=["openai", "data"])
        async def loop(ctx: Context) -> str:
            try:
                async with ctx.http.stream("GET", server.url) as parts:
                    async for _ in parts.aiter_bytes():
                        more.set()
                        if how == "left":
                            break
            except httpx2.RemoteProtocolError:
                return "cut"
            finally:
                during.append(bucket(scene, "openai").in_use)
            return "left"

        @scene.app.task(limit=["openai", "data"])
        def thread(ctx: SyncContext) -> str:
            try:
                with ctx.http.stream("GET", server.url) as parts:
                    for _ in parts.iter_bytes():
                        more.set()
                        if how == "left":
                            break
            except httpx2.RemoteProtocolError:
                return "cut"
            finally:
                during.append(bucket(scene, "openai").in_use)
            return "left"

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            assert (await scene.until_state(job, "completed")).result == how
    assert bucket(scene, "openai").in_use == 0
    spent = scene.value("select spent from trunkline.quotas where name = 'data'")
    assert spent == len(HEAD + PART)


async def test_a_cancelled_call_gives_its_slot_back(scene: Scene) -> None:
    limit(scene, "openai", '{"concurrency": 1}')
    called, more = threading.Event(), threading.Event()

    def silent(_connection: socket.socket, _request: bytes) -> bool:
        called.set()
        more.wait(60)
        return False

    with Server(silent) as server:

        @scene.app.task
        async def work(ctx: Context) -> None:
            await ctx.http_client(limit="openai").get(server.url, timeout=60)

        async with scene.working():
            (job,) = await scene.enqueue("work")
            await asyncio.to_thread(called.wait, 60)
            scene.rows("select * from trunkline.cancel(%s, %s)", job, "no longer needed")
            await scene.until_state(job, "cancelled")
            more.set()
            await eventually(lambda: bucket(scene, "openai").in_use == 0, "the slot is free")


@pytest.mark.parametrize("kind", KINDS)
async def test_each_request_of_a_redirect_is_a_request(scene: Scene, kind: str) -> None:
    limit(scene, "openai", '{"requests_per_minute": 10}')
    with Server(answer(b"", "Location: /v2", status="302 Found")) as server:

        @scene.app.task
        async def loop(ctx: Context) -> int:
            http = ctx.http_client(limit="openai")
            return (await http.get(server.url, follow_redirects=True)).status_code

        @scene.app.task
        def thread(ctx: SyncContext) -> int:
            http = ctx.http_client(limit="openai")
            return http.get(server.url, follow_redirects=True).status_code

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            assert (await scene.until_state(job, "completed")).result == 200
    assert bucket(scene, "openai").requests_of_minute == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_function_that_cannot_settle_leaves_the_estimate(scene: Scene, kind: str) -> None:
    limit(scene, "openai", '{"concurrency": 1, "tokens_per_minute": 1000}')
    with Server() as server:

        def settle(found: httpx2.Response) -> dict[str, int]:
            return {"tokens": found.json()["missing"]}

        @scene.app.task(max_attempts=1)
        async def loop(ctx: Context) -> None:
            await ctx.http_client(limit="openai", tokens=70, settle=settle).get(server.url)

        @scene.app.task(max_attempts=1)
        def thread(ctx: SyncContext) -> None:
            ctx.http_client(limit="openai", tokens=70, settle=settle).get(server.url)

        async with scene.working():
            (job,) = await scene.enqueue(kind)
            found = await scene.until_state(job, "dead")
    assert found.last_error["type"] == "JSONDecodeError"
    assert (bucket(scene, "openai").tokens_of_minute, bucket(scene, "openai").in_use) == (70, 0)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (answer(b"no such model", status="404 Not Found"), "bad_status"),
        (answer(b"not compressed", "Content-Encoding: gzip"), "http_failed"),
    ],
)
async def test_errors_are_stored_with_their_code_and_without_the_query(
    scene: Scene, reply: Answer, code: str
) -> None:
    with Server(reply) as server:

        @scene.app.task(max_attempts=1)
        async def work(ctx: Context) -> None:
            (await ctx.http.get(server.url)).raise_for_status()

        async with scene.working():
            (job,) = await scene.enqueue("work")
            found = await scene.until_state(job, "dead")
    assert found.last_error["code"] == code
    assert "secret" not in str(found.last_error)


async def test_the_status_of_a_stream_can_be_checked_before_it_is_read(scene: Scene) -> None:
    with Server(answer(b"no", status="404 Not Found")) as server:

        @scene.app.task(max_attempts=1)
        async def work(ctx: Context) -> None:
            async with ctx.http.stream("GET", server.url) as parts:
                parts.raise_for_status()

        async with scene.working():
            (job,) = await scene.enqueue("work")
            found = await scene.until_state(job, "dead")
    assert found.last_error["code"] == "bad_status"
    assert found.last_error["message"].endswith("answered 404 Not Found")


async def test_a_call_that_stops_while_it_reports_gives_everything_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the attempt is cancelled between the headers of a refusal and its body."""
    limit(scene, "openai", '{"concurrency": 1}')
    refusal = answer(b"x" * 1000, "Retry-After: 30", status="429 Too Many Requests")

    async def observe(*_: object) -> None:
        raise InterruptedError("stopped")

    monkeypatch.setattr(AsyncGrants, "observe", observe)
    with Server(refusal) as server:

        @scene.app.task(max_attempts=1)
        async def work(ctx: Context) -> None:
            await ctx.http_client(limit="openai").get(server.url)

        async with scene.working():
            (job,) = await scene.enqueue("work")
            found = await scene.until_state(job, "dead")
            assert server.closed.wait(30)
    assert found.last_error["type"] == "InterruptedError"
    assert bucket(scene, "openai").in_use == 0
