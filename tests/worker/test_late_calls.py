"""Calls that come late: with ctx.http and ctx.grant they stay within the limit, else they show."""

from __future__ import annotations

import asyncio
import logging
import time
import urllib.request
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from tests.cli.driving import Cli
from tests.worker.scene import Scene, eventually
from trunkline import Context
from trunkline.db import notices
from trunkline_profiles.clinical.stubs.limits import Model
from trunkline_profiles.clinical.stubs.provider import Provider

LIMIT = 5


class Late:
    """A provider that counts and does not refuse, by a clock that moves with the engine's."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._ahead = 0.0
        model = Model(requests_per_minute=LIMIT, enforced=False)
        self.provider = Provider(model, clock=lambda: time.monotonic() + self._ahead)
        self.url = self.provider.url + "/v1/chat/completions"
        # Handlers wait here before they call.
        self.go = asyncio.Event()
        self.started = 0
        # A jump of the clock must not make the worker look dead.
        scene.superuser.execute("select trunkline.set_setting('pulse_interval', '10 minutes')")
        scene.superuser.execute(
            "select trunkline.set_limit('api', %s)",
            (msgspec.json.encode({"requests_per_minute": LIMIT}).decode(),),
        )

    async def wait(self) -> None:
        """What a handler does before it calls."""
        self.started += 1
        await self.go.wait()

    async def call_by_hand(self) -> None:
        """A call with a client of one's own."""
        body = msgspec.json.encode(chat())
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310 - our stub
        with await asyncio.to_thread(urllib.request.urlopen, request) as answer:
            assert answer.status == 200

    async def move(self, seconds: int) -> None:
        """Let time pass, and give the worker a claim at the new time."""
        self._ahead += seconds
        self.scene.database.move_time(f"{seconds} seconds")
        # Of the lowest priority, so that a claim takes whatever else there is room for with it.
        job = await self.scene.app.tasks["nudge"].options(priority=-50).enqueue()
        await job.wait(timeout=30)

    async def ended(self, jobs: int) -> None:
        await eventually(lambda: self._ended() >= jobs, f"{jobs} jobs ended")

    def _ended(self) -> int:
        counted = (
            "select count(*) from trunkline.jobs"
            " where task <> 'nudge' and state in ('completed', 'cancelled')"
        )
        return int(self.scene.value(counted))

    def most(self) -> int:
        """The most calls in any 60 seconds."""
        return self.provider.account().most_calls_minute

    def limit(self) -> Any:
        return self.scene.rows("select late, late_tasks from trunkline.limits")[0]


@pytest.fixture
def late(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Late]:
    # What other tests of this process have logged within the hour.
    monkeypatch.setattr(notices, "_logged", {})

    @scene.app.task
    async def nudge() -> None:
        pass

    found = Late(scene)
    yield found
    found.provider.close()


def chat() -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and record.name == "trunkline.limits"
    ]


@asynccontextmanager
async def half_called_late(late: Late, task: str) -> Any:
    """Twice as many jobs as the limit allows; the first half calls 50 seconds after its claim."""
    async with late.scene.working(concurrency=30):
        await late.scene.enqueue(task, 2 * LIMIT)
        await eventually(lambda: late.started == LIMIT, "the first half started")
        await late.move(50)
        late.go.set()
        await late.ended(LIMIT)
        yield


async def test_late_calls_with_an_own_client_are_seen(
    scene: Scene, late: Late, caplog: pytest.LogCaptureFixture
) -> None:
    @scene.app.task(limit="api", lease="1h", hard_limit="2h")
    async def own() -> None:
        await late.wait()
        await late.call_by_hand()

    async with half_called_late(late, "own"):
        assert late.limit() == (LIMIT, ["own"])
        (line,) = warned(caplog)
        assert "own ended" in line
        assert "limit api" in line
        # The charges are forgotten before the calls are: this is what the count tells of.
        await late.move(13)
        await late.ended(2 * LIMIT)
        assert late.most() == 2 * LIMIT
    # The other half called at once, and is not counted.
    assert late.limit().late == LIMIT
    assert len(warned(caplog)) == 1
    cli = Cli(scene.database.dsn)
    assert f"{LIMIT} attempts in 7 days, of own, ended long after the charge" in " ".join(
        cli.text("limits", "show", "api").split()
    )
    shown = cli.json("limits", "show", "api")
    assert (shown["late"], shown["late_tasks"]) == (LIMIT, ["own"])


@pytest.mark.parametrize("way", ["http", "grant"])
async def test_late_calls_through_the_context_never_exceed_the_limit(
    scene: Scene, late: Late, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    @scene.app.task(limit="api", lease="1h", hard_limit="2h")
    async def http(ctx: Context) -> None:
        await late.wait()
        (await ctx.http.post(late.url, json=chat())).raise_for_status()

    @scene.app.task(limit="api", lease="1h", hard_limit="2h")
    async def grant(ctx: Context) -> None:
        await late.wait()
        async with ctx.grant("api"):
            await late.call_by_hand()

    async with half_called_late(late, way):
        for _ in range(12):
            await late.move(6)
        await late.ended(2 * LIMIT)
    assert late.most() == LIMIT
    assert late.provider.account().calls == 2 * LIMIT
    assert late.limit() == (0, [])
    assert warned(caplog) == []


async def test_a_settled_attempt_is_not_late(
    scene: Scene, late: Late, caplog: pytest.LogCaptureFixture
) -> None:
    @scene.app.task(limit="api", lease="1h", hard_limit="2h")
    async def settled(ctx: Context) -> None:
        await late.wait()
        await ctx.settle(requests=1)

    async with half_called_late(late, "settled"):
        assert late.limit() == (0, [])
    assert warned(caplog) == []


async def test_an_attempt_that_ends_in_a_transaction_or_fails_is_counted(
    scene: Scene, late: Late, caplog: pytest.LogCaptureFixture
) -> None:
    @scene.app.task(limit="api", lease="1h", hard_limit="2h")
    async def stored(ctx: Context) -> None:
        await late.wait()
        async with ctx.transaction():
            pass

    @scene.app.task(limit="api", lease="1h", hard_limit="2h", max_attempts=1)
    async def broken() -> None:
        await late.wait()
        raise ValueError("no")

    async with scene.working():
        await scene.enqueue("stored")
        await scene.enqueue("broken")
        await eventually(lambda: late.started == 2, "both started")
        await late.move(20)
        late.go.set()
        await eventually(lambda: late.limit().late == 2, "both are counted")
        await eventually(lambda: len(warned(caplog)) == 2, "both are logged")
    assert sorted(late.limit().late_tasks) == ["broken", "stored"]
