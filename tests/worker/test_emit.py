"""ctx.emit: partial output of handlers of every kind, for those who follow the job."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from tests.support.internals import live
from tests.worker.process_app import app as process_app
from tests.worker.scene import Scene
from trunkline import Context, Retry, SyncContext
from trunkline.model import JobEvent
from trunkline.worker.emitter import MOST_EMITTED


async def followed(scene: Scene, job: UUID) -> list[JobEvent]:
    return [event async for event in scene.app.jobs.follow(job, timeout=120)]


def text_of(events: list[JobEvent]) -> str:
    return "".join(event.text or "" for event in events)


@pytest.mark.parametrize("kind", ["loop", "thread", "within_loop", "within_thread"])
async def test_a_follower_receives_all_output_before_the_end(scene: Scene, kind: str) -> None:
    @scene.app.task
    async def loop(ctx: Context) -> None:
        for word in ("one ", "two ", "three"):
            await ctx.emit(word)

    @scene.app.task
    def thread(ctx: SyncContext) -> None:
        for word in ("one ", "two ", "three"):
            ctx.emit(word)

    @scene.app.task
    async def within_loop(ctx: Context) -> None:
        async with ctx.transaction():
            await ctx.emit("one two three")

    @scene.app.task
    def within_thread(ctx: SyncContext) -> None:
        with ctx.transaction():
            ctx.emit("one two three")

    (job,) = await scene.enqueue(kind)
    async with scene.working():
        events = await followed(scene, job)
    assert text_of(events) == "one two three"
    assert [event.kind for event in events][-1] == "end"
    assert events[-1].state == "completed"
    # Also after the end, and from an offset.
    assert text_of(await followed(scene, job)) == "one two three"
    last = next(event for event in events if event.kind == "chunk")
    rest = [event async for event in scene.app.jobs.follow(job, after=last.id)]
    assert last.text is not None
    assert text_of(rest) == "one two three"[len(last.text) :]


async def test_a_process_emits(scene: Scene) -> None:
    scene.app = process_app
    with process_app.connect_to(scene.database.dsn):
        (job,) = await scene.enqueue("emitting", words=["one ", "two"], within=False)
        (other,) = await scene.enqueue("emitting", words=["one ", "two"], within=True)
        async with scene.working():
            assert text_of(await followed(scene, job)) == "one two"
            events = await followed(scene, other)
        assert text_of(events) == "one two"
        assert events[-1].state == "completed"
        await process_app.close()


async def test_a_new_attempt_resets_the_text(scene: Scene) -> None:
    begun = asyncio.Event()
    goes_on = asyncio.Event()

    @scene.app.task(max_attempts=3)
    async def talk(ctx: Context) -> None:
        await ctx.emit(f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            begun.set()
            await goes_on.wait()
            raise Retry(0)

    (job,) = await scene.enqueue("talk")
    async with scene.working():
        events: list[JobEvent] = []
        async for event in scene.app.jobs.follow(job, timeout=120):
            events.append(event)
            if event.kind == "chunk":
                goes_on.set()
    texts = [(event.kind, event.text) for event in events if event.kind in {"chunk", "reset"}]
    assert texts == [("chunk", "attempt 1"), ("reset", None), ("chunk", "attempt 2")]
    assert events[-1].id == "2.1.end"


async def test_an_attempt_emits_one_megabyte_at_most(scene: Scene) -> None:
    @scene.app.task(max_attempts=1)
    async def talk(ctx: Context, size: int) -> None:
        # Three bytes each.
        await ctx.emit("\u20ac" * (size // 3))
        await ctx.emit("x" * (size % 3))

    async with scene.working():
        (most,) = await scene.enqueue("talk", size=MOST_EMITTED)
        events = await followed(scene, most)
        assert len(text_of(events).encode()) == MOST_EMITTED
        assert events[-1].state == "completed"
        (more,) = await scene.enqueue("talk", size=MOST_EMITTED + 1)
        found = await scene.until_state(more, "dead", "completed")
    assert found.last_error["code"] == "emit_too_large"


async def test_output_is_text(scene: Scene) -> None:
    @scene.app.task(max_attempts=1)
    async def talk(ctx: Context) -> None:
        wrong: Any = {"not": "text"}
        await ctx.emit(wrong)

    @scene.app.task
    async def odd(ctx: Context) -> None:
        await ctx.emit("")
        await ctx.emit("a\0b\ud800")

    async with scene.working():
        (bad,) = await scene.enqueue("talk")
        (good,) = await scene.enqueue("odd")
        found = await scene.until_state(bad, "dead", "completed")
        assert found.last_error["code"] == "invalid_argument"
        assert text_of(await followed(scene, good)) == "a\ufffdb?"


async def test_many_small_pieces_become_few_rows(scene: Scene) -> None:
    goes_on = asyncio.Event()

    @scene.app.task
    async def talk(ctx: Context) -> None:
        for number in range(1000):
            await ctx.emit(f"{number} ")
        await goes_on.wait()

    (job,) = await scene.enqueue("talk")
    async with scene.working():
        received = ""
        events: AsyncIterator[JobEvent] = scene.app.jobs.follow(job, timeout=120)
        async for event in events:
            received += event.text or ""
            if received.endswith("999 "):
                goes_on.set()
    assert received == "".join(f"{number} " for number in range(1000))
    assert len(live.chunks(scene.superuser)) <= 3
