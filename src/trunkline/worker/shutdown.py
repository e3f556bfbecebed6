"""The end of a worker, in the order in which nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from trunkline.worker.completer import Completer
from trunkline.worker.executor import Executor
from trunkline.worker.part import Part
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster, Stop

__all__ = ["Shutdown"]

# What recording the last ends may take; then their leases bring the jobs back.
_LAST_WORDS: Final = 10.0
_LOOK: Final = 0.05

_log = logging.getLogger("trunkline.worker.shutdown")


class Shutdown:
    """Wanted by a signal, an operator or the memory limit; a second wish ends the grace."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self.reason = ""

    def want(self, reason: str) -> None:
        """Begin to end, or hurry if that is under way."""
        if self._wanted.is_set():
            self._hurry.set()
            return
        self.reason = reason
        self._wanted.set()

    def want_once(self, reason: str) -> bool:
        """Begin to end; a repetition changes nothing. Returns whether this was the first wish."""
        if self._wanted.is_set():
            return False
        self.want(reason)
        return True

    def hurry(self, reason: str) -> None:
        """Begin to end, and grant no grace."""
        self.want_once(reason)
        self._hurry.set()

    async def wanted(self) -> None:
        """Wait until somebody wants the end."""
        await self._wanted.wait()

    async def carry_out(
        self, claiming: Sequence[Part], executor: Executor, completer: Completer, roster: Roster
    ) -> None:
        """Claim no more, give back what has not started, let the rest end, record it."""
        _log.info("shutting down (%s): %d jobs held", self.reason, len(roster))
        executor.accepting = False
        await asyncio.gather(*(part.stop() for part in claiming))
        for held in executor.take_unstarted():
            completer.add(Report(held.job, End.HAND_BACK, reason="the worker shut down"))
        await self._let_end(executor, roster)
        for held in roster:
            if held.runner is not None:
                _log.warning("interrupting job %s of %s", held.job.job_id, held.job.task)
                executor.stop_job(held, Stop.SHUTDOWN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                while any(held.runner is not None for held in roster):
                    await asyncio.sleep(_LOOK)
                await completer.drained()
        if len(roster):
            _log.warning("%d jobs are left to their leases", len(roster))

    async def _let_end(self, executor: Executor, roster: Roster) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                while executor.busy and len(roster) and not self._hurry.is_set():
                    await asyncio.sleep(_LOOK)
