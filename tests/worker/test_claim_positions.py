"""Where claims start to scan: an idle worker at the start, and after a slow scan where it was."""

import asyncio
from typing import Any

import pytest

from tests.support.internals import workers
from tests.support.proxy import FaultProxy
from tests.worker.scene import Scene, eventually
from trunkline.db.call import Call
from trunkline.db.calls import work as calls_of_work
from trunkline.db.lasting import LastingConnection

# Longer than any test takes.
_NEVER = 3600.0


class Claims:
    """The positions that claims were sent with; looks behind them are counted apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str | None] = []
        self.answered: list[str | None] = []
        self.looks = 0
        # What a look behind the position takes at least.
        self.look_takes = 0.0
        original = LastingConnection.run

        async def run(connection: LastingConnection, call: Call[Any], **more: Any) -> Any:
            if call.sql != calls_of_work.CLAIM:
                return await original(connection, call, **more)
            position = call.parameters[4]
            if position is None or "behind" not in position:
                self.sent.append(position)
                answer = await original(connection, call, **more)
                self.answered.append(answer.position)
                return answer
            await asyncio.sleep(self.look_takes)
            answer = await original(connection, call, **more)
            self.looks += 1
            return answer

        monkeypatch.setattr(LastingConnection, "run", run)


@pytest.fixture
def claims(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Claims:
    """One task; nothing but new work makes an idle worker claim."""
    monkeypatch.setattr("trunkline.worker.pace._LATE_COMMITS", ())
    monkeypatch.setattr("trunkline.worker.pace._IDLE", (_NEVER,))
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", _NEVER)

    @scene.app.task
    async def work() -> None:
        pass

    return Claims(monkeypatch)


async def run_one(scene: Scene) -> None:
    await eventually(lambda: workers.sleep_flags(scene.superuser), "the worker sleeps")
    (job,) = await scene.enqueue("work")
    await scene.until_state(job, "completed")


async def test_after_a_slow_scan_from_the_start_claims_keep_their_place(
    scene: Scene, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that an old snapshot keeps would be walked again by every claim."""
    monkeypatch.setattr("trunkline.worker.claimer._KEEP_PLACE", _NEVER)
    with FaultProxy.before(scene.database.dsn) as proxy:
        # In each direction: every scan takes longer than one that meets no such entries.
        proxy.slow(0.05)
        async with scene.working(dsn=proxy.dsn(scene.database.dsn)):
            for _ in range(4):
                await run_one(scene)
    # The first one of an idle worker, and no other.
    assert claims.sent.count(None) == 1
    assert len(claims.sent) > claims.sent.index(None) + 3
    # Each goes on where the last one that found a place ended.
    place = "{}"
    for sent, answered in zip(claims.sent, claims.answered, strict=False):
        assert sent in (None, place)
        place = answered or place
    assert place != "{}"


async def test_after_quick_scans_an_idle_worker_claims_from_the_start(
    scene: Scene, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.worker.claimer._SLOW_SCAN", _NEVER)
    async with scene.working():
        for _ in range(3):
            await run_one(scene)
        claims.sent.clear()
        for _ in range(3):
            await run_one(scene)
    assert set(claims.sent) == {None}


async def test_a_slow_scan_behind_the_position_makes_claims_keep_it(
    scene: Scene, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It meets the same old entries, whoever meets them first."""
    monkeypatch.setattr("trunkline.worker.claimer._SLOW_SCAN", 1.0)
    monkeypatch.setattr("trunkline.worker.claimer._KEEP_PLACE", _NEVER)
    monkeypatch.setattr("trunkline.worker.rescan._EVERY", 0.01)
    claims.look_takes = 1.5
    async with scene.working():
        await eventually(lambda: claims.looks, "it looked")
        await run_one(scene)
        claims.sent.clear()
        for _ in range(3):
            await run_one(scene)
    assert len(claims.sent) >= 3
    assert None not in claims.sent
