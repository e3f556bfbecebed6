"""Shows that the process and its jobs live, from a thread of its own.

A handler that blocks the event loop stops everything in it, but not this thread: the leases of the
others are extended, and the log names who blocks.
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
from trunkline.worker.roster import Held, Roster, Stop

__all__ = ["Heart"]

_TICK: Final = 0.25
# An event loop that did not come around for this long is blocked.
_BLOCKED: Final = 1.0
_STACK_LINES: Final = 4

_log = logging.getLogger("trunkline.worker.heart")


class Heart:
    """Pulse of the worker and heartbeats of its jobs, one statement for all."""

    def __init__(
        self,
        dsn: str,
        worker: str,
        roster: Roster,
        *,
        every: float,
        detail: Callable[[], Mapping[str, Any]],
        stop_job: Callable[[Held, Stop], None],
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
        self._told_at = 0.0
        self._own_turn = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._main, name="trunkline heart", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._watch_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Stop beating."""
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
        connection = LastingConnection(self._dsn, name="trunkline heart")
        next_pulse = 0.0
        errors = 0
        while not self._ending.is_set():
            self._look_at_loop()
            try:
                if time.monotonic() >= next_pulse:
                    await self._pulse(connection)
                    next_pulse = time.monotonic() + self._every
                await self._beat(connection)
                errors = 0
            except Exception as error:  # noqa: BLE001 - the heart never stops of an error
                errors += 1
                if errors & (errors - 1) == 0:
                    code = error.code if isinstance(error, TrunklineError) else "unknown"
                    _log.warning("heart: %s (%s)", error, code, extra={"errors": errors})
                if isinstance(error, DatabaseUnreachable):
                    await self._revive()
                if isinstance(error, SchemaNewerThanClient):
                    # At the pulse or at a reconnect: the schema will refuse every later call too.
                    self._tell(self._on_outdated, error)
                    next_pulse = time.monotonic() + self._every
                await asyncio.sleep(min(pause_after_error(error, errors), 1.0))
            await asyncio.sleep(min(_TICK, self._every / 4))
        await connection.close()

    async def _revive(self) -> None:
        """An embedded server that was killed has nobody but its users to start it again."""
        try:
            await asyncio.to_thread(revive, self._dsn)
        except TrunklineError as error:
            _log.warning("the embedded server does not start: %s (%s)", error, error.code)

    async def _pulse(self, connection: LastingConnection) -> None:
        found = await connection.run(
            work.pulse(self._worker, self._detail()), patience=self._patience
        )
        try:
            require_served(SchemaVersion(found.version, found.contract, found.oldest_contract))
        except SchemaNewerThanClient as error:
            release = await connection.run(work.schema_release(), patience=self._patience)
            error.hint = newer_hint(release)
            raise
        if found.state != "active":
            self._tell(self._on_state, found.state)

    async def _beat(self, connection: LastingConnection) -> None:
        now = time.monotonic()
        due = [
            held
            for held in self._roster.snapshot()
            if held.beat_now or now - held.last_beat >= held.beat_every
        ]
        if not due:
            return
        asked = [held for held in due if held.beat_now]
        for held in asked:
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
            for held in asked:
                held.beat_now = True
            raise
        for held in due:
            held.last_beat = now
        by_job = {held.job.job_id: held for held in due}
        for verdict in verdicts:
            if verdict.verdict == "cancel":
                self._tell(self._stop_job, by_job[verdict.job_id], Stop.CANCELLED)
            elif verdict.verdict == "lost":
                held = by_job[verdict.job_id]
                held.gone = verdict.state == GONE
                self._tell(self._stop_job, held, Stop.LOST)

    @property
    def _patience(self) -> float:
        return max(2.0, self._every)

    def _tell(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The loop has ended, and the worker with it.
            self._ending.set()

    def _look_at_loop(self) -> None:
        now = time.monotonic()
        own, self._own_turn = now - self._own_turn, now
        late = now - self._tick_at
        # If this thread came around as late, the whole process was stopped: nobody blocked.
        if late < _BLOCKED or own > _BLOCKED or self._ending.is_set():
            self._told_at = 0.0
            return
        # Once, and again when it has become twice as long.
        if late < 2 * self._told_at:
            return
        self._told_at = late
        current = asyncio.current_task(self._loop)
        # Without a task it is a callback that blocks; jobs that do not run have no runner either.
        held = current and next((one for one in self._roster if one.runner is current), None)
        who = f"task {held.job.task}, job {held.job.job_id}" if held else "no handler of ours"
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - as documented
        stack = "".join(traceback.format_stack(frame)[-_STACK_LINES:]) if frame else ""
        _log.warning(
            "the event loop has been blocked for %.1f s by %s; use `def` or process=True for work"
            " that does not await\n%s",
            late,
            who,
            stack,
            extra={"job_id": str(held.job.job_id), "task": held.job.task} if held else {},
        )
