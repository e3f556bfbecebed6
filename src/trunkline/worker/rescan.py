"""Scans the queues from the start now and then, alongside claims that keep their position."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.worker.executor import Executor
from trunkline.worker.part import Part
from trunkline.worker.roster import Roster

__all__ = ["Rescan"]

_EVERY: Final = 10.0
# After a slow scan, the pause is this many times as long as the scan.
_REST: Final = 20
_MOST: Final = 10
# Under an old snapshot the scan reads all dead entries. Nothing waits for it.
_PATIENCE: Final = 60.0
# When the worker stops it waits no longer than this for a scan: operators expect it to end soon.
_LAST_WAIT: Final = 2.0


class Rescan(Part):
    """Finds jobs that rolled-back claims left behind the position, on a separate connection."""

    name = "rescan"

    def __init__(
        self,
        dsn: str,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        *,
        executor: Executor,
        roster: Roster,
        position: Callable[[], str],
        on_scan: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__()
        # The current position of claims, and a function to call with the duration of each scan.
        self._position = position
        self._on_scan = on_scan
        self._duration = 0.0
        self._connection = LastingConnection(dsn, name="trunkline rescan")
        self._worker = worker
        self._queues = queues
        self._tasks = tasks
        self._executor = executor
        self._roster = roster

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Wait, then scan."""
        pause = max(_EVERY, _REST * self._duration)
        await self.pause(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers
        demand = min(self._executor.demand(), _MOST)
        if self.stopping.is_set() or not demand or self._roster.releasing:
            return
        # The claimer must not hand back jobs of an answer that is still on its way.
        self._roster.rescanning = True
        begin = time.monotonic()
        try:
            # Only jobs behind the position: the scan would keep newer ones locked until it ends.
            behind = f'{{"behind": {self._position()}}}'
            claim = work.claim(self._worker, self._queues, demand, self._tasks, behind)
            claiming = self._connection.run(claim, patience=_PATIENCE)
            claimed = await self.unless_stopping(claiming, grace=_LAST_WAIT)
        except Exception:
            self._roster.doubt()
            raise
        finally:
            self._roster.rescanning = False
        if claimed is None:
            self._roster.doubt()
            return
        self._duration = time.monotonic() - begin
        if self._on_scan is not None:
            self._on_scan(self._duration)
        if not claimed.jobs:
            return
        if self._executor.accepting:
            self._executor.submit(self._roster.add(claimed.jobs, begin))
        else:
            jobs = [job.job_id for job in claimed.jobs]
            attempts = [job.attempt for job in claimed.jobs]
            await self._connection.run(
                work.release(self._worker, jobs, attempts, "shutting down", unstarted=True)
            )
