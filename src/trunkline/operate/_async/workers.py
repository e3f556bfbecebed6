"""Workers: list and drain them, and how many are wanted."""

from __future__ import annotations

import builtins

from trunkline.db.calls import admin, views
from trunkline.model import WorkerStatus, WorkerTarget
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncWorkers"]


class AsyncWorkers:
    """All workers; `operator.workers`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self, *, everyone: bool = False) -> list[WorkerStatus]:
        """Return workers that are active, draining or lost; with `everyone`, stopped ones too."""
        return await self._session.run(views.workers(everyone=everyone))

    async def wanted(self) -> builtins.list[WorkerTarget]:
        """Return how many workers are wanted for each queue and set of tasks."""
        return await self._session.run(views.wanted_workers())

    async def drain(self, worker: str, *, reason: str | None = None) -> str:
        """Ask a worker to finish its jobs and claim no more; return its state."""
        return await self._session.run(admin.drain_worker(worker), reason=reason)
