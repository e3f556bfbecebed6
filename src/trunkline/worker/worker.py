"""One worker process: its parts, put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from trunkline import __version__
from trunkline.client import Task, Trunkline
from trunkline.db.calls import work
from trunkline.db.calls.admin import adopt_schedule, run_duties, set_schedule
from trunkline.db.calls.produce import register_tasks
from trunkline.db.dsn import resolve_ready
from trunkline.db.pool import AsyncPool, SyncPool
from trunkline.errors import (
    DatabaseProblem,
    InvalidOptions,
    InvalidTask,
    SchemaForbidden,
    SchemaNewerThanClient,
    TenantDenied,
    TrunklineError,
)
from trunkline.worker.backends import Services
from trunkline.worker.claimer import Claimer
from trunkline.worker.completer import Completer
from trunkline.worker.duties import Duties
from trunkline.worker.executor import Executor
from trunkline.worker.heart import Heart
from trunkline.worker.looker import Looker
from trunkline.worker.memory import Memory, resident
from trunkline.worker.options import WorkerOptions, new_worker_id
from trunkline.worker.part import Part
from trunkline.worker.roster import Held, Roster, Stop
from trunkline.worker.shutdown import Shutdown
from trunkline.worker.stop_signals import stop_signals
from trunkline.worker.wakeup import Wakeup
from trunkline.worker.watch import Watch

__all__ = ["RESTART", "Worker"]

# Exit code of a process that wants a successor; the one of sysexits.h for "try again".
RESTART = 75
# Within this time the same signal from the supervisor and from elsewhere is one.
_ECHO = 0.5

_START_PAUSES = (0.5, 1.0, 2.0, 4.0)

_log = logging.getLogger("trunkline.worker")


class Worker:
    """Claims and runs the jobs of an application until it is told to stop."""

    def __init__(
        self, app: Trunkline, options: WorkerOptions | None = None, *, supervised: bool = False
    ) -> None:
        self._app = app
        self._supervised = supervised
        self._signalled_at = 0.0
        self._options = options or WorkerOptions()
        self._served = _served(app, self._options.tasks)
        # By all names under which jobs may be stored.
        self._tasks = {name: task for task in self._served for name in task.names}
        self._exit_code = 0
        self._ready = asyncio.Event()
        self._registering: asyncio.Task[None] | None = None
        self._shutdown = Shutdown(self._options.grace)
        self.id = new_worker_id(self._options.name)

    async def ready(self) -> None:
        """Wait until the worker is registered and claims."""
        await self._ready.wait()

    def stop(self, reason: str = "asked to") -> None:
        """Begin to end; a second call ends the grace."""
        self._shutdown.want(reason)

    async def run(self) -> int:
        """Work until stopped; returns the exit code."""
        async with AsyncExitStack() as stack:
            dsn = await self._connect(stack)
            await self._set_up_patiently()
            await self._work(dsn)
        return self._exit_code

    async def _connect(self, stack: AsyncExitStack) -> str:
        given = self._app.dsn if self._options.dsn is None else self._options.dsn
        # The supervisor has reported an embedded server already.
        resolved = resolve_ready(given, embedded=self._app.embedded, quiet=self._supervised)
        dsn = await asyncio.to_thread(stack.enter_context, resolved)
        size = self._options.concurrency
        self._pool = AsyncPool(dsn, size=max(4, min(size, 20)), name="trunkline handlers")
        stack.push_async_callback(self._pool.close)
        self._sync_pool = SyncPool(dsn, size=max(4, min(size, 20)), name="trunkline handlers")
        stack.callback(self._sync_pool.close)
        return dsn

    async def _set_up_patiently(self) -> None:
        """A server that was there a moment ago gets a few more tries; one that never was, none."""
        for pause in _START_PAUSES:
            try:
                return await self._set_up()
            except DatabaseProblem as error:
                if not error.retryable:
                    raise
                _log.warning("start: %s (%s); trying again", error, error.code)
                await asyncio.sleep(pause)
        return await self._set_up()

    async def _set_up(self) -> None:
        await self._pool.run(
            register_tasks(policy for task in self._served for policy in task.policies)
        )
        for task in self._served:
            await self._set_schedule(task)
        await self._register()
        # Before the first claim: after a long pause today's partitions may be missing.
        await self._pool.run(run_duties())
        self._pulse = await self._pool.run(work.pulse_interval())

    async def _set_schedule(self, task: Task[..., Any]) -> None:
        when = task.schedule
        if when is None:
            return
        try:
            for alias in task.aliases:
                await self._pool.run(adopt_schedule(task.name, alias))
            await self._pool.run(
                set_schedule(
                    task.name,
                    when.cron,
                    task.name,
                    payload=when.payload,
                    time_zone=when.time_zone,
                    missed=when.missed,
                )
            )
        except (SchemaForbidden, TenantDenied):
            # TenantDenied: this session acts for one tenant, and the schedule is not that tenant's.
            _log.warning(
                "the schedule of %s was not set: this needs the role trunkline_operator"
                " and a session that acts for all tenants;"
                " an operator can run `trunkline schedules set`",
                task.name,
            )

    async def _register(self) -> None:
        await self._pool.run(
            work.register_worker(
                self.id,
                self._options.queues,
                list(self._tasks),
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                detail={**self._detail(), "signatures": self._signatures()},
            )
        )

    def _signatures(self) -> dict[str, str]:
        return {name: task.schema.fingerprint for name, task in self._tasks.items()}

    async def _work(self, dsn: str) -> None:
        options, shutdown = self._options, self._shutdown
        self._roster = roster = Roster()
        self._completer = completer = Completer(dsn, self.id, roster)
        services = Services(dsn, self.id, self._pool, self._sync_pool, self._forget)
        self._executor = executor = Executor(
            self._tasks,
            services,
            concurrency=options.concurrency,
            threads=options.threads,
            report=completer.add,
            on_demand=self._look_for_work,
        )
        roster.on_replaced = self._stop_lost
        names = list(self._tasks)
        wakeup = Wakeup(
            options.listen_dsn or self._app.listen_dsn or dsn,
            queues=options.queues,
            on_work=self._hear_of_work,
            on_cancel=self._cancel,
        )
        self._claimer = claimer = Claimer(
            dsn,
            self.id,
            options.queues,
            names,
            executor=executor,
            roster=roster,
            is_notified=lambda: wakeup.hears,
        )
        looker = Looker(
            dsn,
            self.id,
            options.queues,
            names,
            executor=executor,
            roster=roster,
            position=lambda: claimer.position,
            on_look=claimer.note_look,
        )
        heart = Heart(
            dsn,
            self.id,
            roster,
            every=self._pulse,
            detail=self._detail,
            stop_job=executor.stop_job,
            on_state=self._on_state,
            on_outdated=self._on_outdated,
        )
        others: list[Part] = [
            completer,
            Watch(roster, executor, completer.add),
            Duties(dsn, pulse=self._pulse),
            wakeup,
        ]
        if options.memory_limit is not None:
            others.append(Memory(options.memory_limit, self._restart))
        await completer.connect()
        with self._signals():
            executor.start()
            heart.start()
            for part in (*others, looker, claimer):
                part.start()
            _log.info("worker ready", extra={"worker": self.id, "tasks": len(names)})
            self._ready.set()
            try:
                await shutdown.wanted()
            except asyncio.CancelledError:
                # Who cancels the task of a worker does not wait for the grace.
                shutdown.hurry("cancelled")
                raise
            finally:
                await self._end([claimer, looker, wakeup], others, heart)

    async def _end(self, claiming: Sequence[Part], others: Sequence[Part], heart: Heart) -> None:
        try:
            await self._shutdown.carry_out(claiming, self._executor, self._completer, self._roster)
        finally:
            # Whatever happens: a heart that went on would keep the jobs of a dead worker.
            await self._executor.close()
            await asyncio.gather(*(part.stop() for part in (*claiming, *others)))
            await heart.stop()
            await self._say_goodbye()

    def _on_signal(self, name: str) -> None:
        # A terminal and systemd tell every process, and the supervisor passes on what it was told:
        # one wish, which must not end the grace.
        now = time.monotonic()
        before, self._signalled_at = self._signalled_at, now
        if not self._supervised or now - before > _ECHO:
            self.stop(name)

    def _forget(self, held: Held) -> None:
        self._roster.remove([held.job])

    def _look_for_work(self) -> None:
        self._claimer.wake()

    def _stop_lost(self, held: Held) -> None:
        self._executor.stop_job(held, Stop.LOST)

    def _hear_of_work(self) -> None:
        self._claimer.hear()

    def _cancel(self, job_id: UUID) -> None:
        held = self._roster.get(job_id)
        if held is not None:
            # Anybody may send on a channel; the engine's answer to a heartbeat is what counts.
            held.beat_now = True

    def _restart(self) -> None:
        # A worker that ends anyway keeps its exit code: nobody asked for a successor.
        if self._shutdown.want_once("memory limit"):
            self._exit_code = RESTART

    def _on_outdated(self, error: SchemaNewerThanClient) -> None:
        """Drain: the schema was upgraded and no longer supports this package."""
        if self._exit_code != error.exit_code:
            self._exit_code = error.exit_code
            _log.error("%s (%s). %s", error, error.code, error.hint)
        self._shutdown.want_once("this package is too old for the schema")

    def _on_state(self, state: str) -> None:
        if state == "draining":
            self._shutdown.want_once("drained by an operator")
            return
        # Given up while it was cut off: its jobs are others' by now, and it begins anew.
        if self._registering is None or self._registering.done():
            _log.warning("the engine gave this worker up (%s); registering again", state)
            self._registering = asyncio.ensure_future(self._register_again())

    async def _register_again(self) -> None:
        try:
            await self._register()
        except TrunklineError as error:
            _log.warning("could not register again: %s", error)
        else:
            self._claimer.forget_sleep()

    def _detail(self) -> dict[str, Any]:
        if not self._ready.is_set():
            return {"concurrency": self._options.concurrency}
        return {
            "concurrency": self._options.concurrency,
            "running": self._executor.busy,
            "buffered": self._executor.buffered,
            "unrecorded": len(self._completer),
            "stale": self._completer.stale,
            "memory": resident(),
            **{end.value: count for end, count in self._completer.counts.items()},
        }

    async def _say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(5):
                if self._roster.checks:
                    known = [held.job.job_id for held in self._roster]
                    await self._pool.run(work.release_forgotten(self.id, known))
                await self._pool.run(work.stop_worker(self.id))
        except (TrunklineError, TimeoutError) as error:
            _log.warning("could not say goodbye: %s", error)
        _log.info("worker stopped", extra={"worker": self.id})

    @contextlib.contextmanager
    def _signals(self) -> Any:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        numbers = stop_signals()
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, signal.Signals(number).name)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def _served(app: Trunkline, wanted: Sequence[str] | None) -> list[Task[..., Any]]:
    if wanted is None:
        tasks = list(app.tasks.values())
    else:
        # An alias stands for its task: the options of a worker may still have the old name.
        handlers = app.tasks.handlers
        unknown = set(wanted) - handlers.keys()
        if unknown:
            raise InvalidOptions(
                "The application has no task " + ", ".join(sorted(unknown)),
                hint="It has " + (", ".join(sorted(app.tasks)) or "none") + ".",
            )
        tasks = list({id(handlers[name]): handlers[name] for name in wanted}.values())
    if not tasks:
        raise InvalidTask(
            "The application has no tasks",
            hint="Declare one with @app.task in the module of the application, or import it there.",
        )
    return tasks
