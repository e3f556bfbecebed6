"""Claims jobs in batches, claims short jobs ahead, and waits for notifications when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.telemetry import count
from trunkline.worker.executor import Executor
from trunkline.worker.pace import Pace
from trunkline.worker.part import Part
from trunkline.worker.roster import Roster

__all__ = ["Claimer"]

# Each claim waits for the WAL: one process drains 10 % more jobs than with 500.
_LARGEST_CLAIM: Final = 1000
# After this long without a pause, the worker clears its flag and producers stop notifying it.
_BUSY: Final = 1.0
# A wait longer than this counts as a pause. 200 notifications per second cost next to nothing.
_PAUSE: Final = 0.005
# A scan from the start that takes longer is reading dead entries that an old snapshot keeps. Claims
# then continue from their position for a while.
_SLOW_SCAN: Final = 0.02
_KEEP_PLACE: Final = 60.0
# How often the request to be notified is renewed: the next due time may have changed.
_RENEW: Final = 5.0
# A notification may announce a job that is due later: renew soon, but not once for each of many.
_RENEW_AFTER_NEWS: Final = 0.1


class Claimer(Part):
    """Keeps the executor supplied with jobs."""

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
        # Whether a job may have arrived that is due before the known next due time.
        self._news = False
        # Whether the last claim got as many jobs as it asked for, and until when claims continue
        # from their position.
        self._full = False
        self._keep_until = 0.0
        # Whether no runner was free when the last turn began.
        self._starved = False

    def wake(self) -> None:
        """Claim now, because a runner is free, unless new jobs would be announced anyway."""
        if not self._is_content() or self._starved:
            self._signal.set()

    def hear(self) -> None:
        """Claim now, because a job was enqueued, perhaps for later."""
        self._news = True
        self._signal.set()

    def reset_sleep(self) -> None:
        """Ask to be notified again: the engine has dropped the flag of this worker."""
        self._asleep_since = None
        self._signal.set()

    def interrupt(self) -> None:
        """Wake a turn that waits, so that it ends."""
        self._signal.set()

    @property
    def position(self) -> str:
        """Where the next claim continues, as the engine returned it."""
        return self._position

    def note_scan(self, seconds: float) -> None:
        """Keep the position for a while if a scan from the start, here or in Rescan, was slow."""
        if seconds > _SLOW_SCAN:
            self._keep_until = time.monotonic() + _KEEP_PLACE

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Claim once, or wait until there is a reason to claim."""
        self._signal.clear()
        demand = min(self._executor.demand(), _LARGEST_CLAIM)
        self._starved = demand == 0
        if self._starved:
            await self._signal.wait()
            return
        try:
            if await self._claim(demand):
                # Let the handlers start first, because somebody waits for them. If there are more
                # jobs, send the next claim before: handlers that never await keep the loop until
                # all have run, and the server would idle meanwhile (a third of the throughput).
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
        """Whether the last claim took all jobs and any new one will be announced.

        Another claim after each job would find nothing. This saves two statements per single job.
        """
        return self._asleep_since is not None and not self._full and self._is_notified()

    async def _claim(self, demand: int) -> bool:
        if self._roster.checks and not self._roster.rescanning:
            await self._release_forgotten()
        begin = time.monotonic()
        # A queue that was empty a moment ago has no dead entries to skip, and a position makes the
        # claim of a single job a quarter slower.
        from_start = self._asleep_since is not None and not self._full and begin > self._keep_until
        position = None if from_start else self._position
        limited = min(self._executor.limited_demand(), demand)
        claimed = await self._connection.run(
            work.claim(self._worker, self._queues, demand, self._tasks, position, limited=limited)
        )
        if from_start:
            # Slow only if an old snapshot keeps the entries of jobs that have ended.
            self.note_scan(time.monotonic() - begin)
        self._position = claimed.position or self._position
        # If the claim got all the limited jobs it asked for, there may be more of them.
        limited_claimed = (
            sum(job.start_by is not None for job in claimed.jobs) if limited < demand else -1
        )
        self._full = len(claimed.jobs) == demand or limited_claimed == limited
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
            jobs = count(forgotten, "job")
            self.log.info("handed back %s of a claim whose answer was lost", jobs)

    async def _note_busy(self) -> None:
        self._pace.worked()
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        elif self._asleep_since is not None and now - self._busy_since > _BUSY:
            await self._connection.run(work.wake(self._worker))
            self._asleep_since = None

    async def _go_idle(self) -> None:
        """Ask to be notified, let the next turn claim once more, then wait."""
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
            # A job is due now or soon. Ask again for the due time of the one after it.
            self._asleep_since = min(self._asleep_since or 0.0, time.monotonic() - _RENEW - 1)
