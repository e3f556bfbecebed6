"""The worker that runs jobs of a sandbox opens and closes what it needs."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from trunkline import Trunkline
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.errors import (
    InvalidTask,
)
from trunkline.testing.serial_worker import SerialWorker
from trunkline.worker.completer import Completer
from trunkline.worker.executor import Executor

_NOW = datetime(2026, 5, 1, 12, 30, 15, tzinfo=UTC)


@pytest.fixture
def app() -> Trunkline:
    made = Trunkline("postgresql://nobody@nowhere/none")

    @made.task(aliases=["old"])
    def work(a: int, b: str = "x", c: float | None = None) -> int:
        return a

    @made.task
    def bare() -> None: ...

    return made


def test_a_hand_opens_and_closes_all_it_has(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noting(kind: Any, name: str, *, waits: bool) -> None:
        async def note(*_: Any) -> None:
            seen.append(f"{kind.__name__}.{name}")

        def note_at_once(*_: Any) -> None:
            seen.append(f"{kind.__name__}.{name}")

        monkeypatch.setattr(kind, name, note if waits else note_at_once)

    noting(AsyncPool, "run", waits=True)
    noting(Executor, "start", waits=False)
    for kind, waits in ((AsyncPool, True), (SyncPool, False), (Completer, True), (Executor, True)):
        noting(kind, "close", waits=waits)

    async def story() -> None:
        async with SerialWorker(app, "postgresql://e@h/d"):
            assert seen == ["AsyncPool.run", "Executor.start"]
            seen.clear()

    asyncio.run(story())
    assert seen == ["Executor.close", "Completer.close", "SyncPool.close", "AsyncPool.close"]


def test_an_application_without_tasks_runs_nothing() -> None:
    with pytest.raises(InvalidTask, match=r"^The application has no tasks$"):
        SerialWorker(Trunkline("postgresql://nobody@nowhere/none"), "")
