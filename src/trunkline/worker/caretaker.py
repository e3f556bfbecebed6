"""Runs the duties without a worker: `trunkline up` without an application."""

from __future__ import annotations

import asyncio
from typing import Final

from trunkline.db.calls import work
from trunkline.db.dsn import revive
from trunkline.errors import DatabaseUnreachable, SchemaNewerThanClient
from trunkline.model import DutyRun
from trunkline.schema.contract import newer_hint, require_served
from trunkline.worker.duties import Duties
from trunkline.worker.stop_signals import on_stop_signal

__all__ = ["Caretaker", "run_duties"]

# More often than a worker: there may be no worker that shares the duties.
_EVERY: Final = 1.0


def run_duties(dsn: str) -> None:
    """Run the duties that are due, every second, until SIGTERM, SIGHUP or Ctrl-C.

    While the server is away, it tries again. It raises SchemaNewerThanClient when the schema no
    longer supports this package.
    """
    asyncio.run(_run(dsn))


async def _run(dsn: str) -> None:
    caretaker = Caretaker(dsn)
    with on_stop_signal(lambda _name: caretaker.stopping.set()):
        caretaker.start()
        await caretaker.stopping.wait()
        await caretaker.stop()
    if caretaker.outdated is not None:
        raise caretaker.outdated


class Caretaker(Duties):
    """Duties without a worker, whose heart would check the schema and revive the server."""

    def __init__(self, dsn: str) -> None:
        # The interval of pulses is read before the first duties.
        super().__init__(dsn, pulse=0.0, every=_EVERY)
        self._dsn = dsn
        self.outdated: SchemaNewerThanClient | None = None

    async def turn(self) -> None:
        """Run what is due, then wait; stop if the schema no longer supports this package."""
        try:
            await super().turn()
        except SchemaNewerThanClient as error:
            self.outdated = error
            self.stopping.set()
        except DatabaseUnreachable:
            # Only its users restart an embedded server that was killed.
            await asyncio.to_thread(revive, self._dsn)
            raise

    async def run_due(self) -> list[DutyRun]:
        """Run the duties that are due, unless the schema no longer supports this package."""
        call = self._connection.run
        try:
            require_served(await call(work.schema_version()))
        except SchemaNewerThanClient as error:
            error.hint = newer_hint(await call(work.schema_release()))
            raise
        self._pulse = self._pulse or await call(work.pulse_interval())
        return await super().run_due()
