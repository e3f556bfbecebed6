"""Claims jobs in batches, ahead of need where they are short; waits cheaply when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.worker.executor import Executor
from trunkline.worker.pace import Pace
from trunkline.worker.part import Part
from trunkline.worker.roster import Roster

__all__ = ["Claimer"]

# Each claim waits for the log: one process drains a tenth more than with 500.
_LARGEST_CLAIM: Final = 1000
# Busy for this long without a pause: producers need not notify this worker any more.
_BUSY: Final = 1.0
# After a wait of this length it was not busy: two hundred notifications a second cost nothing yet.
_PAUSE: Final = 0.005
# A look from the start that takes longer meets what an old snapshot keeps; then places are kept.
_SLOW_LOOK: Final = 0.02
_KEEP_PLACE: Final = 60.0
# How often the request to be notified is renewed: the next due time may have changed.
_RENEW: Final = 5.0
# A notification may tell of a job that is due later: then soon, but not for each of very many.
_RENEW_AFTER_NEWS: Final = 0.1


class Claimer(Part):
    """Keeps the executor supplied."""

    name = "claimer"

    def __init__(
        self,
        dsn: str,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        *,
        executor: Executor,
        roster: Roster,
        is_notified: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline claimer")
        self._worker = worker
        self._queues = queues
        self._tasks = tasks
        self._executor = executor
        self._roster = roster
        self._is_notified = is_notified
        self._pace = Pace()
        self._signal = asyncio.Event()
        self._position = "{}"
        self._asleep_since: float | None = None
        self._busy_since: float | None = None
        self._due_in: float | None = None
        # Whether there may be a job since, due earlier than all that were known.
        self._news = False
        # Whether the last claim got all it asked for, and until when claims keep their place.
        self._full = False
        self._keep_until = 0.0
        # Whether no runner was free at the last look.
        self._starved = False

    def wake(self) -> None:
        """Look now, for a free runner; not where there is nothing and news would come."""
        if not self._is_content() or self._starved:
            self._signal.set()

    def hear(self) -> None:
        """Look now: something was enqueued, perhaps for later."""
        self._news = True
        self._signal.set()

    def forget_sleep(self) -> None:
        """The engine knows no longer that this worker wants to be notified."""
        self._asleep_since = None
        self._signal.set()

    def interrupt(self) -> None:
        """Let a waiting turn end."""
        self._signal.set()

    @property
    def position(self) -> str:
        """Where the next claim goes on, as the engine gave it."""
        return self._position

    def note_look(self, seconds: float) -> None:
        """Keep the place for a while if a look from the start took this long, whoever looked."""
        if seconds > _SLOW_LOOK:
            self._keep_until = time.monotonic() + _KEEP_PLACE

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Claim once, or wait until there is a reason to."""
        self._signal.clear()
        wanted = min(self._executor.demand(), _LARGEST_CLAIM)
        self._starved = wanted == 0
        if self._starved:
            await self._signal.wait()
            return
        try:
            if await self._claim(wanted):
                # The handlers first: they are what somebody waits for. But where there is more, the
                # server looks for it while they run: handlers that wait for nothing leave the loop
                # to nobody until they have all run (a third of the throughput).
                if not self._full:
                    await asyncio.sleep(0)
                await self._note_busy()
                if not self._is_content():
                    return
            await self._go_idle()
        except Exception:
            self._position, self._asleep_since = "{}", None
            self._roster.doubt()
            raise

    def _is_content(self) -> bool:
        """Whether the last claim took all there was and whatever comes will be announced.

        A second look after each job would find nothing: two statements less for a lonely job.
        """
        return self._asleep_since is not None and not self._full and self._is_notified()

    async def _claim(self, wanted: int) -> bool:
        if self._roster.checks and not self._roster.looking:
            await self._release_forgotten()
        begin = time.monotonic()
        # Nothing lies before the first job of a queue that was empty a moment ago; keeping a place
        # would only cost (a quarter of the claim of one job).
        from_start = self._asleep_since is not None and not self._full and begin > self._keep_until
        position = None if from_start else self._position
        limited = min(self._executor.limited_demand(), wanted)
        claimed = await self._connection.run(
            work.claim(self._worker, self._queues, wanted, self._tasks, position, limited=limited)
        )
        if from_start:
            # Unless somebody holds an old snapshot, and the ends of all jobs before it lie there.
            self.note_look(time.monotonic() - begin)
        self._position = claimed.position or self._position
        # Where no more limited jobs were taken than were asked for, there may be others.
        taken = sum(job.start_by is not None for job in claimed.jobs) if limited < wanted else -1
        self._full = len(claimed.jobs) == wanted or taken == limited
        if claimed.jobs:
            self._executor.submit(self._roster.add(claimed.jobs, begin))
        return bool(claimed.jobs)

    async def _release_forgotten(self) -> None:
        checks = self._roster.checks
        if time.monotonic() < checks[0]:
            return
        known = [held.job.job_id for held in self._roster]
        self._roster.releasing = True
        try:
            forgotten = await self._connection.run(work.release_forgotten(self._worker, known))
        finally:
            self._roster.releasing = False
        checks.pop(0)
        if forgotten:
            self.log.info("handed back %d jobs of a claim whose answer was lost", forgotten)

    async def _note_busy(self) -> None:
        self._pace.worked()
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        elif self._asleep_since is not None and now - self._busy_since > _BUSY:
            await self._connection.run(work.wake(self._worker))
            self._asleep_since = None

    async def _go_idle(self) -> None:
        """Ask to be notified, look once more, then wait."""
        now = time.monotonic()
        fresh = self._asleep_since is None
        age = now - (self._asleep_since or 0.0)
        if fresh or age > (_RENEW_AFTER_NEWS if self._news else _RENEW):
            self._news = False
            self._due_in = await self._connection.run(work.sleep(self._worker, self._queues))
            self._asleep_since = time.monotonic()
        if fresh:
            self._pace.fell_asleep()
            return
        if self._news:
            await self._wait(_RENEW_AFTER_NEWS)
        else:
            await self._wait(self._pace.next_wait(notified=self._is_notified()))

    async def _wait(self, longest: float) -> None:
        if self._due_in is not None:
            since = time.monotonic() - (self._asleep_since or 0.0)
            longest = min(longest, max(self._due_in - since, 0.001))
        if self._roster.checks:
            longest = min(longest, max(self._roster.checks[0] - time.monotonic(), 1.0))
        begin = time.monotonic()
        try:
            async with asyncio.timeout(longest):
                await self._signal.wait()
            if time.monotonic() - begin > _PAUSE:
                self._busy_since = None
        except TimeoutError:
            self._busy_since = None
            # A due job is there now, or soon; ask anew for the one after it.
            self._asleep_since = min(self._asleep_since or 0.0, time.monotonic() - _RENEW - 1)
