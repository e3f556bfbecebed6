"""Records steps of all handlers in batches: steps that arrive during one call form the next batch.

A step is recorded when its transaction has reached the disk. Handlers share that wait: with 50 of
them, one commit records up to 50 steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from trunkline.db.calls.steps import record_steps
from trunkline.db.lasting import LastingConnection
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, SchemaError, TrunklineError
from trunkline.model import NewStep
from trunkline.worker.part import Part

__all__ = ["Recorder", "is_final"]

# A larger batch would hold its locks for too long.
_LARGEST_BATCH: Final = 500

_Pending = tuple[NewStep, "asyncio.Future[str]"]


class Recorder(Part):
    """Keeps each step until the server has recorded it; a failed call is repeated unchanged."""

    name = "recorder"

    def __init__(self, dsn: str, worker: str) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline recorder")
        self._worker = worker
        self._pending: list[_Pending] = []
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Start the loop."""
        self._loop = asyncio.get_running_loop()
        super().start()

    async def record(self, step: NewStep) -> str:
        """Return ok, cancel or lost when the step is on the disk."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._pending.append((step, answer))
        if len(self._pending) == 1:
            self._arrived.set()
        return await answer

    def record_soon(self, step: NewStep) -> Future[str]:
        """Record a step from another thread."""
        assert self._loop is not None  # noqa: S101 - handlers run only while the worker does
        return asyncio.run_coroutine_threadsafe(self.record(step), self._loop)

    def interrupt(self) -> None:
        """Wake a turn that waits, so that it ends."""
        self._arrived.set()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Record the steps in the list; each stays there until the server has answered."""
        await self._arrived.wait()
        while self._pending:
            batch = self._pending[:_LARGEST_BATCH]
            await self._record(batch)
            del self._pending[: len(batch)]
        self._arrived.clear()

    async def _record(self, batch: Sequence[_Pending]) -> None:
        steps = [step for step, _ in batch]
        try:
            verdicts = await self._connection.run(record_steps(self._worker, steps))
        except Exception as error:
            if not is_final(error):
                raise
            if len(batch) == 1:
                _settle(batch[0], error)
                return
            # One step makes the batch fail. Record them one by one to find it.
            for pending in batch:
                await self._record([pending])
            return
        for pending, verdict in zip(batch, verdicts, strict=True):
            _settle(pending, verdict)


def _settle(pending: _Pending, outcome: str | Exception) -> None:
    answer = pending[1]
    if answer.done():
        # Its handler was interrupted while it waited.
        return
    if isinstance(outcome, str):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def is_final(error: Exception) -> bool:
    """Whether the same call would always fail, and block every step behind it."""
    if isinstance(error, SchemaError):
        return False
    if isinstance(error, (DatabaseProblem, DatabaseUnreachable)):
        sqlstate = getattr(error.__cause__, "sqlstate", None)
        # A value that cannot be stored, or is too complex.
        return sqlstate is not None and sqlstate[:2] in {"22", "54"}
    return isinstance(error, TrunklineError) or not isinstance(error, OSError)
