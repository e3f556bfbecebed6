"""Shuts a worker down in an order that loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from trunkline.telemetry import count
from trunkline.worker.completer import Completer
from trunkline.worker.executor import Executor
from trunkline.worker.part import Part
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster, Stop

__all__ = ["Shutdown"]

# How long recording the last ends may take. After that, jobs return when their leases expire.
_LAST_WORDS: Final = 10.0
_CHECK_EVERY: Final = 0.05

_log = logging.getLogger("trunkline.worker.shutdown")


class Shutdown:
    """Requested by a signal, an operator or the memory limit. A second request ends the grace."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self.reason = ""

    def want(self, reason: str) -> None:
        """Start the shutdown, or end its grace period if it is in progress."""
        if self._wanted.is_set():
            self._hurry.set()
            return
        self.reason = reason
        self._wanted.set()

    def want_once(self, reason: str) -> bool:
        """Start the shutdown unless it is in progress; return whether this call started it."""
        if self._wanted.is_set():
            return False
        self.want(reason)
        return True

    def hurry(self, reason: str) -> None:
        """Start the shutdown without a grace period."""
        self.want_once(reason)
        self._hurry.set()

    async def wanted(self) -> None:
        """Wait until a shutdown is requested."""
        await self._wanted.wait()

    async def carry_out(
        self, claiming: Sequence[Part], executor: Executor, completer: Completer, roster: Roster
    ) -> None:
        """Stop claiming, hand back unstarted jobs, let the others end, and record the ends."""
        _log.info("shutting down (%s): %s held", self.reason, count(len(roster), "job"))
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
                    await asyncio.sleep(_CHECK_EVERY)
                await completer.drained()
        if len(roster):
            _log.warning(
                "%s did not end; each returns when its lease expires", count(len(roster), "job")
            )

    async def _let_end(self, executor: Executor, roster: Roster) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                while executor.busy and len(roster) and not self._hurry.is_set():
                    await asyncio.sleep(_CHECK_EVERY)
