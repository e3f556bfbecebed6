"""Runs the maintenance of the engine. Every worker tries; the engine lets one run each duty."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from trunkline.db.calls.admin import run_duties, run_duty
from trunkline.db.lasting import LastingConnection
from trunkline.model import DutyRun
from trunkline.telemetry import count
from trunkline.worker.part import Part

__all__ = ["Duties"]

_EVERY: Final = 5.0
# Partitions of a large table, or many expired leases after an outage, take this long.
_PATIENCE: Final = 120.0
# Every role can send on the channel that names duties, so only these run on a call.
_ON_CALL: Final = frozenset({"advance_workflows", "expand_workflows"})


class Duties(Part):
    """Calls run_duties, which runs each duty that is due by its own interval."""

    name = "duties"

    def __init__(self, dsn: str, *, pulse: float, every: float = _EVERY) -> None:
        super().__init__()
        self._every = every
        self._connection = LastingConnection(dsn, name="trunkline duties")
        self._pulse = pulse
        self._failed = False
        self._called: set[str] = set()
        self._call = asyncio.Event()

    def call(self, duty: str) -> None:
        """Run a duty soon: a notification says that it has work."""
        if duty in _ON_CALL:
            self._called.add(duty)
            self._call.set()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Run what is due, then wait."""
        if self._failed:
            # After an outage every worker's pulse is old. Give all workers time to send one, or the
            # first one that returns takes the jobs of the others.
            await self.pause(2 * self._pulse + 1)
            if self.stopping.is_set():
                return
        self._failed = True
        self._call.clear()
        called, self._called = self._called, set()
        for duty in sorted(called):
            await self.unless_stopping(self._connection.run(run_duty(duty), patience=_PATIENCE))
        # Abandoned when the worker stops: another worker continues.
        for run in await self.unless_stopping(self.run_due()) or ():
            if run.error:
                self.log.error("duty %s failed: %s", run.duty, run.error)
            elif run.ran and run.rows:
                self.log.debug("duty %s: %s", run.duty, count(run.rows, "row"))
        self._failed = False
        await self._rest(self._every * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers

    async def run_due(self) -> list[DutyRun]:
        """Run the duties that are due and return what each of them did."""
        return await self._connection.run(run_duties(), patience=_PATIENCE)

    async def _rest(self, seconds: float) -> None:
        """Wait for the next round; return early when a duty is called."""
        waits = [asyncio.ensure_future(one) for one in (self.pause(seconds), self._call.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
