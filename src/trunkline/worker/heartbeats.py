"""Shows that the process and its jobs are alive, from a separate thread.

A handler that blocks the event loop stops all other parts, but not this thread. It extends the
leases of the other jobs, and logs which handler blocks the loop.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.db.calls import work
from trunkline.db.dsn import revive
from trunkline.db.lasting import LastingConnection
from trunkline.errors import DatabaseUnreachable, SchemaNewerThanClient, TrunklineError
from trunkline.model import GONE
from trunkline.schema.contract import SchemaVersion, newer_hint, require_served
from trunkline.worker.part import pause_after_error
from trunkline.worker.roster import HeldJob, Roster, Stop

__all__ = ["Heartbeats"]

_TICK: Final = 0.25
# An event loop that has not run its timer for this long is blocked.
_BLOCKED: Final = 1.0
_STACK_LINES: Final = 4

_log = logging.getLogger("trunkline.worker.heartbeats")


class Heartbeats:
    """The pulse of the worker and the heartbeats of its jobs, one statement for all jobs."""

    def __init__(
        self,
        dsn: str,
        worker: str,
        roster: Roster,
        *,
        every: float,
        detail: Callable[[], Mapping[str, Any]],
        stop_job: Callable[[HeldJob, Stop], None],
        on_state: Callable[[str], None],
        on_outdated: Callable[[SchemaNewerThanClient], None],
    ) -> None:
        self._dsn = dsn
        self._worker = worker
        self._roster = roster
        self._every = every
        self._detail = detail
        self._stop_job = stop_job
        self._on_state = on_state
        self._on_outdated = on_outdated
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._tick_at = time.monotonic()
        self._logged_at = 0.0
        self._last_check = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._main, name="trunkline heartbeats", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._watch_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Stop the thread and wait until it has ended."""
        self._ending.set()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, 10)

    def _watch_loop(self) -> None:
        self._tick_at = time.monotonic()
        if not self._ending.is_set():
            self._loop.call_later(_TICK, self._watch_loop)

    def _main(self) -> None:
        asyncio.run(self._beat_forever())

    async def _beat_forever(self) -> None:
        connection = LastingConnection(self._dsn, name="trunkline heartbeats")
        next_pulse = 0.0
        errors = 0
        while not self._ending.is_set():
            self._check_loop()
            try:
                if time.monotonic() >= next_pulse:
                    await self._pulse(connection)
                    next_pulse = time.monotonic() + self._every
                await self._beat(connection)
                errors = 0
            except Exception as error:  # noqa: BLE001 - no error may stop the heartbeats
                errors += 1
                if errors & (errors - 1) == 0:
                    code = error.code if isinstance(error, TrunklineError) else "unknown"
                    _log.warning("heartbeats: %s (%s)", error, code, extra={"errors": errors})
                if isinstance(error, DatabaseUnreachable):
                    await self._revive()
                if isinstance(error, SchemaNewerThanClient):
                    # Raised by the pulse or by a reconnect. The schema refuses all later calls too.
                    self._call_in_loop(self._on_outdated, error)
                    next_pulse = time.monotonic() + self._every
                await asyncio.sleep(min(pause_after_error(error, errors), 1.0))
            await asyncio.sleep(min(_TICK, self._every / 4))
        await connection.close()

    async def _revive(self) -> None:
        """Start an embedded server that was killed: only the programs that use it can do so."""
        try:
            await asyncio.to_thread(revive, self._dsn)
        except TrunklineError as error:
            _log.warning("could not start the embedded server: %s (%s)", error, error.code)

    async def _pulse(self, connection: LastingConnection) -> None:
        answer = await connection.run(
            work.pulse(self._worker, self._detail()), patience=self._patience
        )
        try:
            require_served(SchemaVersion(answer.version, answer.contract, answer.oldest_contract))
        except SchemaNewerThanClient as error:
            release = await connection.run(work.schema_release(), patience=self._patience)
            error.hint = newer_hint(release)
            raise
        if answer.state != "active":
            self._call_in_loop(self._on_state, answer.state)

    async def _beat(self, connection: LastingConnection) -> None:
        now = time.monotonic()
        due = [
            held
            for held in self._roster.snapshot()
            if held.beat_now or now - held.last_beat >= held.beat_every
        ]
        if not due:
            return
        urgent = [held for held in due if held.beat_now]
        for held in urgent:
            held.beat_now = False
        try:
            verdicts = await connection.run(
                work.heartbeat(
                    self._worker,
                    [held.job.job_id for held in due],
                    [held.job.attempt for held in due],
                ),
                patience=self._patience,
            )
        except BaseException:
            for held in urgent:
                held.beat_now = True
            raise
        for held in due:
            held.last_beat = now
        by_job = {held.job.job_id: held for held in due}
        for verdict in verdicts:
            if verdict.verdict == "cancel":
                self._call_in_loop(self._stop_job, by_job[verdict.job_id], Stop.CANCELLED)
            elif verdict.verdict == "lost":
                held = by_job[verdict.job_id]
                held.gone = verdict.state == GONE
                self._call_in_loop(self._stop_job, held, Stop.LOST)

    @property
    def _patience(self) -> float:
        return max(2.0, self._every)

    def _call_in_loop(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The loop has ended, and the worker with it.
            self._ending.set()

    def _check_loop(self) -> None:
        now = time.monotonic()
        since_check, self._last_check = now - self._last_check, now
        late = now - self._tick_at
        # If this thread was as late, the whole process was suspended, and no handler is to blame.
        if late < _BLOCKED or since_check > _BLOCKED or self._ending.is_set():
            self._logged_at = 0.0
            return
        # Log once, and again each time the delay has doubled.
        if late < 2 * self._logged_at:
            return
        self._logged_at = late
        current = asyncio.current_task(self._loop)
        # Without a current task, a callback blocks the loop.
        held = current and next((job for job in self._roster if job.runner is current), None)
        culprit = (
            f"task {held.job.task}, job {held.job.job_id}" if held else "code that is not a handler"
        )
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - as documented
        stack = "".join(traceback.format_stack(frame)[-_STACK_LINES:]) if frame else ""
        _log.warning(
            "the event loop has been blocked for %.1f s by %s; use `def` or process=True for work"
            " that does not await\n%s",
            late,
            culprit,
            stack,
            extra={"job_id": str(held.job.job_id), "task": held.job.task} if held else {},
        )
