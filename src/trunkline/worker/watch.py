"""Enforces hard limits, and hands back jobs that were claimed too early."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from trunkline.telemetry import count
from trunkline.worker.executor import Executor
from trunkline.worker.part import Part
from trunkline.worker.report import End, Report
from trunkline.worker.roster import HeldJob, Roster, Stop

__all__ = ["Watch"]

_EVERY: Final = 0.25
# If no job has started for this long, the claimed ones are left to another worker.
_STALLED: Final = 1.0


class Watch(Part):
    """Checks the held jobs. All times are monotonic, so a clock step changes nothing."""

    name = "watch"

    def __init__(
        self, roster: Roster, executor: Executor, report: Callable[[Report], None]
    ) -> None:
        super().__init__()
        self._roster = roster
        self._executor = executor
        self._report = report
        # The job at the head of the buffer when the last check found that none had started.
        self._stalled: HeldJob | None = None

    async def turn(self) -> None:
        """Wait, then check once."""
        await self.pause(_EVERY)
        now = time.monotonic()
        for held in self._roster:
            if held.started is not None and now >= held.deadline and held.stop is None:
                self.log.warning(
                    "job %s of %s reached its hard limit",
                    held.job.job_id,
                    held.job.task,
                    extra={"job_id": str(held.job.job_id), "attempt": held.job.attempt},
                )
                self._executor.stop_job(held, Stop.HARD_LIMIT)
        head = self._executor.next_unstarted
        stalled = head if now - self._executor.last_start > _STALLED else None
        # Only at the second check in a row: a job that an idle worker has just claimed is in the
        # buffer until the event loop resumes a runner, and after a freeze this check may run first.
        if stalled is not None and stalled is self._stalled:
            self._hand_back()
        self._stalled = stalled

    def _hand_back(self) -> None:
        unstarted = self._executor.take_unstarted()
        self._executor.slow_down()
        self.log.debug("handing back %s claimed too early", count(len(unstarted), "job"))
        for held in unstarted:
            self._report(Report(held.job, End.HAND_BACK, reason="claimed too early"))
