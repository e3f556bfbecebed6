"""Runs the maintenance of the engine. Every worker does; the engine lets one at a time through."""

from __future__ import annotations

import random
from typing import Final

from trunkline.db.calls.admin import run_duties
from trunkline.db.lasting import LastingConnection
from trunkline.worker.part import Part

__all__ = ["Duties"]

_EVERY: Final = 5.0
# Partitions of a large table, or a long list of leases after an outage.
_PATIENCE: Final = 120.0


class Duties(Part):
    """Reclaim, promote, schedules, partitions: whatever is due by its own period."""

    name = "duties"

    def __init__(self, dsn: str, *, pulse: float) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline duties")
        self._pulse = pulse
        self._failed = False

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Run what is due, then wait."""
        if self._failed:
            # After an outage every worker's pulse is old. Give them time to show that they live,
            # or the first one back takes away the jobs of all others.
            await self.pause(2 * self._pulse + 1)
            if self.stopping.is_set():
                return
        self._failed = True
        # Dropped at the end of the worker: another one carries on.
        running = self.unless_stopping(self._connection.run(run_duties(), patience=_PATIENCE))
        for run in await running or ():
            if run.error:
                self.log.error("duty %s failed: %s", run.duty, run.error)
            elif run.ran and run.rows:
                self.log.debug("duty %s: %d rows", run.duty, run.rows)
        self._failed = False
        await self.pause(_EVERY * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers
