"""The account of all jobs that were enqueued, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trunkline.db.call import Call, Row

__all__ = ["Account", "TaskCounts", "final_figures", "running_of", "task_counts"]


@dataclass(frozen=True, slots=True)
class Account:
    """The output of `trunkline demo --json`; `lost` and `duplicates` must be 0."""

    enqueued: int
    completed: int
    cancelled: int
    dead: int
    # Failed attempts that were retried.
    retried: int
    # Attempts of the killed worker that were reclaimed.
    reclaimed: int
    # Late completions in the name of the killed worker; the engine must refuse all of them.
    stale_rejected: int
    lost: int
    duplicates: int
    seconds: float

    @property
    def balances(self) -> bool:
        """Whether every job ended exactly once."""
        ended = self.completed + self.cancelled + self.dead
        return self.lost == 0 and self.duplicates == 0 and ended == self.enqueued

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The number of jobs of a task in each state, for the live view."""

    task: str
    waiting: int
    running: int
    progress: float | None
    completed: int
    retrying: int
    dead: int
    cancelled: int


def task_counts() -> Call[list[TaskCounts]]:
    """Count the jobs of each task by state."""
    return Call(
        """
        select task,
          count(*) filter (where state in ('ready', 'scheduled') and failures = 0),
          count(*) filter (where state = 'running'),
          avg(progress) filter (where state = 'running')::float8,
          count(*) filter (where state = 'completed'),
          count(*) filter (where state in ('ready', 'scheduled') and failures > 0),
          count(*) filter (where state = 'dead'),
          count(*) filter (where state = 'cancelled')
        from trunkline.jobs
        group by task
        order by task
        """,
        (),
        lambda rows: [TaskCounts(*row) for row in rows],
    )


def running_of(pid: int) -> Call[list[Row]]:
    """Return the worker of a process and its running attempts."""
    return Call(
        """
        select w.worker, j.job_id, j.attempt
        from trunkline.workers as w
        join trunkline.jobs as j on j.worker = w.worker and j.state = 'running'
        where w.pid = %s::integer
        """,
        (pid,),
        list,
    )


def final_figures() -> Call[dict[str, int]]:
    """Return the figures of the account when all jobs have ended."""

    def decode(rows: Sequence[Row]) -> dict[str, int]:
        names = ("completed", "cancelled", "dead", "open", "effects", "effect_jobs", "unpaid")
        return dict(zip((*names, "retried", "reclaimed"), rows[0], strict=True))

    return Call(
        """
        select
          count(*) filter (where j.state = 'completed'),
          count(*) filter (where j.state = 'cancelled'),
          count(*) filter (where j.state = 'dead'),
          count(*) filter (where j.state not in ('completed', 'cancelled', 'dead')),
          (select count(*) from demo_effects),
          (select count(distinct job_id) from demo_effects),
          count(*) filter (
            where j.state = 'completed'
              and not exists (select from demo_effects as e where e.job_id = j.job_id)
          ),
          (select count(*) from trunkline.events where kind = 'failed' and to_state = 'scheduled'),
          (select count(*) from trunkline.reclaim_history)
        from trunkline.jobs as j
        """,
        (),
        decode,
    )
