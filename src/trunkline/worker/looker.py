"""A look from the very start of the queues, now and then, beside claims that keep their place."""

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

__all__ = ["Looker"]

_EVERY: Final = 10.0
# A look that took long is followed by a pause of so many times its length.
_REST: Final = 20
_MOST: Final = 10
# Under an old snapshot such a look walks all dead entries; nobody waits for it.
_PATIENCE: Final = 60.0
# But for its end: running jobs have their grace, and whoever stops a worker has less than a minute.
_LAST_WAIT: Final = 2.0


class Looker(Part):
    """Finds what rolled-back claims left behind the position, on a connection of its own."""

    name = "looker"

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
        on_look: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__()
        # Where claims are now; and who wants to know how long a look took.
        self._position = position
        self._on_look = on_look
        self._taken = 0.0
        self._connection = LastingConnection(dsn, name="trunkline looker")
        self._worker = worker
        self._queues = queues
        self._tasks = tasks
        self._executor = executor
        self._roster = roster

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Wait, then look."""
        pause = max(_EVERY, _REST * self._taken)
        await self.pause(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers
        wanted = min(self._executor.demand(), _MOST)
        if self.stopping.is_set() or not wanted or self._roster.releasing:
            return
        # Its answer on the way is not an answer lost: see Claimer.
        self._roster.looking = True
        begin = time.monotonic()
        try:
            # Only what lies behind: a newer job that it met would be held until its end.
            behind = f'{{"behind": {self._position()}}}'
            claim = work.claim(self._worker, self._queues, wanted, self._tasks, behind)
            claiming = self._connection.run(claim, patience=_PATIENCE)
            claimed = await self.unless_stopping(claiming, grace=_LAST_WAIT)
        except Exception:
            self._roster.doubt()
            raise
        finally:
            self._roster.looking = False
        if claimed is None:
            self._roster.doubt()
            return
        self._taken = time.monotonic() - begin
        if self._on_look is not None:
            self._on_look(self._taken)
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
