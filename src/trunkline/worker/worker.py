"""One worker process: creates its parts and connects them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any
from uuid import UUID

from trunkline import __version__
from trunkline.artifacts import AsyncStore
from trunkline.client import Task, Trunkline
from trunkline.client.task import tasks_by_name
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
    StoreError,
    TenantDenied,
    TrunklineError,
)
from trunkline.worker.backends import Services
from trunkline.worker.claimer import Claimer
from trunkline.worker.code_version import CodeVersions
from trunkline.worker.completer import Completer
from trunkline.worker.duties import Duties
from trunkline.worker.emitter import Emitter
from trunkline.worker.executor import Executor
from trunkline.worker.heartbeats import Heartbeats
from trunkline.worker.memory import Memory, resident
from trunkline.worker.options import WorkerOptions, new_worker_id
from trunkline.worker.part import Part
from trunkline.worker.recorder import Recorder
from trunkline.worker.rescan import Rescan
from trunkline.worker.roster import Roster, Stop
from trunkline.worker.shutdown import Shutdown
from trunkline.worker.stop_signals import on_stop_signal
from trunkline.worker.sweeper import Sweeper
from trunkline.worker.wakeup import Wakeup
from trunkline.worker.watch import Watch

__all__ = ["RESTART", "Worker"]

# Exit code of a process that needs a successor; EX_TEMPFAIL in sysexits.h.
RESTART = 75
# Within this time, a signal that the supervisor forwards and the same signal sent directly count
# as one.
_ECHO = 0.5

_START_PAUSES = (0.5, 1.0, 2.0, 4.0)

_log = logging.getLogger("trunkline.worker")


class Worker:
    """Claims and runs the jobs of an application until it is asked to stop."""

    def __init__(
        self, app: Trunkline, options: WorkerOptions | None = None, *, supervised: bool = False
    ) -> None:
        self._app = app
        self._supervised = supervised
        self._signalled_at = 0.0
        self._options = options or WorkerOptions()
        self._served = _served(app, self._options.tasks)
        # Tasks by every name under which jobs may be stored.
        self._tasks = {name: task for task in self._served for name in task.names}
        self._exit_code = 0
        self._store_address = _store_address(app)
        self._ready = asyncio.Event()
        self._registering: asyncio.Task[None] | None = None
        self._shutdown = Shutdown(self._options.grace)
        self.id = new_worker_id(self._options.name)

    async def ready(self) -> None:
        """Wait until the worker is registered and claims jobs."""
        await self._ready.wait()

    def stop(self, reason: str = "asked to") -> None:
        """Start the shutdown; a second call ends the grace period."""
        self._shutdown.want(reason)

    async def run(self) -> int:
        """Work until stopped, and return the exit code."""
        async with AsyncExitStack() as stack:
            dsn = await self._connect(stack)
            await self._set_up_patiently()
            await self._work(dsn)
        return self._exit_code

    async def _connect(self, stack: AsyncExitStack) -> str:
        configured = self._app.dsn if self._options.dsn is None else self._options.dsn
        # The supervisor has already logged that an embedded server is used.
        resolved = resolve_ready(configured, embedded=self._app.embedded, quiet=self._supervised)
        dsn = await asyncio.to_thread(stack.enter_context, resolved)
        size = self._options.concurrency
        self._pool = AsyncPool(dsn, size=max(4, min(size, 20)), name="trunkline handlers")
        stack.push_async_callback(self._pool.close)
        self._sync_pool = SyncPool(dsn, size=max(4, min(size, 20)), name="trunkline handlers")
        stack.callback(self._sync_pool.close)
        return dsn

    async def _set_up_patiently(self) -> None:
        """Try again if the server was reachable a moment ago, but not if it never was."""
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
        # Before the first claim: if no worker ran lately, today's partitions may be missing.
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
                detail={**self._detail(), "signatures": self._signatures},
            )
        )

    @cached_property
    def _signatures(self) -> dict[str, str]:
        # Read once: a deploy may replace the files while this process runs.
        code = CodeVersions()
        return {
            name: f"{task.schema.signature}:{code.of(task.handler)}"
            for name, task in self._tasks.items()
        }

    async def _work(self, dsn: str) -> None:
        options, shutdown = self._options, self._shutdown
        self._roster = roster = Roster()
        self._completer = completer = Completer(dsn, self.id, roster)
        recorder = Recorder(dsn, self.id)
        emitter = Emitter(dsn, self.id)
        services = Services(
            dsn,
            self.id,
            self._pool,
            self._sync_pool,
            lambda held: roster.remove([held.job]),
            recorder,
            emitter,
            store=AsyncStore(self._app.open_store) if self._app.has_store else None,
        )
        self._executor = executor = Executor(
            self._tasks,
            services,
            concurrency=options.concurrency,
            threads=options.threads,
            report=completer.add,
            on_demand=lambda: claimer.wake(),  # noqa: PLW0108 - created below
        )
        roster.on_replaced = lambda held: executor.stop_job(held, Stop.LOST)
        names = list(self._tasks)
        self._claimer = claimer = Claimer(
            dsn,
            self.id,
            options.queues,
            names,
            executor=executor,
            roster=roster,
            is_notified=lambda: wakeup.hears,
        )
        duties = Duties(dsn, pulse=self._pulse)
        wakeup = Wakeup(
            options.listen_dsn or self._app.listen_dsn or dsn,
            queues=options.queues,
            on_work=claimer.hear,
            on_cancel=self._cancel,
            on_duty=duties.call,
        )
        rescan = Rescan(
            dsn,
            self.id,
            options.queues,
            names,
            executor=executor,
            roster=roster,
            position=lambda: claimer.position,
            on_scan=claimer.note_scan,
        )
        heartbeats = Heartbeats(
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
            recorder,
            emitter,
            Watch(roster, executor, completer.add),
            duties,
            wakeup,
        ]
        if services.store is not None:
            others.append(Sweeper(dsn, self.id, services.store))
        if options.memory_limit is not None:
            others.append(Memory(options.memory_limit, self._restart))
        await completer.connect()
        with on_stop_signal(self._on_signal):
            executor.start()
            heartbeats.start()
            for part in (*others, rescan, claimer):
                part.start()
            _log.info("worker ready", extra={"worker": self.id, "tasks": len(names)})
            self._ready.set()
            try:
                await shutdown.wanted()
            except asyncio.CancelledError:
                # Cancelling the task of a worker skips the grace period.
                shutdown.hurry("cancelled")
                raise
            finally:
                await self._end([claimer, rescan, wakeup], others, heartbeats)

    async def _end(
        self, claiming: Sequence[Part], others: Sequence[Part], heartbeats: Heartbeats
    ) -> None:
        try:
            await self._shutdown.carry_out(claiming, self._executor, self._completer, self._roster)
        finally:
            # Also after an error: further heartbeats would keep the jobs of a dead worker.
            await self._executor.close()
            await asyncio.gather(*(part.stop() for part in (*claiming, *others)))
            await heartbeats.stop()
            await self._unregister()

    def _on_signal(self, name: str) -> None:
        # A terminal or systemd signals every process, and the supervisor forwards its own signal.
        # Both are one request and must not end the grace period.
        now = time.monotonic()
        previous, self._signalled_at = self._signalled_at, now
        if not self._supervised or now - previous > _ECHO:
            self.stop(name)

    def _cancel(self, job_id: UUID) -> None:
        held = self._roster.get(job_id)
        if held is not None:
            # Every role can send on a channel, so ask the engine with a heartbeat.
            held.beat_now = True

    def _restart(self) -> None:
        # A worker that is already shutting down keeps its exit code and gets no successor.
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
        # The engine considered this worker dead while it was disconnected and reclaimed its jobs.
        if self._registering is None or self._registering.done():
            _log.warning("the engine considers this worker %s; registering again", state)
            self._registering = asyncio.ensure_future(self._register_again())

    async def _register_again(self) -> None:
        try:
            await self._register()
        except TrunklineError as error:
            _log.warning("could not register again: %s", error)
        else:
            self._claimer.reset_sleep()

    def _detail(self) -> dict[str, Any]:
        # Doctor warns about a folder that workers on several machines use.
        store = {} if self._store_address is None else {"store": self._store_address}
        if not self._ready.is_set():
            return {"concurrency": self._options.concurrency, **store}
        return {
            "concurrency": self._options.concurrency,
            "running": self._executor.busy,
            "buffered": self._executor.buffered,
            "unrecorded": len(self._completer),
            "stale": self._completer.stale,
            "memory": resident(),
            **store,
            **{end.value: count for end, count in self._completer.counts.items()},
        }

    async def _unregister(self) -> None:
        try:
            async with asyncio.timeout(5):
                if self._roster.checks:
                    known = [held.job.job_id for held in self._roster]
                    await self._pool.run(work.release_forgotten(self.id, known))
                await self._pool.run(work.stop_worker(self.id))
        except (TrunklineError, TimeoutError) as error:
            _log.warning("could not report the end of this worker: %s", error)
        _log.info("worker stopped", extra={"worker": self.id})


def _store_address(app: Trunkline) -> str | None:
    if not app.has_store:
        return None
    try:
        return app.open_store().address
    except StoreError as error:
        # Handlers without artifacts run all the same; the others report this error.
        _log.warning("the store cannot be opened: %s (%s). %s", error, error.code, error.hint)
        return None


def _served(app: Trunkline, names: Sequence[str] | None) -> list[Task[..., Any]]:
    if names is None:
        tasks = list(app.tasks.values())
    else:
        # An alias selects its task: the options of a worker may still have the old name.
        handlers = tasks_by_name(app.tasks)
        unknown = set(names) - handlers.keys()
        if unknown:
            raise InvalidOptions(
                "The application has no task " + ", ".join(sorted(unknown)),
                hint="It has " + (", ".join(sorted(app.tasks)) or "none") + ".",
            )
        tasks = list({id(handlers[name]): handlers[name] for name in names}.values())
    if not tasks:
        raise InvalidTask(
            "The application has no tasks",
            hint="Declare one with @app.task in the module of the application, or import it there.",
        )
    return tasks
