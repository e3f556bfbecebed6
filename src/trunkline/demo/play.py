"""Runs the demo from start to end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from trunkline.db.calls import work
from trunkline.db.calls.admin import run_duty, set_setting
from trunkline.db.calls.views import workers as all_workers
from trunkline.db.dsn import DSN_VARIABLE
from trunkline.demo import tasks
from trunkline.demo.account import Account, TaskCounts, final_figures, running_of, task_counts
from trunkline.demo.producer import Producer
from trunkline.demo.stage import Stage, set_stage
from trunkline.errors import TrunklineError

__all__ = ["Scene", "play"]

_ORDERS_PER_SECOND: Final = 40.0
# For which part of the time the producer runs, and after which part a worker is killed.
_PRODUCING: Final = 0.6
_KILL_AT: Final = 0.25
# How many seconds after the planned end the demo fails if jobs have not ended.
_OVERTIME: Final = 180.0
_FRAME: Final = 0.1

# A dead worker is detected within two pulses, and its jobs are reclaimed at once. The defaults (5
# seconds and a jitter of up to a minute) are easier on a database, but here somebody is watching.
_SETTINGS: Final = {"pulse_interval": "1 second", "reclaim_jitter": "0 seconds"}


@dataclass(slots=True)
class Scene:
    """The state that the screen shows at one moment."""

    seconds: float = 0.0
    tasks: list[TaskCounts] = field(default_factory=list)
    workers: list[tuple[str, str, int]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    enqueued: int = 0


class DemoFailed(TrunklineError):
    """The demo could not be completed."""

    code = "demo_failed"
    hint = "The lines above are the log of its workers."


def play(seconds: float, show: Callable[[Scene], None]) -> Account:
    """Run the demo and return the account."""
    opening = "a PostgreSQL server starts in a temporary folder"
    show(Scene(events=[opening]))
    with set_stage() as stage:
        previous = os.environ.get(DSN_VARIABLE)
        os.environ[DSN_VARIABLE] = stage.dsn
        try:
            with tasks.app.sync:
                return _Demo(stage, seconds, show, opening).play()
        finally:
            if previous is None:
                del os.environ[DSN_VARIABLE]
            else:
                os.environ[DSN_VARIABLE] = previous


class _Demo:
    def __init__(
        self, stage: Stage, seconds: float, show: Callable[[Scene], None], opening: str
    ) -> None:
        self._stage = stage
        self._seconds = seconds
        self._show = show
        self._run = tasks.app.sync.run
        self._scene = Scene(events=[opening])
        self._left_behind: tuple[str, list[UUID], list[int]] | None = None
        self._stale_rejected = 0

    def play(self) -> Account:
        begin = time.monotonic()
        for name, value in _SETTINGS.items():
            self._run(set_setting(name, value))
        Producer.prepare(self._stage.dsn)
        self._announce("two workers start")
        victim = self._stage.start_worker()
        self._stage.start_worker()
        producer = Producer(self._stage.dsn, self._seconds * _PRODUCING, _ORDERS_PER_SECOND)
        producer.start()
        while not self._is_over(producer):
            passed = time.monotonic() - begin
            if passed > self._seconds + _OVERTIME:
                raise DemoFailed(f"{self._stage.logs()}\nJobs did not end in time")
            if self._left_behind is None and passed > self._seconds * _KILL_AT:
                self._kill(victim, enough=3 if passed < self._seconds * _PRODUCING else 1)
            self._take_back()
            self._update(passed, producer)
            time.sleep(_FRAME)
        if producer.error is not None:
            raise DemoFailed(f"The producer failed: {producer.error}") from producer.error
        self._announce("all jobs have ended")
        self._update(time.monotonic() - begin, producer)
        return self._account(producer, time.monotonic() - begin)

    def _is_over(self, producer: Producer) -> bool:
        if producer.is_alive() or self._left_behind is None:
            return False
        return all(
            not (task.waiting or task.running or task.retrying) for task in self._scene.tasks
        )

    def _kill(self, victim: subprocess.Popen[bytes], *, enough: int) -> None:
        """Kill the worker once it holds enough jobs."""
        attempts = self._run(running_of(victim.pid))
        if len(attempts) < enough:
            return
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        # Read again: until it was killed, it may have ended some jobs and claimed others.
        attempts = self._run(running_of(victim.pid)) or attempts
        jobs = [row[1] for row in attempts]
        self._left_behind = (attempts[0][0], jobs, [row[2] for row in attempts])
        self._announce(f"worker1 is killed with SIGKILL; it held {len(jobs)} jobs")
        self._stage.start_worker()
        self._announce("worker3 starts")

    def _take_back(self) -> None:
        """Reclaim the jobs of the dead worker, then try to complete them in its name."""
        if self._left_behind is None or self._stale_rejected:
            return
        self._run(run_duty("reclaim"))
        worker, jobs, attempts = self._left_behind
        if any(row[0] == worker for row in self._workers() if row[1] in {"active", "draining"}):
            return
        refused = self._run(work.complete(worker, jobs, attempts))
        self._stale_rejected = sum(verdict.verdict == "lost" for verdict in refused)
        self._announce(f"{len(jobs)} jobs are reclaimed after two missed pulses")
        self._announce(
            f"{len(jobs)} late completions in the name of worker1: {self._stale_rejected} refused"
        )

    def _workers(self) -> list[tuple[str, str, int]]:
        rows = self._run(all_workers(everyone=True))
        return [(row.worker, row.state, row.running) for row in rows]

    def _update(self, passed: float, producer: Producer) -> None:
        self._scene.seconds = passed
        self._scene.tasks = self._run(task_counts())
        self._scene.workers = self._workers()
        self._scene.enqueued = producer.enqueued
        self._show(self._scene)

    def _announce(self, event: str) -> None:
        self._scene.events.append(event)
        self._show(self._scene)

    def _account(self, producer: Producer, seconds: float) -> Account:
        figures: dict[str, Any] = self._run(final_figures())
        ended = figures["completed"] + figures["cancelled"] + figures["dead"]
        return Account(
            enqueued=producer.enqueued,
            completed=figures["completed"],
            cancelled=figures["cancelled"],
            dead=figures["dead"],
            retried=figures["retried"],
            reclaimed=figures["reclaimed"],
            stale_rejected=self._stale_rejected,
            # Jobs that no longer exist, and completed ones whose effect is missing.
            lost=producer.enqueued - ended - figures["open"] + figures["unpaid"],
            duplicates=figures["effects"] - figures["effect_jobs"],
            seconds=round(seconds, 1),
        )
